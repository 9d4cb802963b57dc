package inapp

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// testHost counts messages that were not seen, by campaign and profile.
type testHost struct {
	sets    *profile.OrdinalSets
	expired map[string]bool
}

func (h *testHost) Expired(campaign string, ordinal uint32) {
	h.expired[fmt.Sprint(campaign, " ", ordinal)] = true
}

func (h *testHost) DropSet(name string) { h.sets.Drop(name, func(uint16) {}) }

// naive has all inboxes as plain lists, and looks at everything each time.
type naive struct {
	boxes   map[uint32][]Message
	expired map[string]bool
}

// tidy drops what has ended by an instant, and what there is no room for.
func (n *naive) tidy(o uint32, nowMs int64) {
	var left []Message
	for _, m := range n.boxes[o] {
		if m.ExpiresMs <= nowMs {
			if m.SeenMs == 0 && m.DismissedMs == 0 && m.Campaign != "" {
				n.expired[fmt.Sprint(m.Campaign, " ", o)] = true
			}
			continue
		}
		left = append(left, m)
	}
	slices.SortStableFunc(left, func(x, y Message) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
	})
	for len(left) > MaxMessages || len(must.JSON(left))-1 > MaxBytes {
		left = left[1:]
	}
	n.boxes[o] = left
}

func (n *naive) add(o uint32, m Message, nowMs int64) {
	for _, x := range n.boxes[o] {
		if x.Origin == m.Origin && x.ExpiresMs > nowMs {
			return
		}
	}
	n.boxes[o] = append(n.boxes[o], m)
	n.tidy(o, nowMs)
}

func (n *naive) merge(winner, merged uint32, nowMs int64) {
	if len(n.boxes[merged]) == 0 {
		return
	}
	byOrigin := map[string][]Message{}
	for _, o := range []uint32{winner, merged} {
		for _, m := range n.boxes[o] {
			if m.ExpiresMs <= nowMs {
				if m.SeenMs == 0 && m.DismissedMs == 0 && m.Campaign != "" {
					n.expired[fmt.Sprint(m.Campaign, " ", winner)] = true
				}
				continue
			}
			byOrigin[m.Origin] = append(byOrigin[m.Origin], m)
		}
	}
	first := func(x, y int64) int64 {
		if x == 0 || y != 0 && y < x {
			return y
		}
		return x
	}
	n.boxes[winner], n.boxes[merged] = nil, nil
	for _, list := range byOrigin {
		m := slices.MinFunc(list, func(x, y Message) int {
			return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), strings.Compare(x.ID, y.ID))
		})
		for _, x := range list {
			m.SeenMs, m.ClickedMs, m.DismissedMs = first(m.SeenMs, x.SeenMs), first(m.ClickedMs, x.ClickedMs), first(m.DismissedMs, x.DismissedMs)
		}
		n.boxes[winner] = append(n.boxes[winner], m)
	}
	n.tidy(winner, nowMs)
}

// fingerprinted is what is stored of an inbox, with its fingerprint.
type fingerprinted struct {
	inbox string
	print uint64
}

// TestInboxesMatchNaive sends, repeats, marks, merges, erases, and lets messages end at random,
// and compares all inboxes with a naive account of them. The fingerprint of an inbox changes when
// what is stored of it does, and at no other time.
func TestInboxesMatchNaive(t *testing.T) {
	for seed := range testlevel.Count[uint64](2, 8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 5))
			sets := profile.NewOrdinalSets()
			h := &testHost{sets, map[string]bool{}}
			fresh := func(store *state.Store) *State {
				return New(featuretest.Account, &Shared{Store: store}, sets, h)
			}
			w := featuretest.New(t, Commands, fresh)
			n := &naive{map[uint32][]Message{}, map[string]bool{}}
			people := uint32(2 + rng.IntN(3))
			gone := map[uint32]bool{}
			kinds := []int{8, 200}[seed%2] // few have merges of what was done, many fill inboxes
			body := strings.Repeat("x", int(seed/2%2)*card.MaxBodyBytes)
			prints := map[uint32]fingerprinted{}
			for step := range 800 {
				w.Now += rng.Int64N(hourMs)
				o := rng.Uint32N(people)
				if gone[o] {
					continue
				}
				tx := w.Tx()
				switch what := rng.IntN(20); {
				case what < 11:
					m := Message{ID: fmt.Sprintf("m%d", step), Campaign: fmt.Sprintf("c%d", rng.IntN(kinds)), Card: card.Card{Title: "t", Body: body, Options: card.Options{TTLHours: 1 + rng.IntN(10*kinds), Priority: rng.IntN(3)}}}
					m.Origin = m.Campaign
					w.State.Add(tx, o, m)
					m.CreatedMs, m.ExpiresMs = w.Now, w.Now+int64(m.TTLHours)*hourMs
					n.add(o, m, w.Now)
				case what < 17:
					list := n.boxes[o]
					if len(list) == 0 {
						continue
					}
					m, deed := &list[rng.IntN(len(list))], Deeds[rng.IntN(len(Deeds))]
					_, done, seen, ok := w.State.Mark(tx, o, m.ID, deed)
					if ok != (m.ExpiresMs > w.Now) {
						t.Fatalf("step %d: %s of %s: %v", step, deed, m.ID, ok)
					}
					if at := m.at(deed); ok && done != (*at == 0) || seen != (ok && done && deed == Clicked && m.SeenMs == 0) {
						t.Fatalf("step %d: %s of %s is done: %v, seen: %v", step, deed, m.ID, done, seen)
					}
					if done {
						*m.at(deed) = w.Now
						if seen {
							m.SeenMs = w.Now
						}
						n.tidy(o, w.Now)
					}
				case what < 18:
					other := rng.Uint32N(people)
					if other == o || gone[other] || rng.IntN(3) > 0 {
						continue
					}
					w.State.Merge(tx, o, other)
					n.merge(o, other, w.Now)
				case what < 19:
					if rng.IntN(10) > 0 { // else no inbox grows full
						continue
					}
					if err := w.State.Erase(tx, o); err != nil {
						t.Fatal(err)
					}
					delete(n.boxes, o)
					gone[o] = len(gone) < 1
				default:
					w.State.Advance(tx)
					for x := range people { // hours that are over
						n.tidy(x, w.Now/hourMs*hourMs)
					}
				}
				if rng.IntN(50) == 0 { // as from a checkpoint
					w.State = fresh(w.Store)
					if err := w.State.Open(0); err != nil {
						t.Fatal(err)
					}
				}
				w.Hash()
				for x := range people {
					got, err := w.State.Inbox(x, w.Now)
					if err != nil {
						t.Fatal(err)
					}
					var want []Message
					for _, m := range n.boxes[x] {
						if m.ExpiresMs > w.Now {
							want = append(want, m)
						}
					}
					slices.SortFunc(want, func(a, b Message) int {
						return cmp.Or(b.Priority-a.Priority, cmp.Compare(b.CreatedMs, a.CreatedMs), strings.Compare(b.ID, a.ID))
					})
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Fatalf("step %d: the inbox of %d is\n%v, want\n%v", step, x, got, want)
					}
					var now fingerprinted
					if sets.Members(setInboxes).Contains(x) {
						b, err := w.Store.Entity(w.State.key(x))
						if err != nil {
							t.Fatal(err)
						}
						now.inbox = string(b)
					}
					if now.print, err = w.State.Fingerprint(x); err != nil {
						t.Fatal(err)
					}
					if old, ok := prints[x]; ok && (old.print == now.print) != (old.inbox == now.inbox) || (now.print == 0) != (now.inbox == "") {
						t.Fatalf("step %d: the fingerprint of the inbox of %d goes from %x to %x, and the inbox changes: %v", step, x, old.print, now.print, old.inbox != now.inbox)
					}
					prints[x] = now
				}
			}
			w.Now += (maxHoursKept + 1) * hourMs
			for range 100 {
				w.State.Advance(w.Tx())
			}
			for x := range people {
				n.tidy(x, w.Now)
			}
			for name, s := range sets.All() {
				if !s.Bits.IsEmpty() {
					t.Errorf("the set %q has %d profiles after all ended", name, s.Bits.GetCardinality())
				}
			}
			if fmt.Sprint(h.expired) != fmt.Sprint(n.expired) {
				t.Errorf("unseen messages that ended: %v, want %v", h.expired, n.expired)
			}
		})
	}
}

// maxHoursKept is longer than any message stays.
const maxHoursKept = card.MaxTTLHours

// TestSecrets: the newest secret holds for good, the one before for a while, and no third one.
func TestSecrets(t *testing.T) {
	sets := profile.NewOrdinalSets()
	w := featuretest.New(t, Commands, func(store *state.Store) *State {
		return New(featuretest.Account, &Shared{Store: store}, sets, &testHost{})
	})
	one, two, three := strings.Repeat("1", 40), strings.Repeat("2", 40), strings.Repeat("3", 40)
	valid := func(want ...string) {
		t.Helper()
		s := w.State.Settings()
		if got := s.Valid(w.Now); !slices.Equal(got, want) {
			t.Errorf("%v hold, want %v", got, want)
		}
	}
	valid()
	w.Must(CommandRotate, Rotate{Secret: one})
	valid(one)
	w.Must(CommandRotate, Rotate{Secret: two, OverlapHours: 2})
	valid(two, one)
	w.Must(CommandRotate, Rotate{Secret: three, OverlapHours: 1})
	valid(three, two)
	w.Now += hourMs
	valid(three)
	w.Must(CommandConfigure, Configure{AllowedOrigins: []string{"https://Shop.example", "https://shop.example", "*"}})
	if s := w.State.Settings(); !slices.Equal(s.AllowedOrigins, []string{"https://shop.example", "*"}) || len(s.Secrets) != 2 {
		t.Errorf("%+v", s)
	}
	if text := fmt.Sprintf("%v %+v %#v", w.State.Settings(), w.State.Settings(), w.State.Settings()); strings.Contains(text, three) {
		t.Error("a secret is shown")
	}
	for want, c := range map[string]Rotate{"secret must have": {Secret: "short"}, "overlap_hours must be": {Secret: one, OverlapHours: 169}} {
		if _, r := w.Do(CommandRotate, c); r == nil || !strings.Contains(r.Message, want) {
			t.Errorf("%+v: %v", c, r)
		}
	}
	for want, list := range map[string][]string{"is no origin": {"shop.example"}, "at most 50": make([]string, 51)} {
		if _, r := w.Do(CommandConfigure, Configure{list}); r == nil || !strings.Contains(r.Message, want) {
			t.Errorf("%v: %v", list, r)
		}
	}
}
