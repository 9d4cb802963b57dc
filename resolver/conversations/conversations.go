// Package conversations keeps when people last wrote by WhatsApp. For a day after, a business
// may write whatever it likes; at other times it may only send templates that WhatsApp has
// approved.
package conversations

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Received is the type of the events that open a conversation, or keep it open: a person
// wrote a text by WhatsApp.
const Received = "whatsapp_received"

// WindowMs is how long a conversation stays open, in milliseconds.
const WindowMs = 24 * 60 * 60 * 1000

// maxSwept bounds the conversations that one event finds to be over.
const maxSwept = 16

// State is the open conversations of one account, and some that are over.
type State struct {
	last  map[uint32]int64 // profile → when the person wrote, Unix ms
	order dueset.Set       // the same by time
}

// New is the state of an account without conversations.
func New() *State { return &State{last: map[uint32]int64{}} }

// OpenUntil is until when a profile may be written to freely (Unix ms); 0 for one that has
// not written of late.
func (s *State) OpenUntil(ordinal uint32) int64 {
	if last, ok := s.last[ordinal]; ok {
		return last + WindowMs
	}
	return 0
}

// OnEvent notes that a person has written, see [feature.Listener]. What is over is forgotten
// little by little.
func (s *State) OnEvent(tx *feature.Tx, ordinal uint32, atMs int64) {
	if atMs+WindowMs > tx.AtMs && atMs > s.last[ordinal] {
		s.set(tx, ordinal, atMs)
	}
	for range maxSwept {
		it, ok := s.order.Min()
		if !ok || it.Due+WindowMs > tx.AtMs {
			return
		}
		s.forget(tx, it.Ordinal)
	}
}

// Merge makes the conversation of a merged profile the winner's, see [feature.Merger].
func (s *State) Merge(tx *feature.Tx, winner, merged uint32) {
	last, ok := s.last[merged]
	if !ok {
		return
	}
	s.forget(tx, merged)
	if last > s.last[winner] {
		s.set(tx, winner, last)
	}
}

// Erase removes erased profiles, see [feature.Eraser].
func (s *State) Erase(tx *feature.Tx, ordinals ...uint32) error {
	for _, o := range ordinals {
		if _, ok := s.last[o]; ok {
			s.forget(tx, o)
		}
	}
	return nil
}

func (s *State) set(tx *feature.Tx, ordinal uint32, atMs int64) {
	if old, ok := s.last[ordinal]; ok {
		s.order.Remove(dueset.Item{Due: old, Ordinal: ordinal})
	}
	s.last[ordinal] = atMs
	s.order.Add(dueset.Item{Due: atMs, Ordinal: ordinal})
	tx.Store.PutEntity(key(tx.Account, ordinal), binary.BigEndian.AppendUint64(nil, uint64(atMs)))
}

func (s *State) forget(tx *feature.Tx, ordinal uint32) {
	s.order.Remove(dueset.Item{Due: s.last[ordinal], Ordinal: ordinal})
	delete(s.last, ordinal)
	tx.Store.PutEntity(key(tx.Account, ordinal), nil)
}

func key(account uint64, ordinal uint32) string {
	return state.EntityKey(account, state.EntityConversation, string(binary.BigEndian.AppendUint32(nil, ordinal)))
}

// Load takes back what a checkpoint has, see [feature.State].
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	if kind != state.EntityConversation {
		return false, nil
	}
	if len(name) != 4 || len(value) != 8 {
		return true, fmt.Errorf("conversation with a name of %d and a value of %d bytes", len(name), len(value))
	}
	o, at := binary.BigEndian.Uint32([]byte(name)), int64(binary.BigEndian.Uint64(value))
	s.last[o] = at
	s.order.Add(dueset.Item{Due: at, Ordinal: o})
	return true, nil
}

// Hash gives put the whole state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	for _, o := range slices.Sorted(maps.Keys(s.last)) {
		put(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, o), uint64(s.last[o])))
	}
	if s.order.Len() != len(s.last) {
		return fmt.Errorf("%d conversations are in order, there are %d", s.order.Len(), len(s.last))
	}
	return nil
}
