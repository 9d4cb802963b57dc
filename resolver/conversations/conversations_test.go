package conversations

import (
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/state"
)

// TestR2ConversationsMatchNaive: events, merges and erasures at random, against a list of
// all that was written.
func TestR2ConversationsMatchNaive(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := featuretest.New(t, nil, func(*state.Store) *State { return New() })
		wrote := map[uint32]int64{} // when a profile wrote last
		for range 200 {
			w.Now += rng.Int64N(WindowMs / 8)
			o := rng.Uint32N(10)
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
				delete(wrote, o)
			default:
				at := w.Now - rng.Int64N(2*WindowMs)*rng.Int64N(2)
				w.State.OnEvent(w.Tx(), o, at)
				wrote[o] = max(wrote[o], at)
			}
			for o := range uint32(10) {
				open := wrote[o] != 0 && wrote[o]+WindowMs > w.Now
				if until := w.State.OpenUntil(o); open != (until > w.Now) || open && until != wrote[o]+WindowMs {
					t.Fatalf("seed %d: profile %d wrote at %d, is open until %d, it is %d", seed, o, wrote[o], until, w.Now)
				}
			}
			if len(w.State.last) > 10 {
				t.Fatal("what is over is kept")
			}
			w.Hash()
		}
		again := New()
		for o, at := range w.State.last {
			b, err := w.Store.Entity(key(featuretest.Account, o))
			if err != nil {
				t.Fatal(err)
			}
			if known, err := again.Load(state.EntityConversation, string([]byte{byte(o >> 24), byte(o >> 16), byte(o >> 8), byte(o)}), b); err != nil || !known || again.last[o] != at {
				t.Fatalf("seed %d: loaded %v, %v", seed, again.last, err)
			}
		}
		w.State = again
		w.Hash()
	}
}
