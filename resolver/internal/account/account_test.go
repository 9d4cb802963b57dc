package account

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment"
)

// sets is the account's sets of profiles.
type sets struct{ *State }

func (s sets) Hash(put func([]byte)) error { s.hashSets(put); return nil }

func newSets(*state.Store) sets { return sets{New(featuretest.Account, 0)} }

// TestR2SetsMatchNaive: sets have whom they were given, also after they were stored and loaded,
// and a set that was dropped leaves nothing behind.
func TestR2SetsMatchNaive(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 9))
		w := featuretest.New(t, nil, newSets)
		naive := map[string]map[uint32]bool{}
		names := []string{"list/1", "list/2", "campaign/1", RefusedRowsName([32]byte{1})}
		for range 300 {
			name, o := names[rng.IntN(len(names))], rng.Uint32N(200_000)
			switch rng.IntN(20) {
			case 0:
				w.State.DropSet(w.Store, name)
				delete(naive, name)
			case 1:
				w.State.StoreSets(w.Store)
			case 2, 3, 4:
				for x := range naive[name] {
					w.State.Sets.Set(name).Remove(x)
					delete(naive[name], x)
					break
				}
			default:
				w.State.Sets.Set(name).Add(o)
				if naive[name] == nil {
					naive[name] = map[uint32]bool{}
				}
				naive[name][o] = true
			}
		}
		w.State.StoreSets(w.Store)
		again := newSets(nil)
		for key, value := range w.Store.Entities {
			// An account, the kind and the rest, as [State.Load] gets them.
			if rest := strings.TrimPrefix(key, state.EntityKey(featuretest.Account, state.EntitySet, "")); value != nil {
				if known, err := again.Load(state.EntitySet, rest, value); !known || err != nil {
					t.Fatalf("seed %d: %v %v", seed, known, err)
				}
			}
		}
		for _, s := range []sets{w.State, again} {
			for _, name := range names {
				want := slices.Sorted(maps.Keys(naive[name]))
				if have := s.Sets.Members(name).ToArray(); !slices.Equal(have, want) {
					t.Fatalf("seed %d: set %q has %d profiles, want %d", seed, name, len(have), len(want))
				}
			}
		}
		before := w.Hash()
		if w.State = again; w.Hash() != before {
			t.Fatalf("seed %d: the sets that were loaded have another hash", seed)
		}
	}
}

// TestSegmentsUsingMatchesNaive: the uses of a segment are the segments whose definitions name
// it, in order of names.
func TestSegmentsUsingMatchesNaive(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 10))
		a := New(featuretest.Account, 0)
		refers := map[string][]string{}
		for i := range 12 {
			id := fmt.Sprintf("seg_%02d", i)
			conditions := []string{`{"kind":"attribute","field":"email","op":"exists"}`}
			for j := range i {
				if rng.IntN(4) == 0 {
					to := fmt.Sprintf("seg_%02d", j)
					refers[to] = append(refers[to], id)
					conditions = append(conditions, `{"kind":"segment","segment_id":"`+to+`"}`)
				}
			}
			root, err := segment.Parse([]byte(`{"match":"all","conditions":[`+strings.Join(conditions, ",")+`]}`), segment.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			a.Segments[id] = &Segment{ID: id, Name: fmt.Sprint("name ", i%3), Definition: root.Canonical(), CreatedMs: int64(i % 5), Root: root}
			a.Engine.Define(id, root, int64(i), func(string) bool { return false })
		}
		for id := range a.Segments {
			now, before := a.SegmentsUsing(id)
			var have []string
			for i, u := range now {
				have = append(have, u.ID)
				if i > 0 && now[i-1].Name > u.Name {
					t.Fatalf("seed %d: %v are not in order", seed, now)
				}
			}
			if slices.Sort(have); !slices.Equal(have, refers[id]) || len(before) > 0 {
				t.Fatalf("seed %d: %s is used by %v and %v, want %v", seed, id, have, before, refers[id])
			}
		}
		list := a.SegmentsByAge()
		if !slices.IsSortedFunc(list, func(x, y *Segment) int { return int(x.CreatedMs - y.CreatedMs) }) || len(list) != len(a.Segments) {
			t.Fatalf("seed %d: segments are not in order of age", seed)
		}
	}
}

// TestSettingsBounds: a setting is refused just outside its bounds and taken at them, and what
// clients see of a default is not what is stored.
func TestSettingsBounds(t *testing.T) {
	for _, x := range []struct {
		field       string
		least, most int
		set         func(*Settings, int)
	}{
		{"identifier_cap", 1, maxIdentifierCap, func(s *Settings, n int) { s.IdentifierCap = n }},
		{"idempotency_hours", 72, maxIdempotencyHours, func(s *Settings, n int) { s.IdempotencyHours = n }},
		{"surface_c_per_minute", 1, MaxSurfaceCPerMinute, func(s *Settings, n int) { s.SurfaceCPerMinute = n }},
		{"max_event_age_hours", 0, maxEventAgeHours, func(s *Settings, n int) { s.MaxEventAgeHours = n }},
		{"flow_event_age_hours", 0, maxEventAgeHours, func(s *Settings, n int) { s.FlowEventAgeHours = n }},
		{"placeholders", 0, maxPlaceholders, func(s *Settings, n int) { s.Placeholders = slices.Repeat([]string{"x"}, max(n, 0)) }},
	} {
		for n, ok := range map[int]bool{x.least - 1: false, x.least: true, x.most: true, x.most + 1: false} {
			if n < 0 && x.field == "placeholders" {
				continue
			}
			s := DefaultSettings()
			x.set(&s, n)
			if r := s.Validate(); (r == nil) != ok || !ok && r.Field != x.field {
				t.Errorf("%s %d: %v", x.field, n, r)
			}
		}
	}
	s := DefaultSettings()
	if shown := s.Shown(); shown.MaxEventAgeHours != 720 || shown.FlowEventAgeHours != 24 || s.MaxEventAgeHours != 0 || s.FlowEventAgeHours != 0 {
		t.Errorf("shown are %+v of %+v", shown, s)
	}
	if s.MaxEventAgeMs() != 720*3_600_000 || s.FlowEventAgeMs() != 24*3_600_000 {
		t.Errorf("events may be %d and %d ms old", s.MaxEventAgeMs(), s.FlowEventAgeMs())
	}
}

// TestEntityKeys: keys of an account that are damaged are told from whole ones.
func TestEntityKeys(t *testing.T) {
	whole := Entity{HashKey: strings.Repeat("0f", 16), SecretHash: strings.Repeat("a0", 32)}
	hashKey, secret, err := whole.Keys(featuretest.Account)
	if err != nil || hashKey[0] != 0x0f || secret[31] != 0xa0 {
		t.Fatalf("%x %x %v", hashKey, secret, err)
	}
	for _, x := range []Entity{{}, {HashKey: whole.HashKey}, {SecretHash: whole.SecretHash}, {HashKey: whole.HashKey + "00", SecretHash: whole.SecretHash}, {HashKey: strings.Repeat("zz", 16), SecretHash: whole.SecretHash}, {HashKey: whole.HashKey, SecretHash: strings.Repeat("zz", 32)}} {
		if _, _, err := x.Keys(featuretest.Account); err == nil {
			t.Errorf("%+v is no error", x)
		}
	}
}
