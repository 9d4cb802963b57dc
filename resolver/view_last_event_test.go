package resolver

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/search"
)

// TestLastEventsAreOfOneState: what changes between finding the places and reading the
// profiles does not change the order; profiles merged or erased since are not listed.
func TestLastEventsAreOfOneState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		w := &searchWorld{rand.New(rand.NewPCG(seed, 11)), newDurable(t, DefaultSettings())}
		var list contacts.List
		if err := json.Unmarshal(w.command(contacts.CommandListCreate, contacts.ListSave{Name: "l"}).Reply, &list); err != nil {
			t.Fatal(err)
		}
		changed := false
		for round := range 8 {
			for range 20 {
				w.step([]string{list.ID})
			}
			v := w.m.View(nil, testAccount)
			s := search.Query{Order: search.OrderLastEvent, Limit: pick(w.rng, 3, 1000), AtMs: w.now}
			want := searchOracle(t, v, &s)
			at := map[ProfileID]int64{}
			for _, id := range want {
				at[id] = accountOf(v).Profiles.Headers.Get(id.Ordinal()).LastEvent
			}
			l, err := v.Profiles().ByLastEvent(&s)
			if err != nil {
				t.Fatal(err)
			}
			ranked := w.rng.IntN(2) == 0
			if ranked {
				l.Rank()
			}
			for range 15 {
				w.step([]string{list.ID})
			}
			if !ranked {
				l.Rank()
			}
			page, err := v.Profiles().Search(&s)
			if err != nil {
				t.Fatal(err)
			}
			want = slices.DeleteFunc(want[:min(len(want), s.Limit)], func(id ProfileID) bool { return !v.Profiles().Has(id.Ordinal()) })
			var got []ProfileID
			for _, p := range page.Profiles {
				got = append(got, p.ID)
				changed = changed || accountOf(v).Profiles.Headers.Get(p.Ordinal).LastEvent != at[p.ID]
				if p.HasEvent() && p.LastEventMs != at[p.ID] {
					t.Fatalf("seed %d, round %d: a profile is listed at %d, not at %d", seed, round, p.LastEventMs, at[p.ID])
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, round %d: %v, want %v", seed, round, got, want)
			}
		}
		if !changed {
			t.Errorf("seed %d tries nothing", seed)
		}
	}
}
