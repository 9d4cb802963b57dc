package resolver

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// ProfileOrder is an order in which profiles are listed.
type ProfileOrder byte

// The orders there are. Numbers are in cursors.
const (
	// OrderMatch: by what begins with the text that is searched: e-mails first, then
	// external ids, phones, full names, last names, each in order of texts.
	OrderMatch ProfileOrder = 1 + iota
	// OrderNewest and OrderOldest: as profiles were made.
	OrderNewest
	OrderOldest
	// OrderLastEvent: the profile with the latest event first, those without one last.
	OrderLastEvent
)

// ErrTooManyProfiles says that a search finds too many profiles to sort them.
var ErrTooManyProfiles = errors.New("too many profiles to sort")

// The bounds of one page of a search. Requests wait for it, and so does Apply.
const (
	// searchDocuments is how many profiles are read that the page then does not show.
	searchDocuments = 1000
	// searchKeys is how many entries of the index are passed over, and how many
	// profiles may match a text where they are to be sorted otherwise.
	searchKeys = 20_000
	// searchSorted is how many profiles an account may ever have had for them to be
	// sorted by their last event.
	searchSorted = 2 << 20
)

// ProfileSearch says which profiles are listed.
type ProfileSearch struct {
	// Text is what an identifier or a name of the profile begins with; "" is all.
	Text  string
	Order ProfileOrder // OrderMatch needs a text
	// Within are sets that the profiles are in, all of them. Anonymous profiles are listed
	// only where there are sets.
	Within []*roaring.Bitmap
	// Channel and Status are a channel and the status that the profiles have there at
	// AtMs, Unix milliseconds; Status "" is any.
	Channel, Status string
	AtMs            int64
	After           *ProfilePlace // nil is the beginning
	Limit           int           // profiles

	ranked *LastEvents // with OrderLastEvent, nil before it was worked out
}

// ProfilePlace is a place in the order of a search.
type ProfilePlace struct {
	Field   byte   // with OrderMatch
	Text    string // with OrderMatch
	AtMs    int64  // with OrderLastEvent
	Ordinal uint32
}

// ProfilePage is a part of what a search finds. With a Next there may be more, even
// where the page is empty: the work of a page is bounded.
type ProfilePage struct {
	Profiles []*Profile
	Next     *ProfilePlace
}

// searching is a search under way.
type searching struct {
	*View
	*ProfileSearch
	sets  []*roaring.Bitmap // that the profiles are in, beyond which nothing is looked at
	texts [256][]byte       // what is searched for, by field of the index; nil for not there
	out   ProfilePage
	read  int // profiles read that the page does not show
	doc   profile.Document
	buf   []byte
}

// SearchProfiles lists profiles. Errors are [ErrTooManyProfiles] and the store's.
func (v *View) SearchProfiles(s *ProfileSearch) (ProfilePage, error) {
	w := &searching{View: v, ProfileSearch: s}
	w.normalize()
	var err error
	switch s.Order {
	case OrderMatch:
		if set := w.smallest(); set != nil && set.GetCardinality() <= searchDocuments {
			err = w.sortMatches(set)
		} else {
			err = w.walkMatches()
		}
	case OrderLastEvent:
		err = w.walkByLastEvent()
	default:
		err = w.walkByAge()
	}
	return w.out, err
}

// searchFields are the fields of the index, in order.
var searchFields = [...]byte{indexEmail, indexExternalID, indexPhone, indexName, indexLastName}

// normalize works out which sets the profiles are in, and what each field's texts are to begin with. Digits, and what stands
// between them in a phone number, may be one.
func (w *searching) normalize() {
	w.sets = slices.Clip(w.Within)
	if w.Status != "" && w.View != nil {
		w.sets = append(w.sets, w.withStatus(w.Channel, w.Status))
	}
	for _, f := range searchFields {
		if f == indexPhone && strings.Trim(w.Text, "0123456789 +-()/.") != "" {
			continue
		}
		if t := appendSearched(nil, f, []byte(w.Text)); len(t) > 0 {
			w.texts[f] = t
		}
	}
}

// smallest is the smallest set that the profiles are in, nil where they are in none.
func (w *searching) smallest() *roaring.Bitmap {
	if len(w.sets) == 0 {
		return nil
	}
	return slices.MinFunc(w.sets, func(x, y *roaring.Bitmap) int {
		return int(int64(x.GetCardinality()) - int64(y.GetCardinality()))
	})
}

func (w *searching) within(o uint32) bool {
	if w.View != nil && len(w.Within) == 0 && w.a.engine.Anonymous().Contains(o) {
		return false
	}
	return !slices.ContainsFunc(w.sets, func(set *roaring.Bitmap) bool { return !set.Contains(o) })
}

// match is the place of a profile in OrderMatch, which is the first of those that its
// texts give it; not ok is one that does not match. Its document is then in w.doc.
func (w *searching) match(o uint32) (place ProfilePlace, ok bool, err error) {
	if err := w.decode(o, &w.doc); err != nil {
		return place, false, err
	}
	place, ok = w.placeOf(o, &w.doc)
	return place, ok, nil
}

func (w *searching) placeOf(o uint32, d *profile.Document) (place ProfilePlace, ok bool) {
	searched(d, &w.buf, func(field byte, text []byte) {
		want := w.texts[field]
		if want == nil || !bytes.HasPrefix(text, want) {
			return
		}
		cut := string(cutText(text))
		if !ok || field == place.Field && cut < place.Text {
			place, ok = ProfilePlace{Field: field, Text: cut, Ordinal: o}, true
		}
	})
	return place, ok
}

// take shows the profile in w.doc, if it has the status. It returns whether the page
// has room for more.
func (w *searching) take(place ProfilePlace) (more bool) {
	p := w.profile(place.Ordinal, &w.doc)
	if w.Order == OrderLastEvent {
		p.LastEventMs = place.AtMs // there may have been another since the places were found
	}
	if w.Status != "" && p.Status(w.Channel, w.AtMs) != w.Status {
		return w.pass(place)
	}
	w.out.Profiles = append(w.out.Profiles, p)
	if len(w.out.Profiles) == w.Limit {
		w.out.Next = &place
		return false
	}
	return true
}

// pass passes over a profile that was read. It returns whether more may be.
func (w *searching) pass(place ProfilePlace) (more bool) {
	if w.read++; w.read >= searchDocuments {
		w.out.Next = &place
		return false
	}
	return true
}

// walkMatches goes through the index from the place on.
func (w *searching) walkMatches() error {
	keys := 0
	for _, f := range searchFields {
		if w.texts[f] == nil || w.After != nil && f < w.After.Field {
			continue
		}
		lower := append(indexPrefix(nil, w.a.number, f), cutText(w.texts[f])...)
		upper := state.After(lower)
		if w.After != nil && f == w.After.Field {
			behind := append(indexKey(nil, w.a.number, f, []byte(w.After.Text), w.After.Ordinal), 0)
			if bytes.Compare(behind, lower) > 0 {
				lower = behind
			}
		}
		more, err := w.walkKeys(f, lower, upper, &keys)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (w *searching) walkKeys(field byte, lower, upper []byte, keys *int) (more bool, err error) {
	it, err := w.m.store.IndexFrom(lower, upper)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for it.Next() {
		text, o := splitIndexKey(it.Key)
		*keys++
		if w.within(o) {
			place, ok, err := w.match(o)
			if err != nil {
				return false, err
			}
			switch here := (ProfilePlace{Field: field, Text: string(text), Ordinal: o}); {
			case !ok || place != here: // it is listed by another text
				more = w.pass(here)
			default:
				more = w.take(here)
			}
			if !more {
				return false, nil
			}
		}
		if *keys >= searchKeys {
			w.out.Next = &ProfilePlace{Field: field, Text: string(text), Ordinal: o}
			return false, nil
		}
	}
	return true, nil
}

// sortMatches lists the few profiles of a set that match.
func (w *searching) sortMatches(set *roaring.Bitmap) error {
	var places []ProfilePlace
	for it := set.Iterator(); it.HasNext(); {
		o := it.Next()
		if !w.within(o) || !w.a.engine.Universe().Contains(o) {
			continue
		}
		place, ok, err := w.match(o)
		if err != nil {
			return err
		}
		if ok && (w.After == nil || place.compare(w.After) > 0) {
			places = append(places, place)
		}
	}
	slices.SortFunc(places, func(x, y ProfilePlace) int { return x.compare(&y) })
	return w.show(places)
}

// compare compares places in OrderMatch.
func (p *ProfilePlace) compare(q *ProfilePlace) int {
	var x, y []byte
	return bytes.Compare(indexKey(x, 0, p.Field, []byte(p.Text), p.Ordinal), indexKey(y, 0, q.Field, []byte(q.Text), q.Ordinal))
}

// show shows the profiles at places.
func (w *searching) show(places []ProfilePlace) error {
	for _, place := range places {
		if err := w.decode(place.Ordinal, &w.doc); err != nil {
			return err
		}
		if !w.take(place) {
			return nil
		}
	}
	return nil
}

// found are the profiles that match and are in all sets, but for texts that are longer
// than those of the index: they may match or not.
func (w *searching) found() (*roaring.Bitmap, error) {
	out := w.a.engine.Universe()
	if len(w.Within) == 0 {
		out = w.identified()
	}
	if w.Text != "" {
		matching := roaring.New()
		keys := 0
		for _, f := range searchFields {
			if w.texts[f] == nil {
				continue
			}
			lower := append(indexPrefix(nil, w.a.number, f), cutText(w.texts[f])...)
			it, err := w.m.store.IndexFrom(lower, state.After(lower))
			if err != nil {
				return nil, err
			}
			for it.Next() {
				if keys++; keys > searchKeys {
					return nil, errors.Join(ErrTooManyProfiles, it.Close())
				}
				_, o := splitIndexKey(it.Key)
				matching.Add(o)
			}
			if err := it.Close(); err != nil {
				return nil, err
			}
		}
		out = roaring.And(out, matching)
	}
	for _, set := range w.sets {
		out = roaring.And(out, set)
	}
	return out, nil
}

// look looks at a profile that was found. It returns whether more may be.
func (w *searching) look(place ProfilePlace) (more bool, err error) {
	_, ok, err := w.match(place.Ordinal)
	switch {
	case err != nil:
		return false, err
	case !ok && w.Text != "":
		return w.pass(place), nil
	}
	return w.take(place), nil
}

// walkByAge lists the profiles as they were made.
func (w *searching) walkByAge() error {
	found, err := w.found()
	if err != nil || found.IsEmpty() {
		return err
	}
	next := func(from int64) int64 { return found.NextValue(uint32(from)) }
	from, step := int64(0), int64(1)
	if w.Order == OrderNewest {
		next = func(from int64) int64 { return found.PreviousValue(uint32(from)) }
		from, step = int64(found.Maximum()), -1
	}
	if w.After != nil {
		from = int64(w.After.Ordinal) + step
	}
	for from >= 0 && from < int64(profile.NoOrdinal) {
		o := next(from)
		if o < 0 {
			return nil
		}
		if more, err := w.look(ProfilePlace{Ordinal: uint32(o)}); err != nil || !more {
			return err
		}
		from = o + step
	}
	return nil
}

// Holders lists the profiles that show an identifier, the one that it identifies and
// those that share it, in order of ordinals from one on, limit at most.
func (v *View) Holders(kind IdentityKind, value string, from uint32, limit int) (out []uint32, err error) {
	var buf []byte
	h, ok := v.a.hasher.HashIdentifier(kind, []byte(value), &buf)
	if !ok {
		return nil, nil
	}
	field := '0' + byte(kind)
	text := appendSearched(nil, field, []byte(value))
	if len(text) == 0 {
		return nil, nil
	}
	lower := indexKey(nil, v.a.number, field, text, from)
	it, err := v.m.store.IndexFrom(lower, state.After(lower[:len(lower)-4]))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var d profile.Document
	for len(out) < limit && it.Next() {
		_, o := splitIndexKey(it.Key)
		if err := v.decode(o, &d); err != nil {
			return nil, err
		}
		// The index folds what identifiers tell apart: cases, a plus, what is cut off.
		if slices.ContainsFunc(d.Identifiers, func(id profile.Identifier) bool {
			have, _ := v.a.hasher.HashIdentifier(kind, id.Value, &buf)
			return id.Kind == kind && have == h
		}) {
			out = append(out, o)
		}
	}
	return out, nil
}

// ListMembers are the profiles on a list. The answer must not be changed, and is valid
// as long as the view.
func (v *View) ListMembers(l List) *roaring.Bitmap { return v.a.members(listSet(l.Number)) }

// PlaceOf is the place of a profile that the search lists.
func (s *ProfileSearch) PlaceOf(p *Profile) *ProfilePlace {
	place := &ProfilePlace{Ordinal: p.Ordinal}
	switch s.Order {
	case OrderMatch:
		d := profile.Document{FirstName: []byte(p.FirstName), LastName: []byte(p.LastName)}
		for _, id := range p.Identities {
			d.Identifiers = append(d.Identifiers, profile.Identifier{Kind: id.Kind, Value: []byte(id.Value)})
		}
		w := &searching{ProfileSearch: s}
		w.normalize()
		*place, _ = w.placeOf(p.Ordinal, &d)
	case OrderLastEvent:
		if place.AtMs = profile.NoEvent; p.HasEvent() {
			place.AtMs = p.LastEventMs
		}
	}
	return place
}
