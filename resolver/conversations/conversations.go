// Package conversations keeps when people last wrote by WhatsApp. For a day after, a business
// may write whatever it likes; at other times it may only send templates that WhatsApp has
// approved.
//
// WhatsApp counts the day for the number that the person wrote from, and so does this package:
// a profile with another number, or one that has merged, may not be written to freely. Until
// version 25 of the rules the day was the profile's, and any event [Received] began it. Those
// days end as they would have.
package conversations

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// Received is the type of the events that record a text that a person wrote by WhatsApp.
const Received = "whatsapp_received"

// WindowMs is how long a conversation stays open, in milliseconds.
const WindowMs = 24 * 60 * 60 * 1000

// CommandOpen opens the conversation with a number, or keeps it open: a provider has reported a
// text from there. It is a command, and no consequence of the event, because everybody with a
// key of the account may send the event.
const CommandOpen = "conversation.open"

// Open is the argument of [CommandOpen].
type Open struct {
	// Number is the keyed hash of the number, in hexadecimal: the log has no number that an
	// erasure would have to find.
	Number string `json:"number"`
	// WrittenMs is when the text was written (Unix ms), 0 if its provider does not say.
	WrittenMs int64 `json:"written_ms,omitempty"`
}

// Commands are the commands of conversations by name.
var Commands = map[string]feature.Command[*State]{CommandOpen: feature.Do((*State).open)}

// rulesNumber is the version of the rules from which on a conversation is a number's, and only
// [CommandOpen] opens it.
const rulesNumber = 25

// maxSwept bounds the conversations that one record finds to be over.
const maxSwept = 16

// State is the open conversations of one account, and some that are over.
type State struct {
	erased func(number identifier.Hash) bool

	numbers map[identifier.Hash]int64 // number → when it was last written from, Unix ms
	queue   queue                     // the same by time, and older times of numbers

	// Under the rules before [rulesNumber]:
	last  map[uint32]int64 // profile → when the person wrote, Unix ms
	order dueset.Set       // the same by time
}

// New is the state of an account without conversations. erased reports whether a number was an
// erased person's.
func New(erased func(number identifier.Hash) bool) *State {
	return &State{erased: erased, numbers: map[identifier.Hash]int64{}, last: map[uint32]int64{}}
}

// OpenUntil is until when a number may be written to freely (Unix ms); 0 for one from which
// no text has come of late.
func (s *State) OpenUntil(number identifier.Hash) int64 {
	if last, ok := s.numbers[number]; ok {
		return last + WindowMs
	}
	return 0
}

// ProfileOpenUntil is until when a profile may be written to freely (Unix ms) by what it wrote
// under older rules; 0 for one that did not of late.
func (s *State) ProfileOpenUntil(ordinal uint32) int64 {
	if last, ok := s.last[ordinal]; ok {
		return last + WindowMs
	}
	return 0
}

func (s *State) open(tx *feature.Tx, c Open) *refuse.Refusal {
	number, err := identifier.ParseHash(c.Number)
	if err != nil {
		return refuse.Invalid("number", "number must be a hash: %s", err)
	}
	at := tx.AtMs
	if c.WrittenMs != 0 {
		at = min(at, c.WrittenMs)
	}
	if at+WindowMs > tx.AtMs && at > s.numbers[number] && !s.erased(number) {
		s.numbers[number] = at
		heap.Push(&s.queue, written{at, number})
		tx.Store.PutEntity(numberKey(tx.Account, number), binary.BigEndian.AppendUint64(nil, uint64(at)))
	}
	s.sweep(tx)
	s.sweepProfiles(tx)
	return nil
}

// sweep forgets what is over little by little.
func (s *State) sweep(tx *feature.Tx) {
	for swept := 0; swept < maxSwept && len(s.queue) > 0; {
		first := s.queue[0]
		if s.numbers[first.number] == first.atMs {
			if first.atMs+WindowMs > tx.AtMs {
				return
			}
			s.Forget(tx, first.number)
			swept++
		}
		heap.Pop(&s.queue) // of others, the number was written from again, or was forgotten
	}
}

// Forget removes the conversation with a number, if there is one.
func (s *State) Forget(tx *feature.Tx, number identifier.Hash) {
	if _, ok := s.numbers[number]; ok {
		delete(s.numbers, number)
		tx.Store.PutEntity(numberKey(tx.Account, number), nil)
	}
}

// written is an instant at which a text was written from a number.
type written struct {
	atMs   int64
	number identifier.Hash
}

// queue is a heap of instants; the order depends on them alone.
type queue []written

func (q queue) Len() int      { return len(q) }
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q queue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].atMs, q[j].atMs), bytes.Compare(q[i].number[:], q[j].number[:])) < 0
}
func (q *queue) Push(x any) { *q = append(*q, x.(written)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// OnEvent notes under older rules that a person has written, see [feature.Listener].
func (s *State) OnEvent(tx *feature.Tx, ordinal uint32, atMs int64) {
	if tx.Rules >= rulesNumber {
		return
	}
	if atMs+WindowMs > tx.AtMs && atMs > s.last[ordinal] {
		s.set(tx, ordinal, atMs)
	}
	s.sweepProfiles(tx)
}

// sweepProfiles is [State.sweep] of the conversations of profiles.
func (s *State) sweepProfiles(tx *feature.Tx) {
	for range maxSwept {
		it, ok := s.order.Min()
		if !ok || it.Due+WindowMs > tx.AtMs {
			return
		}
		s.forget(tx, it.Ordinal)
	}
}

// Merge makes the conversation of a merged profile the winner's, see [feature.Merger]: under
// older rules, and for a day after.
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

func numberKey(account uint64, number identifier.Hash) string {
	return state.EntityKey(account, state.EntityConversation, string(number[:]))
}

// Load takes back what a checkpoint has, see [feature.State].
func (s *State) Load(kind byte, name string, value []byte) (known bool, err error) {
	if kind != state.EntityConversation {
		return false, nil
	}
	if len(name) != 4 && len(name) != len(identifier.Hash{}) || len(value) != 8 {
		return true, fmt.Errorf("conversation with a name of %d and a value of %d bytes", len(name), len(value))
	}
	at := int64(binary.BigEndian.Uint64(value))
	if len(name) == 4 {
		o := binary.BigEndian.Uint32([]byte(name))
		s.last[o] = at
		s.order.Add(dueset.Item{Due: at, Ordinal: o})
		return true, nil
	}
	number := identifier.Hash([]byte(name))
	s.numbers[number] = at
	heap.Push(&s.queue, written{at, number})
	return true, nil
}

// Hash gives put the whole state, see [feature.State].
func (s *State) Hash(put func([]byte)) error {
	for _, o := range slices.Sorted(maps.Keys(s.last)) {
		put(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, o), uint64(s.last[o])))
	}
	queued := make(map[written]bool, len(s.queue))
	for _, w := range s.queue {
		queued[w] = true
	}
	for _, n := range slices.SortedFunc(maps.Keys(s.numbers), func(x, y identifier.Hash) int { return bytes.Compare(x[:], y[:]) }) {
		put(binary.BigEndian.AppendUint64(n[:], uint64(s.numbers[n])))
		if !queued[written{s.numbers[n], n}] {
			return fmt.Errorf("the conversation with a number since %d is not in order", s.numbers[n])
		}
	}
	if s.order.Len() != len(s.last) {
		return fmt.Errorf("%d conversations are in order, there are %d", s.order.Len(), len(s.last))
	}
	return nil
}
