package consentlog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// naive is the log of one profile in full, the oldest first.
type naive []Entry

// newestOf is the place of the newest entry about the same as x.
func (n naive) newestOf(x Entry) int {
	for i := len(n) - 1; i >= 0; i-- {
		if n[i].about(&x) {
			return i
		}
	}
	return -1
}

// kept are the entries that are kept: the oldest go that are not the newest of a channel or
// topic.
func (n naive) kept() naive {
	out := slices.Clone(n)
	for len(out) > MaxEntries {
		i := slices.IndexFunc(out, func(x Entry) bool { j := out.newestOf(x); return out[j].AtMs > x.AtMs })
		out = slices.Delete(out, i, i+1)
	}
	return out
}

// TestR2ConsentLogMatchesNaive: changes, merges, erasures and restarts at random, against a
// list of all that was said. Logs that become too long are not merged here: which entries
// make room then depends on what was stored before.
func TestR2ConsentLogMatchesNaive(t *testing.T) {
	for seed := range testlevel.Count[uint64](3, 12) {
		rng := rand.New(rand.NewPCG(seed, 1))
		sets := profile.NewOrdinalSets()
		w := featuretest.New(t, nil, func(store *state.Store) *State { return New(featuretest.Account, store, sets) })
		said := map[uint32]naive{}
		docs := map[uint32]*profile.Document{}
		doc := func(o uint32) *profile.Document {
			if docs[o] == nil {
				docs[o] = &profile.Document{}
			}
			return docs[o]
		}
		merges, steps := seed%2 == 0, 600
		if merges {
			steps = MaxEntries
		}
		for range steps {
			w.Now += 1 + rng.Int64N(1000)
			o := rng.Uint32N(3)
			d := doc(o)
			switch rng.IntN(60) {
			case 0:
				winner := rng.Uint32N(3)
				if winner == o || !merges {
					continue
				}
				// As the machine does: the documents first, then what features have.
				doc(winner).MergeConsents(d)
				if err := w.State.Add(winner, doc(winner).Changes); err != nil {
					t.Fatal(err)
				}
				doc(winner).Changes = nil
				w.State.Merge(w.Tx(), winner, o)
				said[winner] = append(said[winner], said[o]...)
				slices.SortStableFunc(said[winner], func(x, y Entry) int { return int(x.AtMs - y.AtMs) })
				said[winner] = said[winner].kept()
				delete(said, o)
				delete(docs, o)
			case 1:
				if err := w.State.Erase(w.Tx(), o, 99); err != nil {
					t.Fatal(err)
				}
				delete(said, o)
				delete(docs, o)
			case 2:
				w.State = New(featuretest.Account, w.Store, sets)
			default:
				channel, status := byte(rng.IntN(2)), byte(1+rng.IntN(2))
				c := profile.Consent{Channel: channel, Status: status, SinceMs: w.Now, Source: []byte("api")}
				change := profile.ConsentChange{Now: c}
				if rng.IntN(3) == 0 {
					change.Evidence = profile.Evidence{Client: "192.0.2.0/24", Wording: "w"}
				}
				if rng.IntN(10) == 0 {
					change.List, change.Name = fmt.Sprint("lst_", rng.IntN(3)), "n"
				} else if i := slices.IndexFunc(d.Consents, func(y profile.Consent) bool { return y.Channel == channel }); i >= 0 {
					change.Was, d.Consents[i] = d.Consents[i], c
				} else {
					d.Consents = append(d.Consents, c)
				}
				x := entryOf(&c, &change)
				said[o] = append(said[o], x).kept()
				if err := w.State.Add(o, []profile.ConsentChange{change}); err != nil {
					t.Fatal(err)
				}
			}
			for o := range uint32(3) {
				got, err := w.State.Entries(o, doc(o))
				if err != nil {
					t.Fatal(err)
				}
				slices.Reverse(got)
				if want := said[o]; len(got) != len(want) || !slices.EqualFunc(got, want, func(x, y Entry) bool { return x == y }) {
					t.Fatalf("seed %d: profile %d has %d entries, expected %d:\n%v\n%v", seed, o, len(got), len(want), got, want)
				}
			}
			w.Hash()
		}
	}
}

// TestManyTopicsLeaveChannels: where there are more topics than entries, the newest entry of
// each channel stays with its evidence.
func TestManyTopicsLeaveChannels(t *testing.T) {
	sets := profile.NewOrdinalSets()
	w := featuretest.New(t, nil, func(store *state.Store) *State { return New(featuretest.Account, store, sets) })
	var changes []profile.ConsentChange
	say := func(list string, channel byte) {
		changes = append(changes, profile.ConsentChange{
			List: list, Name: list, Now: profile.Consent{Channel: channel, Status: profile.ConsentUnsubscribed, SinceMs: w.Now},
			Was: profile.Consent{Channel: channel, Status: profile.ConsentSubscribed, SinceMs: 1}, Evidence: profile.Evidence{Wording: "w"},
		})
	}
	for i := range profile.Channels {
		say("", byte(i))
	}
	for i := range MaxEntries {
		say(fmt.Sprint("lst_", i), 0)
	}
	if err := w.State.Add(1, changes); err != nil {
		t.Fatal(err)
	}
	log, err := w.State.Entries(1, &profile.Document{})
	if err != nil || len(log) != MaxEntries {
		t.Fatalf("%d entries, %v", len(log), err)
	}
	kept := map[string]bool{}
	for _, x := range log {
		if x.List == "" && x.Status == "unsubscribed" && x.Wording == "w" {
			kept[x.Channel] = true
		}
	}
	if len(kept) != len(profile.Channels) {
		t.Errorf("left are %v", kept)
	}
}
