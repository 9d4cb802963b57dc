package search

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Order is an order in which profiles are listed.
type Order byte

// The orders there are. Numbers are in cursors.
const (
	// OrderMatch: by what begins with the text that is searched: e-mails first, then
	// external ids, phones, full names, last names, each in order of texts.
	OrderMatch Order = 1 + iota
	// OrderNewest and OrderOldest: as profiles were made.
	OrderNewest
	OrderOldest
	// OrderLastEvent: the profile with the latest event first, those without one last.
	OrderLastEvent
)

// ErrTooMany says that a search finds too many profiles to sort them.
var ErrTooMany = errors.New("too many profiles to sort")

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

// Query says which profiles are listed.
type Query struct {
	// Text is what an identifier or a name of the profile begins with; "" is all.
	Text  string
	Order Order // OrderMatch needs a text
	// Within are sets that the profiles are in, all of them. Anonymous profiles are listed
	// only where there are sets.
	Within []*roaring.Bitmap
	// Channel and Status are a channel and the status that the profiles have there at
	// AtMs, Unix milliseconds; Status "" is any.
	Channel, Status string
	AtMs            int64
	After           *Place // nil is the beginning
	Limit           int    // profiles

	ranked *LastEvents // with OrderLastEvent, nil before it was worked out
}

// Place is a place in the order of a search.
type Place struct {
	Field   byte   // with OrderMatch
	Text    string // with OrderMatch
	AtMs    int64  // with OrderLastEvent
	Ordinal uint32
}

// Account is the profiles of an account at one state.
type Account interface {
	// Number is the account's number, Store where its index and its documents are, Hasher
	// what its identifiers are hashed with.
	Number() uint64
	Store() *state.Store
	Hasher() identifier.Hasher
	// Headers are those of all profiles that there have ever been.
	Headers() *profile.HeaderTable
	// Decode reads a profile's document.
	Decode(ordinal uint32, d *profile.Document) error
	// All are the profiles there are, Anonymous the anonymous ones among them. WithStatus
	// are profiles of which those are some that have a status on a channel. None of the
	// sets may be changed.
	All() *roaring.Bitmap
	Anonymous() *roaring.Bitmap
	WithStatus(channel, status string) *roaring.Bitmap
}

// Show shows a profile that a search has found, with its document, and the time of its last
// event as its place has it. It returns false for a profile that is not of the status that
// is searched for, which it does not show.
type Show func(place Place, d *profile.Document) (shown bool)

// searching is a search under way.
type searching struct {
	account Account // nil where only places are asked for
	*Query
	show  Show
	sets  []*roaring.Bitmap // that the profiles are in, beyond which nothing is looked at
	texts [256][]byte       // what is searched for, by field of the index; nil for not there
	shown int               // profiles
	next  *Place
	read  int // profiles read that the page does not show
	doc   profile.Document
	buf   []byte
}

// Search shows a page of the profiles that a query finds. With a next place there may be
// more, even where the page is empty: the work of a page is bounded. Errors are
// [ErrTooMany] and the store's.
func Search(a Account, s *Query, show Show) (next *Place, err error) {
	w := &searching{account: a, Query: s, show: show}
	w.normalize()
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
	return w.next, err
}

// searchFields are the fields of the index, in order.
var searchFields = [...]byte{indexEmail, indexExternalID, indexPhone, indexName, indexLastName}

// normalize works out which sets the profiles are in, and what each field's texts are to begin with. Digits, and what stands
// between them in a phone number, may be one.
func (w *searching) normalize() {
	w.sets = slices.Clip(w.Within)
	if w.Status != "" && w.account != nil {
		w.sets = append(w.sets, w.account.WithStatus(w.Channel, w.Status))
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
	if len(w.Within) == 0 && w.account.Anonymous().Contains(o) {
		return false
	}
	return !slices.ContainsFunc(w.sets, func(set *roaring.Bitmap) bool { return !set.Contains(o) })
}

// match is the place of a profile in OrderMatch, which is the first of those that its
// texts give it; not ok is one that does not match. Its document is then in w.doc.
func (w *searching) match(o uint32) (place Place, ok bool, err error) {
	if err := w.account.Decode(o, &w.doc); err != nil {
		return place, false, err
	}
	place, ok = w.placeOf(o, &w.doc)
	return place, ok, nil
}

func (w *searching) placeOf(o uint32, d *profile.Document) (place Place, ok bool) {
	searched(d, &w.buf, func(field byte, text []byte) {
		want := w.texts[field]
		if want == nil || !bytes.HasPrefix(text, want) {
			return
		}
		cut := string(cutText(text))
		if !ok || field == place.Field && cut < place.Text {
			place, ok = Place{Field: field, Text: cut, Ordinal: o}, true
		}
	})
	return place, ok
}

// take shows the profile in w.doc, if it has the status. It returns whether the page
// has room for more.
func (w *searching) take(place Place) (more bool) {
	if !w.show(place, &w.doc) {
		return w.pass(place)
	}
	if w.shown++; w.shown == w.Limit {
		w.next = &place
		return false
	}
	return true
}

// pass passes over a profile that was read. It returns whether more may be.
func (w *searching) pass(place Place) (more bool) {
	if w.read++; w.read >= searchDocuments {
		w.next = &place
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
		lower := append(indexPrefix(nil, w.account.Number(), f), cutText(w.texts[f])...)
		upper := state.After(lower)
		if w.After != nil && f == w.After.Field {
			behind := append(indexKey(nil, w.account.Number(), f, []byte(w.After.Text), w.After.Ordinal), 0)
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
	it, err := w.account.Store().IndexFrom(lower, upper)
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
			switch here := (Place{Field: field, Text: string(text), Ordinal: o}); {
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
			w.next = &Place{Field: field, Text: string(text), Ordinal: o}
			return false, nil
		}
	}
	return true, nil
}

// sortMatches lists the few profiles of a set that match.
func (w *searching) sortMatches(set *roaring.Bitmap) error {
	var places []Place
	for it := set.Iterator(); it.HasNext(); {
		o := it.Next()
		if !w.within(o) || !w.account.All().Contains(o) {
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
	slices.SortFunc(places, func(x, y Place) int { return x.compare(&y) })
	return w.takeAll(places)
}

// compare compares places in OrderMatch.
func (p *Place) compare(q *Place) int {
	var x, y []byte
	return bytes.Compare(indexKey(x, 0, p.Field, []byte(p.Text), p.Ordinal), indexKey(y, 0, q.Field, []byte(q.Text), q.Ordinal))
}

// takeAll shows the profiles at places.
func (w *searching) takeAll(places []Place) error {
	for _, place := range places {
		if err := w.account.Decode(place.Ordinal, &w.doc); err != nil {
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
	out := w.account.All()
	if len(w.Within) == 0 {
		if anonymous := w.account.Anonymous(); !anonymous.IsEmpty() {
			out = roaring.AndNot(out, anonymous)
		}
	}
	if w.Text != "" {
		matching := roaring.New()
		keys := 0
		for _, f := range searchFields {
			if w.texts[f] == nil {
				continue
			}
			lower := append(indexPrefix(nil, w.account.Number(), f), cutText(w.texts[f])...)
			it, err := w.account.Store().IndexFrom(lower, state.After(lower))
			if err != nil {
				return nil, err
			}
			for it.Next() {
				if keys++; keys > searchKeys {
					return nil, errors.Join(ErrTooMany, it.Close())
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
func (w *searching) look(place Place) (more bool, err error) {
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
		if more, err := w.look(Place{Ordinal: uint32(o)}); err != nil || !more {
			return err
		}
		from = o + step
	}
	return nil
}

// Holders lists the profiles that show an identifier, the one that it identifies and
// those that share it, in order of ordinals from one on, limit at most.
func Holders(a Account, kind identifier.Kind, value string, from uint32, limit int) (out []uint32, err error) {
	var buf []byte
	h, ok := a.Hasher().HashIdentifier(kind, []byte(value), &buf)
	if !ok {
		return nil, nil
	}
	field := '0' + byte(kind)
	text := appendSearched(nil, field, []byte(value))
	if len(text) == 0 {
		return nil, nil
	}
	lower := indexKey(nil, a.Number(), field, text, from)
	it, err := a.Store().IndexFrom(lower, state.After(lower[:len(lower)-4]))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var d profile.Document
	for len(out) < limit && it.Next() {
		_, o := splitIndexKey(it.Key)
		if err := a.Decode(o, &d); err != nil {
			return nil, err
		}
		// The index folds what identifiers tell apart: cases, a plus, what is cut off.
		if slices.ContainsFunc(d.Identifiers, func(id profile.Identifier) bool {
			have, _ := a.Hasher().HashIdentifier(kind, id.Value, &buf)
			return id.Kind == kind && have == h
		}) {
			out = append(out, o)
		}
	}
	return out, nil
}

// PlaceOf is the place of a profile that the query finds, with its names and identifiers
// and the time of its last event.
func (s *Query) PlaceOf(ordinal uint32, d *profile.Document, lastEventMs int64) *Place {
	place := &Place{Ordinal: ordinal}
	switch s.Order {
	case OrderMatch:
		w := &searching{Query: s}
		w.normalize()
		*place, _ = w.placeOf(ordinal, d)
	case OrderLastEvent:
		if place.AtMs = profile.NoEvent; profile.HasEvent(lastEventMs) {
			place.AtMs = lastEventMs
		}
	}
	return place
}
