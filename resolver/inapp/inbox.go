package inapp

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/state"
)

const (
	// MaxMessages is how many messages an inbox has at most, the newest, and MaxBytes how long
	// they are together as they are stored.
	MaxMessages = 100
	MaxBytes    = 128 << 10
)

// What a person does with a message.
const (
	Seen      = "seen"
	Clicked   = "clicked"
	Dismissed = "dismissed"
)

// Deeds are all of them.
var Deeds = []string{Seen, Clicked, Dismissed}

// Message is a message in an inbox.
type Message struct {
	// ID tells the messages of an inbox apart: 32 digits, see [ID].
	ID string `json:"id"`
	// Origin names what sent it: a campaign, or one item of the outbox. An inbox has one
	// message of each.
	Origin string `json:"origin"`
	// Campaign, or Flow and Step, are the ids of what it is of.
	Campaign string `json:"campaign,omitempty"`
	Variant  int    `json:"variant,omitempty"` // of the campaign's contents
	Flow     string `json:"flow,omitempty"`
	Step     string `json:"step,omitempty"`

	card.Card

	// The times are Unix ms, 0 for never. A person does each thing once: the first time counts.
	CreatedMs   int64 `json:"created_ms"`
	ExpiresMs   int64 `json:"expires_ms"`
	SeenMs      int64 `json:"seen_ms,omitempty"`
	ClickedMs   int64 `json:"clicked_ms,omitempty"`
	DismissedMs int64 `json:"dismissed_ms,omitempty"`
}

// at is where the time of a deed is; nil for no deed.
func (m *Message) at(deed string) *int64 {
	switch deed {
	case Seen:
		return &m.SeenMs
	case Clicked:
		return &m.ClickedMs
	case Dismissed:
		return &m.DismissedMs
	}
	return nil
}

// Did reports whether the person has done a deed with the message.
func (m *Message) Did(deed string) bool {
	at := m.at(deed)
	return at != nil && *at != 0
}

// compare orders the messages of an inbox as they are stored: by age, the oldest first.
func compare(x, y Message) int {
	return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), cmp.Compare(x.ID, y.ID))
}

// First orders messages as they are shown: those of a higher priority first, and of one
// priority the newest.
func First(x, y Message) int {
	return cmp.Or(cmp.Compare(y.Priority, x.Priority), compare(y, x))
}

// key is where the inbox of a profile is.
func (s *State) key(ordinal uint32) string {
	return state.TextKey(s.account, textInbox, string(binary.BigEndian.AppendUint32(nil, ordinal)))
}

// stored are the messages of a profile, the oldest first.
func (s *State) stored(ordinal uint32) (list []Message, err error) {
	if !s.sets.Members(setInboxes).Contains(ordinal) {
		return nil, nil
	}
	b, err := s.shared.Store.Entity(s.key(ordinal))
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("inbox of profile %d: %w", ordinal, err)
	}
	return list, nil
}

// load is stored within a record.
func (s *State) load(ordinal uint32) []Message {
	list, err := s.stored(ordinal)
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return list
}

// Inbox are the messages of a profile that have not ended at an instant, as they are shown.
// Those that the person dismissed are among them.
func (s *State) Inbox(ordinal uint32, nowMs int64) ([]Message, error) {
	list, err := s.stored(ordinal)
	list = slices.DeleteFunc(list, func(m Message) bool { return m.ExpiresMs <= nowMs })
	slices.SortFunc(list, First)
	return list, err
}

// fingerprints belong to this process alone; nothing that is stored depends on them.
var fingerprints = maphash.MakeSeed()

// Fingerprint changes when what is stored of an inbox does, 0 for an empty one. It costs a
// small part of reading the inbox.
func (s *State) Fingerprint(ordinal uint32) (uint64, error) {
	if !s.sets.Members(setInboxes).Contains(ordinal) {
		return 0, nil
	}
	b, err := s.shared.Store.Entity(s.key(ordinal))
	if err != nil {
		return 0, fmt.Errorf("inbox of profile %d: %w", ordinal, err)
	}
	return max(1, maphash.Bytes(fingerprints, b)), nil
}

// Add puts a message into the inbox of a profile. It is left out if one of the same origin
// is there that has not ended.
func (s *State) Add(tx *feature.Tx, ordinal uint32, m Message) {
	list := s.load(ordinal)
	if slices.ContainsFunc(list, func(x Message) bool { return x.Origin == m.Origin && x.ExpiresMs > tx.AtMs }) {
		return
	}
	m.CreatedMs, m.ExpiresMs = tx.AtMs, m.Options.ExpiresMs(tx.AtMs)
	s.put(tx, ordinal, append(list, m))
	s.shared.Changed = true
}

// Mark notes what a person did with a message, the first time. done is false where the person
// did so before; ok is false where the inbox has no such message any more. A click is a look
// at the message, too: seen says that it is the first.
func (s *State) Mark(tx *feature.Tx, ordinal uint32, id, deed string) (m Message, done, seen, ok bool) {
	list := s.load(ordinal)
	i := slices.IndexFunc(list, func(x Message) bool { return x.ID == id && x.ExpiresMs > tx.AtMs })
	if i < 0 {
		return m, false, false, false
	}
	x := &list[i]
	at := x.at(deed)
	if *at != 0 {
		return *x, false, false, true
	}
	if deed == Clicked && x.SeenMs == 0 {
		x.SeenMs, seen = tx.AtMs, true
	}
	*at = tx.AtMs
	m = *x
	s.put(tx, ordinal, list)
	s.shared.Changed = true
	return m, true, seen, true
}

// put stores the messages of a profile without those that have ended, the newest that there is
// room for.
func (s *State) put(tx *feature.Tx, ordinal uint32, list []Message) {
	slices.SortFunc(list, compare)
	kept := list[:0]
	for _, m := range list {
		if m.ExpiresMs > tx.AtMs {
			kept = append(kept, m)
		} else {
			s.ended(ordinal, &m)
		}
	}
	size, from := 0, len(kept)
	for from > max(0, len(kept)-MaxMessages) {
		if size += len(must.JSON(kept[from-1])) + 1; size > MaxBytes {
			break
		}
		from--
	}
	if kept = kept[from:]; len(kept) == 0 {
		s.drop(ordinal)
		return
	}
	s.shared.Store.PutPayload(s.key(ordinal), must.JSON(kept))
	s.sets.Set(setInboxes).Add(ordinal)
	for i := range kept {
		s.expiresIn(ordinal, kept[i].ExpiresMs)
	}
}

// ended counts a message that ended and was never looked at.
func (s *State) ended(ordinal uint32, m *Message) {
	if m.SeenMs == 0 && m.DismissedMs == 0 && m.Campaign != "" {
		s.host.Expired(m.Campaign, ordinal)
	}
}

// drop removes the inbox of a profile.
func (s *State) drop(ordinal uint32) {
	if inboxes := s.sets.Find(setInboxes); inboxes != nil && inboxes.Remove(ordinal) {
		s.shared.Store.PutEntity(s.key(ordinal), nil)
	}
}

// Keys are where the inboxes of profiles are, for what is to leave the store's files.
func (s *State) Keys(ordinals ...uint32) (keys []string) {
	for _, o := range ordinals {
		keys = append(keys, s.key(o))
	}
	return keys
}

// Merge unites two inboxes, see [feature.Merger]. Of two messages of one campaign the older
// stays, with what the person did with either, at the first time.
func (s *State) Merge(tx *feature.Tx, winner, merged uint32) {
	list := s.load(merged)
	if len(list) == 0 {
		return
	}
	all := append(s.load(winner), list...)
	slices.SortFunc(all, compare)
	united := all[:0]
	for _, m := range all {
		if m.ExpiresMs <= tx.AtMs { // it must not take the place of a later one
			s.ended(winner, &m)
			continue
		}
		i := slices.IndexFunc(united, func(x Message) bool { return x.Origin == m.Origin })
		if i < 0 {
			united = append(united, m)
			continue
		}
		for _, deed := range Deeds {
			if x, y := united[i].at(deed), *m.at(deed); y != 0 && (*x == 0 || y < *x) {
				*x = y
			}
		}
	}
	s.drop(merged)
	s.put(tx, winner, united)
	s.shared.Changed = true
}

// Erase removes erased profiles, see [feature.Eraser].
func (s *State) Erase(_ *feature.Tx, ordinals ...uint32) error {
	for _, o := range ordinals {
		s.shared.Store.PutEntity(s.key(o), nil)
		for _, set := range append([]string{setInboxes}, s.hourSets()...) {
			if x := s.sets.Find(set); x != nil {
				x.Remove(o)
			}
		}
	}
	s.shared.Changed = true
	return nil
}
