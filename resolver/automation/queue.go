package automation

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/wire"
	"github.com/musterhq/muster/resolver/internal/state"
)

// flowLooks is how many of those who wait a continue record looks at, for each enrolment
// that it may begin: most may be in their flows already. It is part of the rules.
const flowLooks = 16

// enrolQueue holds, in order, what has triggered flows and found no room in its
// record: who, when, which flows, and the event, once for all of them. Its entries
// are entities; in memory is where they begin and end.
//
// While something waits, all that is triggered from outside waits behind it, so that the
// order stays. What the service's own doing triggers does not wait: there is little of it
// (profile.MaxCaused), and it belongs to the enrolment that brought it about. Nor do calls,
// whose flows nothing else triggers.
type enrolQueue struct {
	first, next uint64 // numbers of entries; both 0 when nothing waits
	// emptied is how often the queue was worked off by this process. It is no part of
	// the state.
	emptied uint64
}

func (q *enrolQueue) waiting() bool { return q.first < q.next }

// Position is a place in the queue of deferred enrolments of an account, for those who wait
// until it is worked off; the zero value waits for nothing.
type Position struct{ emptied, next uint64 }

func (q *enrolQueue) passed(p Position) bool { return q.emptied != p.emptied || q.first >= p.next }

// deferredEnrolment is an entry of the queue.
type deferredEnrolment struct {
	o     uint32
	atMs  int64
	flows []uint32 // numbers, in the order in which they were triggered
	event []byte
}

const waitingVersion = 1

func (e *deferredEnrolment) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, waitingVersion), e.o)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.atMs))
	dst = binary.AppendUvarint(dst, uint64(len(e.flows)))
	for _, n := range e.flows {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return wire.AppendBlock(dst, e.event)
}

// decode reads what append wrote; it never panics.
func (e *deferredEnrolment) decode(b []byte) error {
	in := wire.Reader{B: b}
	version := in.U8()
	e.o, e.atMs, e.flows = in.U32(), int64(in.U64()), e.flows[:0]
	for n := in.Count(1); n > 0; n-- {
		e.flows = append(e.flows, uint32(min(in.Uvarint(), math.MaxUint32)))
	}
	e.event = in.Block()
	if version != waitingVersion || in.Bad || len(in.B) != 0 {
		return fmt.Errorf("an enrolment that waits has a bad format")
	}
	return nil
}

// mustDefer reports whether a later record has to make the enrolment.
func (s *State) mustDefer(t *toEnrol) bool {
	return !t.own && !t.call && !s.run.draining && (s.run.enrolsLeft <= 0 || s.queue.waiting())
}

// deferEnrolment puts a trigger into the queue. Those of one event make one entry.
func (s *State) deferEnrolment(t *toEnrol) {
	o := s.port.Root(t.o)
	switch {
	case s.port.Erased(o):
		return
	case t.f.Status != Live:
		t.f.missed(o)
		return
	case t.f.entered.Contains(o) && t.f.def.Reentry != flows.AfterExit:
		return // nor will it be enrolled later
	}
	e := &s.run.deferred
	if len(e.flows) > 0 && (e.o != o || e.atMs != t.atMs || !slices.Equal(e.event, t.event)) {
		s.queueDeferred()
	}
	e.o, e.atMs, e.event = o, t.atMs, t.event
	e.flows = append(e.flows, t.f.Number)
}

// queueDeferred stores the entry that is being put together, if there is one.
func (s *State) queueDeferred() {
	if len(s.run.deferred.flows) == 0 {
		return
	}
	q := &s.queue
	s.run.store.PutPayload(state.WaitingKey(s.account, q.next), s.run.deferred.append(nil))
	q.next++
	s.run.deferred.flows, s.run.deferred.event = s.run.deferred.flows[:0], nil
	s.run.position = Position{q.emptied, q.next}
}

// Drain enrols about as many deferred profiles. Each is judged as it is now, with
// the event that triggered it. A profile that is in the flow already or was erased,
// or whose flow is paused or deleted, is not enrolled; for a merged one the winner
// is. A profile deferred for its entry into a segment (or exit) when the flow is
// paused counts as having entered during the pause.
func (s *State) Drain(most int) {
	q := &s.queue
	var e deferredEnrolment
	s.run.draining = true
	end := s.run.Enrolments + uint64(most)
	for looks := most * flowLooks; q.waiting(); {
		key := state.WaitingKey(s.account, q.first)
		b, err := s.run.store.Entity(key)
		if err == nil {
			err = e.decode(b)
		}
		if err != nil {
			panic(err) // the store is at fault; the record is named
		}
		done := 0
		for ; done < len(e.flows) && looks > 0 && s.run.Enrolments < end; done++ {
			looks--
			s.enrolDeferred(&e, e.flows[done])
		}
		if done < len(e.flows) {
			e.flows = e.flows[done:]
			s.run.store.PutPayload(key, e.append(nil))
			break
		}
		s.run.store.PutEntity(key, nil)
		if s.port.Erased(s.port.Root(e.o)) {
			s.port.Scrub(key)
		}
		if q.first++; !q.waiting() {
			q.first, q.next, q.emptied = 0, 0, q.emptied+1
		}
	}
	s.run.draining = false
}

func (s *State) enrolDeferred(e *deferredEnrolment, number uint32) {
	f, o := s.byNumber[number], s.port.Root(e.o)
	switch {
	case f.Deleted || s.port.Erased(o):
	case f.Status != Live:
		f.missed(o)
	default:
		s.trigger(f, o, max(e.atMs, f.sinceMs()), e.event)
		s.React()
	}
}

// Deferred is how many triggers wait for their enrolments.
func (s *State) Deferred() int { return int(s.queue.next - s.queue.first) }

// Passed reports whether those are enrolled whom a record of the account has put into the
// queue, by the [Work.Position] behind it.
func (s *State) Passed(p Position) bool { return s.queue.passed(p) }

// loadDeferred takes in an entry's place. They come in order.
func (s *State) loadDeferred(name string) error {
	if len(name) != 8 {
		return fmt.Errorf("an enrolment that waits has a name of %d bytes", len(name))
	}
	q, seq := &s.queue, binary.BigEndian.Uint64([]byte(name))
	if !q.waiting() {
		q.first, q.next = seq, seq
	}
	if seq != q.next {
		return fmt.Errorf("enrolment %d that waits is there, %d is missing", seq, q.next)
	}
	q.next++
	return nil
}

// hashDeferred is the queue's part of the state's hash.
func (s *State) hashDeferred(put func([]byte)) error {
	for seq := s.queue.first; seq < s.queue.next; seq++ {
		b, err := s.run.store.Entity(state.WaitingKey(s.account, seq))
		if err != nil {
			return err
		}
		put(binary.LittleEndian.AppendUint64(nil, seq))
		put(b)
	}
	return nil
}
