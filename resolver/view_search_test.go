package resolver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/search"
	"github.com/musterhq/muster/resolver/view"
)

// searchOracle lists what a search is to find, by a look at all profiles.
func searchOracle(t *testing.T, v *View, s *search.Query) (out []ProfileID) {
	t.Helper()
	type found struct {
		p     *view.Profile
		field int
		text  string
	}
	want := strings.ToLower(strings.TrimSpace(s.Text))
	var all []found
	for o := range accountOf(v).Profiles.Headers.Count {
		h := accountOf(v).Profiles.Headers.Get(o)
		if h.Winner != o || h.Flags&resolution.FlagErased != 0 || slices.ContainsFunc(s.Within, func(b *roaring.Bitmap) bool { return !b.Contains(o) }) {
			continue
		}
		p, err := v.Profiles().Get(o)
		if err != nil {
			t.Fatal(err)
		}
		if s.Status != "" && p.Status(s.Channel, s.AtMs) != s.Status {
			continue
		}
		var texts [5][]string
		for _, id := range p.Identities {
			text := strings.ToLower(strings.TrimSpace(id.Value))
			if id.Kind == IdentityPhone {
				text = strings.TrimPrefix(identity.NormalizePhone(id.Value), "+")
			}
			texts[id.Kind] = append(texts[id.Kind], text)
		}
		first, last := strings.ToLower(strings.TrimSpace(p.FirstName)), strings.ToLower(strings.TrimSpace(p.LastName))
		texts[3] = []string{strings.TrimSpace(first + " " + last)}
		if first != "" {
			texts[4] = []string{last}
		}
		best := found{p, len(texts), ""}
		for field, list := range texts {
			for _, text := range list {
				prefix := want
				if field == 2 {
					prefix = identity.NormalizePhone(want)
					if strings.Trim(want, "0123456789 +-()/.") != "" || strings.TrimPrefix(prefix, "+") == "" {
						continue
					}
					prefix = strings.TrimPrefix(prefix, "+")
				}
				if text == "" || !strings.HasPrefix(text, prefix) {
					continue
				}
				if text = string(clip.Text([]byte(text), 64)); field < best.field || field == best.field && text < best.text {
					best.field, best.text = field, text
				}
			}
		}
		if want == "" || best.field < len(texts) {
			all = append(all, best)
		}
	}
	at := func(p *view.Profile) int64 {
		if p.HasEvent() {
			return p.LastEventMs
		}
		return profile.NoEvent
	}
	slices.SortFunc(all, func(x, y found) int {
		older := cmp.Compare(x.p.Ordinal, y.p.Ordinal)
		switch s.Order {
		case search.OrderMatch:
			return cmp.Or(cmp.Compare(x.field, y.field), cmp.Compare(x.text, y.text), older)
		case search.OrderOldest:
			return older
		case search.OrderNewest:
			return -older
		}
		return cmp.Or(-cmp.Compare(at(x.p), at(y.p)), -older)
	})
	for _, x := range all {
		out = append(out, x.p.ID)
	}
	return out
}

// searchAll is what a search finds, page by page.
func searchAll(t *testing.T, v *View, s search.Query) (out []ProfileID) {
	t.Helper()
	for pages := 0; ; pages++ {
		page, err := v.Profiles().Search(&s)
		if err != nil || len(page.Profiles) > s.Limit || pages > 10_000 {
			t.Fatalf("%+v: page %d: %d profiles, %v", s, pages, len(page.Profiles), err)
		}
		for _, p := range page.Profiles {
			out = append(out, p.ID)
		}
		if page.Next == nil {
			return out
		}
		s.After = page.Next
	}
}

// searchWorld makes people whose texts have beginnings in common.
type searchWorld struct {
	rng *rand.Rand
	*durable
}

func (w *searchWorld) name() string {
	return pick(w.rng, "", "", "Ann", "anna", " ANNE ", "Annabel Lee", "Österreich", "ÖSTER", "Lee", "l", "4930", strings.Repeat("Lang", 15)+pick(w.rng, "", "en", "ö", "öö", "enfeld"))
}

func (w *searchWorld) email() string {
	return pick(w.rng, "ann", "Anna", "b", "ö", strings.Repeat("long", 16)) + fmt.Sprint(w.rng.IntN(12)) + "@x.org"
}

func (w *searchWorld) id() string {
	return pick(w.rng, "a", "A", "an", "49") + fmt.Sprint(w.rng.IntN(10))
}

func (w *searchWorld) phone() string {
	return pick(w.rng, "+49 30 ", "4930", "030/", "+4917") + fmt.Sprint(w.rng.IntN(8))
}

func (w *searchWorld) text() string {
	return pick(w.rng, "", "a", "an", "ANN", "ann", "anna", "anne l", "annabel lee", " Ann ", "ö", "ÖST", "4", "49", "+49 3", "030", "l", "lee", "zz", w.email(), w.name(), w.phone(), w.id(), strings.Repeat("lang", 15)+pick(w.rng, "", "e", "enf", "ö"))
}

func (w *searchWorld) anybody() string {
	a := w.m.accounts[testAccount]
	if a.Profiles.Headers.Count == 0 {
		return ""
	}
	return a.Profiles.Headers.Get(uint32(w.rng.IntN(int(a.Profiles.Headers.Count)))).ID.String()
}

func (w *searchWorld) step(lists []string) {
	some := func(s string) *string {
		if w.rng.IntN(2) == 0 {
			return nil
		}
		return &s
	}
	switch w.rng.IntN(10) {
	case 0, 1:
		c := contacts.Create{FirstName: w.name(), LastName: w.name(), Phone: pick(w.rng, "", w.phone()), ExternalID: pick(w.rng, "", w.id()), Email: pick(w.rng, "", w.email()), ListID: pick(w.rng, "", lists[0])}
		w.command(contacts.CommandCreate, c)
	case 2:
		w.command(contacts.CommandUpdate, contacts.Update{ID: w.anybody(), FirstName: some(w.name()), LastName: some(w.name()), Phone: some(w.phone()), Email: some(w.email())})
	case 3:
		w.command(CommandContactErase, ContactErase{ID: w.anybody()})
	case 4:
		w.command(erasure.CommandLift, erasure.Lift{Value: pick(w.rng, w.email(), w.phone(), w.id())})
	default:
		w.now += w.rng.Int64N(10_000_000)
		ev := eventlog.Event{Type: []byte("e")}
		for _, f := range []struct {
			dst  *[]byte
			text string
		}{{&ev.Email, w.email()}, {&ev.ExternalID, w.id()}, {&ev.Phone, w.phone()}, {&ev.FirstName, w.name()}, {&ev.LastName, w.name()}} {
			if w.rng.IntN(2) == 0 && f.text != "" {
				*f.dst = []byte(f.text)
			}
		}
		if w.rng.IntN(3) == 0 {
			ev.HasTime, ev.TimeMs = true, w.now-w.rng.Int64N(3_000_000)
		}
		w.events(ev)
	}
}

// TestSearchMatchesScan: whatever was made, merged, patched and erased, in memory, in a
// checkpoint that is being written or read back from one, a search lists what a look at
// all profiles finds, page by page.
func TestSearchMatchesScan(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count(6, 40)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { searchMatchesScan(t, uint64(seed)) })
	}
}

func searchMatchesScan(t *testing.T, seed uint64) {
	w := &searchWorld{rand.New(rand.NewPCG(seed, 5)), newDurable(t, DefaultSettings())}
	var list contacts.List
	if err := json.Unmarshal(w.command(contacts.CommandListCreate, contacts.ListSave{Name: "l"}).Reply, &list); err != nil {
		t.Fatal(err)
	}
	for round := range 25 {
		for range w.rng.IntN(30) {
			w.step([]string{list.ID})
		}
		switch w.rng.IntN(8) {
		case 0:
			w.reload()
		case 1:
			checkpointInPlace(t, w.m)
		case 2: // being written, half of it is
			f := w.m.Freeze()
			for range w.rng.IntN(20) {
				w.step([]string{list.ID})
			}
			w.compare(t, list, seed, round)
			if err := checkpoint.WriteGeneration(w.m.store.DB, f, nil, nil); err != nil {
				t.Fatal(err)
			}
			w.compare(t, list, seed, round)
			w.m.Thaw(checkpoint.Written{Segments: w.m.segmentFiles})
		case 3: // a build that knew no index wrote it
			hashOf(t, w.m)
			checkpointInPlace(t, w.m)
			if err := w.m.store.DB.Set(append(state.AccountKey(nil, state.TableProfileIndex, testAccount), "nstale\x00\x00\x00\x00\x00"...), nil, pebble.NoSync); err != nil {
				t.Fatal(err)
			}
			if _, err := w.m.Hash(); err == nil {
				t.Fatal("a stale key in the index is not found")
			}
			if err := search.Build(w.m.store, nil, w.m.hasAccount); err != nil {
				t.Fatal(err)
			}
		}
		w.compare(t, list, seed, round)
	}
	hashOf(t, w.m)
}

func (w *searchWorld) compare(t *testing.T, list contacts.List, seed uint64, round int) {
	t.Helper()
	v := w.m.View(nil, testAccount)
	for range 12 {
		s := search.Query{Text: w.text(), Limit: pick(w.rng, 1, 3, 1000), AtMs: w.now, Order: pick(w.rng, search.OrderNewest, search.OrderOldest, search.OrderLastEvent)}
		if s.Text != "" && w.rng.IntN(2) == 0 {
			s.Order = search.OrderMatch
		}
		if w.rng.IntN(3) == 0 {
			l, _ := v.Contacts().Find(list.ID)
			s.Within = append(s.Within, v.Contacts().Members(l))
		}
		if w.rng.IntN(3) == 0 {
			some := roaring.New()
			for o := range accountOf(v).Profiles.Headers.Count {
				if w.rng.IntN(2) == 0 {
					some.Add(o)
				}
			}
			s.Within = append(s.Within, some)
		}
		if w.rng.IntN(4) == 0 {
			s.Channel, s.Status = pick(w.rng, "email", "sms"), pick(w.rng, view.StatusSubscribed, view.StatusPending)
		}
		if got, want := searchAll(t, v, s), searchOracle(t, v, &s); !slices.Equal(got, want) {
			t.Fatalf("seed %d, round %d: %+v finds %d profiles, a look at all %d\n%v\n%v", seed, round, s, len(got), len(want), got, want)
		}
	}
	for range 4 {
		kind, value := IdentityPhone, w.phone()
		if w.rng.IntN(2) == 0 {
			kind, value = IdentityExternalID, w.id()
		}
		got, err := v.Profiles().Holders(kind, value, 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		var want []uint32
		for o := range accountOf(v).Profiles.Headers.Count {
			if h := accountOf(v).Profiles.Headers.Get(o); h.Winner == o && h.Flags&resolution.FlagErased == 0 {
				p, err := v.Profiles().Get(o)
				if err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(p.Identities, func(id view.Identity) bool { return id.Kind == kind && normal(kind, id.Value) == normal(kind, value) }) {
					want = append(want, o)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, round %d: %s %q is held by %v, expected %v", seed, round, kind, value, got, want)
		}
	}
}

// TestSearchIsBounded: a page does a bounded amount of work, and leads on; what would
// have to be sorted as a whole is refused.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	// The bounds of a page, as in package search.
	const searchDocuments, searchKeys = 1000, 20_000
	const n = 2*searchDocuments + 500
	var evs []eventlog.Event
	for i := range n {
		evs = append(evs, eventlog.Event{Type: []byte("e"), ExternalID: []byte(fmt.Sprintf("x%05d", i)), FirstName: []byte(strings.Repeat("same", 17))})
	}
	r.events(evs...)
	v := r.m.View(nil, testAccount)
	everybody := roaring.New() // may be bounced, as if all were suppressed
	everybody.AddRange(0, n)
	r.m.accounts[testAccount].Sets.Set("reach/email/blocked").Assign(everybody)
	for _, s := range []search.Query{
		{Text: "x", Order: search.OrderMatch, Channel: "email", Status: view.StatusBounced},
		{Order: search.OrderNewest, Channel: "email", Status: view.StatusBounced},
		{Order: search.OrderLastEvent, Channel: "email", Status: view.StatusBounced},
		{Text: strings.Repeat("same", 16) + "not", Order: search.OrderMatch},
	} {
		s.Limit = 10
		page, err := v.Profiles().Search(&s)
		if err != nil || len(page.Profiles) != 0 || page.Next == nil {
			t.Errorf("%+v: %d profiles, next %v, %v; expected an empty page that leads on", s, len(page.Profiles), page.Next, err)
		}
		if got := searchAll(t, v, s); len(got) != 0 {
			t.Errorf("%+v finds %d profiles", s, len(got))
		}
	}
	for r.m.accounts[testAccount].Profiles.Headers.Count <= searchKeys {
		evs = evs[:0]
		for i := range 2000 {
			evs = append(evs, eventlog.Event{Type: []byte("e"), ExternalID: []byte(fmt.Sprintf("y%d-%d", r.m.next, i))})
		}
		r.events(evs...)
	}
	if _, err := v.Profiles().Search(&search.Query{Text: "Y", Order: search.OrderNewest, Limit: 10}); err != nil && !errors.Is(err, search.ErrTooMany) {
		t.Error(err)
	}
	evs = append(evs[:0], eventlog.Event{Type: []byte("e"), ExternalID: []byte("y")})
	for i := range searchKeys {
		evs = append(evs, eventlog.Event{Type: []byte("e"), ExternalID: []byte(fmt.Sprintf("yy%d", i))})
	}
	r.events(evs...)
	if _, err := v.Profiles().Search(&search.Query{Text: "Y", Order: search.OrderNewest, Limit: 10}); !errors.Is(err, search.ErrTooMany) {
		t.Errorf("sorting what is too much: %v", err)
	}
	if page, err := v.Profiles().Search(&search.Query{Text: "Y", Order: search.OrderMatch, Limit: 10}); err != nil || len(page.Profiles) != 10 {
		t.Errorf("by match: %d profiles, %v", len(page.Profiles), err)
	}
}
