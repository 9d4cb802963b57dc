package resolver

import (
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/wire"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The bounds of what a record enrols. They are part of the rules, like those in
// machine.go.
const (
	// flowEnrolments is how many enrolments a record begins, but for what the last of them
	// brings about. Whoever else is to be enrolled by then waits in the queue of the
	// account, for continue records.
	flowEnrolments = 4096
	// flowLooks is how many of those who wait a continue record looks at, for each
	// enrolment that it may begin: most may be in their flows already.
	flowLooks = 16
)

// enrolQueue holds, in order, what has triggered flows and found no room in its
// record: who, when, which flows, and the event, once for all of them. Its entries
// are entities; in memory is where they begin and end.
//
// While something waits, all that is triggered from outside waits behind it, so
// that nobody is overtaken. What the service's own doing triggers does not wait:
// there is little of it (profile.MaxCaused), and it belongs to the enrolment that brought it
// about. Nor do calls, whose flows nothing else triggers.
type enrolQueue struct {
	first, next uint64 // numbers of entries; both 0 when nothing waits
	// emptied is how often the queue was worked off by this process. It is no part of
	// the state.
	emptied uint64
}

func (q *enrolQueue) waiting() bool { return q.first < q.next }

// queuePosition is a place in the queue, for those who wait until it is worked
// off; the zero value waits for nothing.
type queuePosition struct{ emptied, next uint64 }

func (q *enrolQueue) passed(p queuePosition) bool { return q.emptied != p.emptied || q.first >= p.next }

// waitingEnrolment is an entry of the queue.
type waitingEnrolment struct {
	o     uint32
	atMs  int64
	flows []uint32 // numbers, in the order in which they were triggered
	event []byte
}

const waitingVersion = 1

func (e *waitingEnrolment) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, waitingVersion), e.o)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.atMs))
	dst = binary.AppendUvarint(dst, uint64(len(e.flows)))
	for _, n := range e.flows {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return wire.AppendBlock(dst, e.event)
}

// decode reads what append wrote; it never panics.
func (e *waitingEnrolment) decode(b []byte) error {
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

func deferredKey(account, seq uint64) string {
	return state.EntityKey(account, state.EntityWaiting, string(binary.BigEndian.AppendUint64(nil, seq)))
}

// mustDefer reports whether a later record has to make the enrolment.
func (m *Machine) mustDefer(a *account, t *flowTrigger) bool {
	return !t.own && !t.call && !m.draining && (m.enrolBudget <= 0 || a.flows.queue.waiting())
}

// deferEnrolment puts a trigger into the queue. Those of one event make one entry.
func (m *Machine) deferEnrolment(a *account, t *flowTrigger) {
	o := a.root(t.o)
	switch {
	case a.gone(o):
		return
	case t.f.Status != FlowLive:
		t.f.missed(o)
		return
	case t.f.entered.Contains(o) && t.f.def.Reentry != flows.AfterExit:
		return // nor will it be enrolled later
	}
	e := &m.deferred
	if len(e.flows) > 0 && (e.o != o || e.atMs != t.atMs || !slices.Equal(e.event, t.event)) {
		m.queueDeferred(a)
	}
	e.o, e.atMs, e.event = o, t.atMs, t.event
	e.flows = append(e.flows, t.f.Number)
}

// queueDeferred stores the entry that is being put together, if there is one.
func (m *Machine) queueDeferred(a *account) {
	if len(m.deferred.flows) == 0 {
		return
	}
	q := &a.flows.queue
	m.store.PutPayload(deferredKey(a.number, q.next), m.deferred.append(nil))
	q.next++
	m.deferred.flows, m.deferred.event = m.deferred.flows[:0], nil
	m.rec.out.enrolments = queuePosition{q.emptied, q.next}
}

// drain enrols those who wait: so many, roughly. Each is judged as it is now, with
// the event that triggered it: who is in the flow already, was erased, or whose
// flow is paused or gone is not enrolled; who was merged is, as the profile it
// became part of. Who waits for its entry into a segment (or exit) when the flow
// is paused counts as having entered while it is.
func (m *Machine) drain(c *command, most int) {
	a := c.account
	q := &a.flows.queue
	var e waitingEnrolment
	m.draining = true
	end := m.counters.Enrolments + uint64(most)
	for looks := most * flowLooks; q.waiting(); {
		key := deferredKey(a.number, q.first)
		b, err := m.store.Entity(key)
		if err == nil {
			err = e.decode(b)
		}
		if err != nil {
			panic(err) // the store is at fault; the record is named
		}
		done := 0
		for ; done < len(e.flows) && looks > 0 && m.counters.Enrolments < end; done++ {
			looks--
			m.enrolWaiting(c, &e, e.flows[done])
		}
		if done < len(e.flows) {
			e.flows = e.flows[done:]
			m.store.PutPayload(key, e.append(nil))
			break
		}
		m.store.PutEntity(key, nil)
		if a.gone(a.root(e.o)) {
			m.scrub = append(m.scrub, checkpoint.Scrubbed{Account: a.number, Keys: []string{key}})
		}
		if q.first++; !q.waiting() {
			q.first, q.next, q.emptied = 0, 0, q.emptied+1
		}
	}
	m.draining = false
}

func (m *Machine) enrolWaiting(c *command, e *waitingEnrolment, number uint32) {
	a := c.account
	f, o := a.flows.byNumber[number], a.root(e.o)
	switch {
	case f.Deleted || a.gone(o):
	case f.Status != FlowLive:
		f.missed(o)
	default:
		m.trigger(f, o, max(e.atMs, f.sinceMs()), e.event)
		m.react(c)
	}
}

// drainShare is how many enrolments each account may begin of those that wait, so that
// none waits for another.
func (m *Machine) drainShare() int {
	n := 0
	for _, a := range m.byIndex {
		if a.flows.queue.waiting() {
			n++
		}
	}
	return max(m.flowEnrolments/max(n, 1), 1)
}

// loadWaiting takes in an entry's place. They come in order.
func (a *account) loadWaiting(name string) error {
	if len(name) != 8 {
		return fmt.Errorf("an enrolment that waits has a name of %d bytes", len(name))
	}
	q, seq := &a.flows.queue, binary.BigEndian.Uint64([]byte(name))
	if !q.waiting() {
		q.first, q.next = seq, seq
	}
	if seq != q.next {
		return fmt.Errorf("enrolment %d that waits is there, %d is missing", seq, q.next)
	}
	q.next++
	return nil
}

// hashWaiting is the queue's part of the state's hash.
func (m *Machine) hashWaiting(put func([]byte), a *account) error {
	for seq := a.flows.queue.first; seq < a.flows.queue.next; seq++ {
		b, err := m.store.Entity(deferredKey(a.number, seq))
		if err != nil {
			return err
		}
		put(binary.LittleEndian.AppendUint64(nil, seq))
		put(b)
	}
	return nil
}
