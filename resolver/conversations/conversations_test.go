package conversations

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/state"
)

// erased are the numbers of erased people: number 9.
func erased(n identifier.Hash) bool { return n == numberOf(9) }

func numberOf(n uint32) identifier.Hash { return identifier.Hash{15: byte(n)} }

// TestR2ConversationsMatchNaive: texts from numbers and, under older rules, events of profiles,
// merges and erasures at random, against a list of all that was written.
func TestR2ConversationsMatchNaive(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := featuretest.New(t, Commands, func(*state.Store) *State { return New(erased) })
		w.Rules = rulesNumber - 1
		// when a profile wrote last under older rules, and when somebody wrote from a number
		wrote, from := map[uint32]int64{}, map[uint32]int64{}
		for i := range 400 {
			if i == 200 {
				w.Rules = rulesNumber
			}
			w.Now += rng.Int64N(WindowMs / 8)
			o := rng.Uint32N(10)
			at := w.Now - rng.Int64N(2*WindowMs)*rng.Int64N(2)
			switch rng.IntN(10) {
			case 0:
				winner := rng.Uint32N(10)
				if winner == o {
					continue
				}
				w.State.Merge(w.Tx(), winner, o)
				wrote[winner] = max(wrote[winner], wrote[o])
				delete(wrote, o)
			case 1:
				if err := w.State.Erase(w.Tx(), o, 99); err != nil {
					t.Fatal(err)
				}
				w.State.Forget(w.Tx(), numberOf(o))
				delete(wrote, o)
				delete(from, o)
			case 2, 3, 4:
				c := Open{hex.EncodeToString(append(make([]byte, 15), byte(o))), at}
				if rng.IntN(4) == 0 {
					c.WrittenMs, at = 0, w.Now // its provider does not say
				}
				w.Must(CommandOpen, c)
				if o != 9 {
					from[o] = max(from[o], at)
				}
			default:
				w.State.OnEvent(w.Tx(), o, at)
				if w.Rules < rulesNumber {
					wrote[o] = max(wrote[o], at)
				}
			}
			for o := range uint32(10) {
				for _, x := range []struct{ last, until int64 }{{wrote[o], w.State.ProfileOpenUntil(o)}, {from[o], w.State.OpenUntil(numberOf(o))}} {
					open := x.last != 0 && x.last+WindowMs > w.Now
					if open != (x.until > w.Now) || open && x.until != x.last+WindowMs {
						t.Fatalf("seed %d: %d wrote at %d, is open until %d, it is %d", seed, o, x.last, x.until, w.Now)
					}
				}
			}
			w.Hash()
		}
		again := New(erased)
		load := func(name string, key string) {
			b, err := w.Store.Entity(key)
			if err != nil {
				t.Fatal(err)
			}
			if known, err := again.Load(state.EntityConversation, name, b); err != nil || !known {
				t.Fatalf("seed %d: %v, %v", seed, known, err)
			}
		}
		for o := range w.State.last {
			load(string([]byte{0, 0, 0, byte(o)}), key(featuretest.Account, o))
		}
		for n := range w.State.numbers {
			load(string(n[:]), numberKey(featuretest.Account, n))
		}
		before := w.Hash()
		w.State = again
		if w.Hash() != before {
			t.Fatalf("seed %d: loaded %v and %v", seed, again.last, again.numbers)
		}
		// What is over is forgotten.
		w.Now += 2 * WindowMs
		w.Must(CommandOpen, Open{Number: hex.EncodeToString(make([]byte, 16))})
		if len(again.last) != 0 || len(again.numbers) != 1 {
			t.Fatalf("seed %d: kept %v and %v", seed, again.last, again.numbers)
		}
	}
}

// TestConversationOpenRefusesWhatIsNoHash: and changes nothing.
func TestConversationOpenRefusesWhatIsNoHash(t *testing.T) {
	w := featuretest.New(t, Commands, func(*state.Store) *State { return New(erased) })
	for _, number := range []string{"", "00", "+491701234567"} {
		w.Refused("invalid", CommandOpen, Open{Number: number})
	}
}
