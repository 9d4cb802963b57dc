package forms

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Submission is one that waits until the person confirms it.
type Submission struct {
	ID   string `json:"id"`   // that the link to confirm carries
	Form string `json:"form"` // id
	// Email is the one that was given, to which the message went.
	Email string `json:"email"`
	AtMs  int64  `json:"at_ms"`
	// Channels and Lists are what the form asked for when it was sent.
	Channels []string `json:"channels,omitempty"`
	Lists    []string `json:"list_ids,omitempty"`
	// Done says that it was confirmed. It is kept for a while without its values, so that the
	// link still answers.
	Done bool `json:"done,omitempty"`
	Values
}

const (
	hourMs = 60 * 60 * 1000
	// HeldForMs is how long a submission can be confirmed, in milliseconds.
	HeldForMs = 7 * dayMs
	// MaxHeld is how many submissions of a profile are held. Where there are that many, one a
	// day takes the place of the oldest: more messages would be a nuisance.
	MaxHeld = 5
	// maxHolders bounds the profiles that submissions are held of.
	maxHolders = 200_000
	// rulesHour is the version of the rules from which on a submission that was confirmed counts
	// for the message an hour as well.
	rulesHour = 25
	// maxSwept bounds the profiles whose submissions one record finds to be over.
	maxSwept = 16
)

// held is the submissions that wait. They are in the store alone, one entity for each profile;
// until has when the last of each is over.
type held struct {
	until map[uint32]int64
	order dueset.Set // the same by time
}

func newHeld() held { return held{until: map[uint32]int64{}} }

func (s *State) heldKey(ordinal uint32) string {
	return state.EntityKey(s.account, state.EntityFormHeld, string(binary.BigEndian.AppendUint32(nil, ordinal)))
}

// NewSubmissionID is the id of a submission that the record brings.
func NewSubmissionID(tx *feature.Tx) string { return hex.EncodeToString(tx.Record[:]) }

// Held lists the submissions of a profile that can be confirmed, and those that were, the
// oldest first.
func (s *State) Held(tx *feature.Tx, ordinal uint32) []Submission {
	list, err := s.readHeld(ordinal)
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return slices.DeleteFunc(list, func(x Submission) bool { return x.AtMs+HeldForMs <= tx.AtMs })
}

func (s *State) readHeld(ordinal uint32) (list []Submission, err error) {
	if _, ok := s.held.until[ordinal]; !ok {
		return nil, nil
	}
	b, err := s.store.Entity(s.heldKey(ordinal))
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("held submissions of profile %d: %w", ordinal, err)
	}
	return list, nil
}

// Waits reports whether a submission of a profile is held and not confirmed yet.
func (s *State) Waits(ordinal uint32, submission string) (bool, error) {
	list, err := s.readHeld(ordinal)
	return slices.ContainsFunc(list, func(x Submission) bool { return x.ID == submission && !x.Done }), err
}

// TakenMs is when a submission of a profile was sent that has been confirmed (Unix ms); 0 if it
// waits, or is not held any more.
func (s *State) TakenMs(ordinal uint32, submission string) (int64, error) {
	list, err := s.readHeld(ordinal)
	for _, x := range list {
		if x.ID == submission && x.Done {
			return x.AtMs, err
		}
	}
	return 0, err
}

// The answers of [State.MayHold].
const (
	HoldNow   = iota // it is held, and a message asks to confirm it
	HoldAgain        // the same form was sent of late, and its message stands or was followed
	HoldNot          // there is no room
)

// MayHold says whether one more submission of a form is held of a profile that has a list of
// them.
func (s *State) MayHold(tx *feature.Tx, list []Submission, form string) int {
	newest := int64(0)
	for i := range list {
		newest = max(newest, list[i].AtMs)
		if list[i].Form == form && list[i].AtMs > tx.AtMs-hourMs && (!list[i].Done || tx.Rules >= rulesHour) {
			return HoldAgain
		}
	}
	if len(list) >= MaxHeld && newest > tx.AtMs-dayMs || len(list) == 0 && len(s.held.until) >= maxHolders {
		return HoldNot
	}
	return HoldNow
}

// Hold adds a submission to those of a profile, which list has.
func (s *State) Hold(tx *feature.Tx, ordinal uint32, list []Submission, x Submission) {
	list = append(list, x)
	s.PutHeld(tx, ordinal, list[max(0, len(list)-MaxHeld):])
}

// PutHeld makes a list the submissions that are held of a profile. What is over of others is
// forgotten little by little.
func (s *State) PutHeld(tx *feature.Tx, ordinal uint32, list []Submission) {
	s.forget(ordinal)
	if len(list) > 0 {
		s.held.put(ordinal, list)
		s.store.PutPayload(s.heldKey(ordinal), must.PlainJSON(list)) // attributes stay canonical
	}
	s.sweep(tx.AtMs)
}

// sweep removes submissions that have waited for too long, a few profiles at a
// time.
func (s *State) sweep(atMs int64) {
	for range maxSwept {
		it, ok := s.held.order.Min()
		if !ok || it.Due > atMs {
			return
		}
		s.forget(it.Ordinal)
	}
}

// put notes until when the submissions of a profile are held.
func (h *held) put(ordinal uint32, list []Submission) {
	until := int64(0)
	for i := range list {
		until = max(until, list[i].AtMs+HeldForMs)
	}
	h.until[ordinal] = until
	h.order.Add(dueset.Item{Due: until, Ordinal: ordinal})
}

func (s *State) forget(ordinal uint32) {
	until, ok := s.held.until[ordinal]
	if !ok {
		return
	}
	s.held.order.Remove(dueset.Item{Due: until, Ordinal: ordinal})
	delete(s.held.until, ordinal)
	s.store.PutEntity(s.heldKey(ordinal), nil)
}

// Merge makes the submissions of a merged profile the winner's, see [feature.Merger].
func (s *State) Merge(tx *feature.Tx, winner, merged uint32) {
	list := s.Held(tx, merged)
	s.forget(merged)
	if len(list) == 0 {
		return
	}
	list = append(list, s.Held(tx, winner)...)
	slices.SortStableFunc(list, func(x, y Submission) int { return cmp.Compare(x.AtMs, y.AtMs) })
	s.PutHeld(tx, winner, list[max(0, len(list)-MaxHeld):])
}

// Erase removes erased profiles, see [feature.Eraser].
func (s *State) Erase(_ *feature.Tx, ordinals ...uint32) error {
	for _, o := range ordinals {
		s.forget(o)
	}
	return nil
}

// Keys are where the submissions of profiles are, for what is to leave the store's files.
func (s *State) Keys(ordinals ...uint32) (keys []string) {
	for _, o := range ordinals {
		keys = append(keys, s.heldKey(o))
	}
	return keys
}

func (h *held) load(name string, value []byte) error {
	var list []Submission
	if len(name) != 4 {
		return fmt.Errorf("held submissions with a name of %d bytes", len(name))
	}
	if err := json.Unmarshal(value, &list); err != nil {
		return fmt.Errorf("held submissions: %w", err)
	}
	h.put(binary.BigEndian.Uint32([]byte(name)), list)
	return nil
}

func (s *State) hashHeld(put func([]byte)) error {
	for _, o := range slices.Sorted(maps.Keys(s.held.until)) {
		list, err := s.readHeld(o)
		if err != nil {
			return err
		}
		put(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, o), uint64(s.held.until[o])))
		for i := range list {
			// A record that was redacted has the phone masked, and leads to the same state.
			phone := s.host.HashPhone(list[i].Phone)
			list[i].Phone = ""
			put(phone[:])
		}
		put(must.PlainJSON(list))
	}
	if s.held.order.Len() != len(s.held.until) {
		return fmt.Errorf("submissions of %d profiles are in order, of %d they are held", s.held.order.Len(), len(s.held.until))
	}
	return nil
}
