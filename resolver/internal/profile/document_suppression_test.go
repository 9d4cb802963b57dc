package profile

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// naiveSuppressions is what suppresses the channels of a profile: for each channel the gravest reason,
// 0 for none, and whether a confirmation is pending.
type naiveSuppressions struct {
	gravest map[byte]SuppressionReason
	pending map[byte]bool
}

func (n *naiveSuppressions) suppress(channel byte, reason SuppressionReason) {
	if reason == SuppressionPending {
		n.pending[channel] = true
	} else {
		n.gravest[channel] = max(n.gravest[channel], reason)
	}
}

func (n *naiveSuppressions) reason(channel byte) SuppressionReason {
	if n.gravest[channel] == 0 && n.pending[channel] {
		return SuppressionPending
	}
	return n.gravest[channel]
}

// TestC1SuppressionsMatchNaive: whatever suppresses a channel and is lifted, in any order and through
// merges and reads of the stored document, a confirmation stays pending until it is given.
func TestC1SuppressionsMatchNaive(t *testing.T) {
	const rules = rulesPendingKept
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		docs, naive := [2]Document{}, [2]naiveSuppressions{}
		for i := range naive {
			naive[i] = naiveSuppressions{map[byte]SuppressionReason{}, map[byte]bool{}}
		}
		for step := range 60 {
			i, channel, reason := rng.IntN(2), byte(rng.IntN(3)), SuppressionPending+SuppressionReason(rng.IntN(4))
			d, n := &docs[i], &naive[i]
			was := n.reason(channel)
			pended := n.pending[channel]
			switch rng.IntN(8) {
			case 0, 1, 2, 3:
				n.suppress(channel, reason)
				if changed := d.Suppress(Suppression{channel, reason, int64(step)}, rules); changed != (n.reason(channel) != was || n.pending[channel] != pended) {
					t.Fatalf("seed %d, step %d: %s changes: %t", seed, step, reason, changed)
				}
			case 4:
				if d.Unsuppress(channel, SuppressionBounced, SuppressionComplained, SuppressionByAccount) != (was > SuppressionPending) {
					t.Fatalf("seed %d, step %d: a lift", seed, step)
				}
				delete(n.gravest, channel)
			case 5:
				if d.Unsuppress(channel, SuppressionPending) != pended {
					t.Fatalf("seed %d, step %d: a confirmation", seed, step)
				}
				delete(n.pending, channel)
			case 6:
				stored := d.Append(nil)
				docs[i] = Document{}
				if err := docs[i].Decode(stored); err != nil {
					t.Fatal(err)
				}
			case 7:
				if step%10 != 0 {
					continue
				}
				d.Merge(&docs[1-i].Contact, rules)
				for c := range byte(3) {
					if reason := naive[1-i].gravest[c]; reason != 0 {
						n.suppress(c, reason)
					}
					if naive[1-i].pending[c] {
						n.suppress(c, SuppressionPending)
					}
				}
			}
			d = &docs[i]
			for c := range byte(3) {
				var counts []SuppressionReason
				d.EachSuppression(func(b Suppression) {
					if b.Channel == c {
						counts = append(counts, b.Reason)
					}
				})
				want := n.reason(c)
				if d.GravestSuppression(c) != want || d.Pending(c) != n.pending[c] || !slices.Equal(counts, slices.DeleteFunc([]SuppressionReason{want}, func(r SuppressionReason) bool { return r == 0 })) {
					t.Fatalf("seed %d, step %d: %+v: %s and %v, pending %t; expected %s, pending %t", seed, step, d.Suppressions, d.GravestSuppression(c), counts, d.Pending(c), want, n.pending[c])
				}
			}
		}
	}
}

// TestR1SuppressionsOfOlderRules: under older rules a graver suppression takes the place of a pending one.
func TestR1SuppressionsOfOlderRules(t *testing.T) {
	var d Document
	d.Suppress(Suppression{ChannelEmail, SuppressionPending, 1}, rulesPendingKept-1)
	if !d.Suppress(Suppression{ChannelEmail, SuppressionBounced, 2}, rulesPendingKept-1) || d.Suppress(Suppression{ChannelEmail, SuppressionPending, 3}, rulesPendingKept-1) || len(d.Suppressions) != 1 {
		t.Fatalf("%+v", d.Suppressions)
	}
	if !d.Unsuppress(ChannelEmail, SuppressionBounced) || d.GravestSuppression(ChannelEmail) != 0 {
		t.Fatalf("%+v", d.Suppressions)
	}
}
