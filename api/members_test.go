package api

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

type membersAnswer struct {
	Members []string
	Next    *string
	AsOf    string `json:"as_of"`
}

// TestMembers: pages are in order, also while the segment is building, and
// belong to one definition.
func TestMembers(t *testing.T) {
	t.Parallel()
	h := &memHistory{}
	s := newService(t, h, nil)
	ids := s.fill(25)
	release := h.holdReplays()
	seg := s.segment("Buyers", buyers)
	var want []string
	for i := 0; i < len(ids); i += 2 {
		want = append(want, ids[i])
	}
	path := "/segments/" + seg.ID + "/members"
	check := func(pages ...int) (next string) {
		t.Helper()
		var got []string
		for _, limit := range pages {
			var m membersAnswer
			s.want("GET", fmt.Sprintf("%s?limit=%d%s", path, limit, next), "", &m)
			if got = append(got, m.Members...); m.Next == nil {
				next = ""
				break
			}
			if len(m.Members) != limit {
				t.Errorf("a page of %d has %d members", limit, len(m.Members))
			}
			next = "&cursor=" + *m.Next
		}
		if !slices.Equal(got, want[:len(got)]) {
			t.Errorf("have %q, want the beginning of %q", got, want)
		}
		if next == "" && len(got) != len(want) {
			t.Errorf("%d members in all, want %d", len(got), len(want))
		}
		return next
	}
	check(100)
	check(13)
	check(5, 5, 5)
	next := check(5)
	release()
	s.live(seg.ID)
	if check(100); check(13) != "" {
		t.Error("a full last page has a next one")
	}
	check(5, 5, 5)
	// A cursor continues whether the segment is building or live.
	var m membersAnswer
	s.want("GET", path+"?limit=5"+next, "", &m)
	if !slices.Equal(m.Members, want[5:10]) {
		t.Errorf("behind a cursor from before: %q", m.Members)
	}
	s.want("PUT", "/segments/"+seg.ID, `{"name":"Buyers","definition":`+spender+`}`, nil)
	for _, wait := range []func(){func() {}, func() { s.live(seg.ID) }} {
		wait()
		if status, a := s.get(path + "?limit=5" + next); status != 400 || a.field() != "cursor" {
			t.Errorf("a cursor of an earlier definition: %d %s", status, a.Message)
		}
	}
	if status, a := s.get(path + "?cursor=AgAAAAA"); status != 400 || a.field() != "cursor" {
		t.Errorf("half a cursor: %d %s", status, a.Message)
	}
}

// TestMembersUnderChange: while others enter, and leave by an event or because
// time passes, a profile that is a member throughout is on exactly one page, and
// none is on two. Every page is exact at its own instant.
func TestMembersUnderChange(t *testing.T) {
	t.Parallel()
	for _, building := range []bool{false, true} {
		t.Run(fmt.Sprintf("building=%v", building), func(t *testing.T) {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			h := &memHistory{}
			s := newService(t, h, nil)
			const people, window = 60, 24 * time.Hour
			ids := make([]string, people)
			last := make([]time.Time, people) // of the purchase
			for i := range ids {
				ids[i] = s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"p%d@x.io"}}`, i))
			}
			buy := func(i int) {
				last[i] = s.clock.Now()
				s.event(fmt.Sprintf(`{"event_type":"item_purchased","user":{"email":"p%d@x.io"}}`, i))
			}
			member := func(i int) bool { return !last[i].IsZero() && s.clock.Now().Sub(last[i]) < window }
			if building {
				defer h.holdReplays()()
			}
			seg := s.segment("Buyers", `{"kind":"activity","event":"item_purchased","window":{"last_days":1}}`)
			if !building {
				s.live(seg.ID)
			}
			entered, left := 0, 0
			for range 8 {
				for i := range people {
					if r.IntN(2) == 0 {
						buy(i)
					}
				}
				throughout := make([]bool, people)
				for i := range people {
					throughout[i] = member(i)
				}
				pages := map[string]int{}
				for next := ""; ; {
					was := make([]bool, people)
					for i := range was {
						was[i] = member(i)
					}
					var m membersAnswer
					s.want("GET", "/segments/"+seg.ID+"/members?limit=4"+next, "", &m)
					at, err := time.Parse(time.RFC3339, m.AsOf)
					if ok(t, err); !at.Equal(s.clock.Now()) {
						t.Errorf("a page is of %s, want %s", at, s.clock.Now())
					}
					for _, id := range m.Members {
						pages[id]++
						if i := slices.Index(ids, id); i < 0 || !was[i] {
							t.Fatalf("seed %d: %s is on a page and no member", seed, id)
						}
					}
					if m.Next == nil {
						break
					}
					next = "&cursor=" + *m.Next
					s.clock.Advance(time.Duration(r.Int64N(window.Milliseconds()/15)) * time.Millisecond) // to the end of it, some are gone
					for range r.IntN(3) {
						buy(r.IntN(people))
					}
					for i := range was {
						switch is := member(i); {
						case is && !was[i]:
							entered++
						case !is && was[i]:
							left++
						}
						throughout[i] = throughout[i] && member(i)
					}
				}
				for i, id := range ids {
					if pages[id] > 1 || throughout[i] && pages[id] != 1 {
						t.Fatalf("seed %d: %s is on %d pages; a member throughout: %v", seed, id, pages[id], throughout[i])
					}
				}
			}
			if entered == 0 || left == 0 {
				t.Errorf("seed %d: %d entered, %d left between pages: nothing was tested", seed, entered, left)
			}
		})
	}
}
