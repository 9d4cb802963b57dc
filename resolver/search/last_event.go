package search

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/profile"
)

// LastEvents are the headers of an account's profiles at one state, to find those with
// the latest events. It does not change with the account.
type LastEvents struct {
	search *Query
	found  *roaring.Bitmap
	pages  []*profile.HeaderPage
	places []Place
	room   int
}

// ByLastEvent begins a search in [OrderLastEvent]: [LastEvents.Rank] follows, where
// the state may change meanwhile, and then [Search] of the same account. The error is that
// of Search.
func ByLastEvent(a Account, s *Query) (*LastEvents, error) {
	w := &searching{account: a, Query: s}
	w.normalize()
	found, err := w.found()
	switch {
	case err != nil:
		return nil, err
	case a.Headers().Count > searchSorted:
		return nil, ErrTooMany
	case s.Text == "" && len(w.sets) == 0:
		found = found.Clone() // the engine's own
	}
	room := s.Limit
	if s.Status != "" || s.Text != "" {
		room += searchDocuments
	}
	return &LastEvents{search: s, found: found, pages: a.Headers().Share(), room: room}, nil
}

// Rank finds the first places behind that of the search. What changes meanwhile changes
// nothing of it.
func (l *LastEvents) Rank() {
	type page struct {
		newest int64
		at     int
	}
	pages := make([]page, len(l.pages))
	for i, p := range l.pages {
		pages[i] = page{p.NewestEvent(), i}
	}
	slices.SortFunc(pages, func(x, y page) int { return cmp.Or(cmp.Compare(y.newest, x.newest), cmp.Compare(y.at, x.at)) })
	best, after := newBestPlaces(l.room), l.search.After
	for _, p := range pages {
		first := Place{AtMs: p.newest, Ordinal: uint32(p.at*profile.PageRows + profile.PageRows - 1)} // that the page could have
		if best.full && first.earlier(&best.behind) {
			break // nor can one that follows
		}
		rows := &l.pages[p.at].Rows
		// The latest made first: most of those who follow are then not among the best,
		// which is asked before whether they were found.
		for j := profile.PageRows - 1; j >= 0; j-- {
			place := Place{AtMs: rows[j].LastEvent, Ordinal: uint32(p.at*profile.PageRows + j)}
			if !profile.HasEvent(place.AtMs) {
				place.AtMs = profile.NoEvent
			}
			if best.full && place.earlier(&best.behind) {
				continue
			}
			if (after == nil || place.earlier(after)) && l.found.Contains(place.Ordinal) {
				best.add(place)
			}
		}
	}
	l.places = best.sorted()
	l.search.ranked, l.found, l.pages = l, nil, nil
}

// walkByLastEvent lists the profiles by their last events.
func (w *searching) walkByLastEvent() error {
	if w.ranked == nil {
		l, err := ByLastEvent(w.account, w.Query)
		if err != nil {
			return err
		}
		l.Rank()
	}
	l := w.ranked
	w.ranked = nil // the next page has places of its own
	for _, place := range l.places {
		if !w.account.All().Contains(place.Ordinal) {
			continue // merged or erased meanwhile
		}
		if more, err := w.look(place); err != nil || !more {
			return err
		}
	}
	if len(l.places) == l.room {
		w.next = &l.places[l.room-1]
	}
	return nil
}

// earlier reports whether a place stands behind another in OrderLastEvent.
func (p *Place) earlier(q *Place) bool {
	return p.AtMs < q.AtMs || p.AtMs == q.AtMs && p.Ordinal < q.Ordinal
}

// bestPlaces are the first places in OrderLastEvent, room of them.
type bestPlaces struct {
	room   int
	list   []Place // sorted now and then
	full   bool    // list has as many, and
	behind Place   // what stands behind this one is not among them
}

func newBestPlaces(room int) *bestPlaces {
	return &bestPlaces{room: room, list: make([]Place, 0, 2*room+1024)}
}

func (b *bestPlaces) add(place Place) {
	if b.full && place.earlier(&b.behind) {
		return
	}
	if b.list = append(b.list, place); len(b.list) == cap(b.list) {
		b.sorted()
	}
}

// sorted are the places in order.
func (b *bestPlaces) sorted() []Place {
	slices.SortFunc(b.list, func(x, y Place) int {
		return cmp.Or(cmp.Compare(y.AtMs, x.AtMs), cmp.Compare(y.Ordinal, x.Ordinal))
	})
	if len(b.list) >= b.room {
		b.list = b.list[:b.room]
		b.full, b.behind = true, b.list[b.room-1]
	}
	return b.list
}
