package resolution

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/reach"
	"github.com/musterhq/muster/resolver/search"
)

// HashIdentifiers gives put the identifiers and folded e-mails, in an order that depends on
// the state alone.
func (s *State) HashIdentifiers(put func([]byte)) {
	compare := func(x, y identifier.Hash) int { return slices.Compare(x[:], y[:]) }
	for _, f := range slices.SortedFunc(maps.Keys(s.caseFolds), compare) {
		put(f[:])
		for _, h := range s.caseFolds[f] {
			put(h[:])
		}
	}
	ids := make([]profile.IdentifierChange, 0, s.Identifiers.Size())
	s.Identifiers.Each(func(h identifier.Hash, o uint32) { ids = append(ids, profile.IdentifierChange{Hash: h, Ordinal: o}) })
	slices.SortFunc(ids, func(x, y profile.IdentifierChange) int { return compare(x.Hash, y.Hash) })
	for _, c := range ids {
		put(binary.LittleEndian.AppendUint32(c.Hash[:], c.Ordinal))
	}
}

// HashProfiles gives w the headers, and put the documents. It returns the profiles that are
// anonymous by their documents. An error may say that something derived from the documents
// does not follow them.
func (s *State) HashProfiles(w io.Writer, put func([]byte)) (anonymous *roaring.Bitmap, err error) {
	indexed := search.NewSum(s.account.Number, s.Hasher)
	made := reach.NewSets(profile.NewOrdinalSets())
	anonymous = roaring.New()
	var d profile.Document
	for o := range s.Headers.Count {
		r := s.Headers.Get(o)
		if _, err := fmt.Fprintf(w, "%x %d %d %d\n", r.ID, r.LastEvent, r.Winner, r.Flags); err != nil {
			return nil, err
		}
		if r.Winner != o || s.Erased(o) {
			continue
		}
		b, err := s.store.Peek(s.account, o)
		if err != nil {
			return nil, err
		}
		put(b)
		if err := indexed.Add(o, b); err != nil {
			return nil, err
		}
		if err := d.Decode(b); err != nil {
			return nil, err
		}
		made.Keep(o, &d)
		if d.IsAnonymous() {
			anonymous.Add(o)
		}
	}
	if err := s.Reach.Differ(made); err != nil {
		return nil, err
	}
	return anonymous, indexed.Check(s.store)
}
