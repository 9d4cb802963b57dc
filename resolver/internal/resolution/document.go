package resolution

import (
	"encoding/binary"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// create makes the header of a new profile. Its id derives from the record and
// the index of the event in it; the last four bytes carry the ordinal under a
// mask, so that an id leads to its profile without an index.
func (s *State) create(record eventlog.RecordID, index uint32) uint32 {
	s.normal = append(s.normal[:0], 0xfe)
	s.normal = append(s.normal, record[:]...)
	s.normal = binary.LittleEndian.AppendUint32(s.normal, index)
	o, h := s.Headers.Add()
	h.ID = profile.NewID(s.Hasher.Sum(s.normal), o)
	s.Created++
	return o
}

// Load decodes a profile's document.
func (s *State) Load(ordinal uint32, d *profile.Document) error {
	b, err := s.store.Document(s.account, ordinal)
	if err != nil {
		return err
	}
	return d.Decode(b)
}

// Save stores the document of a profile that has one, and what the index of profiles
// has of it.
func (s *State) Save(ordinal uint32, d *profile.Document) {
	old, err := s.store.Document(s.account, ordinal)
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	s.replaceDocument(ordinal, old, d)
}

// saveNew is Save for a profile of this record.
func (s *State) saveNew(ordinal uint32, d *profile.Document) {
	old, _ := s.store.Changed(s.account.DocKey(ordinal)) // if the record has stored it before
	s.replaceDocument(ordinal, old, d)
}

func (s *State) replaceDocument(ordinal uint32, old []byte, d *profile.Document) {
	s.normal = d.Append(s.normal[:0])
	s.unchanged.forget(ordinal)
	now := s.store.PutDocument(s.account, ordinal, s.normal)
	same := profile.Compare(old, now)
	s.index.Update(s.account.Number, ordinal, old, now, same)
	switch {
	case old == nil:
		s.Reach.Add(ordinal, d)
	case !same.Standing:
		s.Reach.Keep(ordinal, d)
	}
	if len(d.Changes) > 0 {
		s.host.LogConsents(ordinal, d.Changes)
		d.Changes = d.Changes[:0]
	}
}

// Remove removes the document of a profile that was merged into another or erased.
func (s *State) Remove(ordinal uint32) {
	old, err := s.store.Document(s.account, ordinal)
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	s.index.Update(s.account.Number, ordinal, old, nil, profile.Likeness{})
	s.Reach.Remove(ordinal)
	s.unchanged.forget(ordinal)
	s.store.PutDocument(s.account, ordinal, nil)
}
