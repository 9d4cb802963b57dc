package automation

import (
	"encoding/binary"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// host is the world of one enrolment in a flow.
type host struct {
	s *State
	d *profile.Document // of the profile, see [Profiles.Load]
	f *flow
	o uint32
	e *flows.Enrolment
	// heldUntil is when a step is to be carried out that is held.
	heldUntil int64
}

func (h *host) Live() bool { return h.f.Status == Live }

func (h *host) Arrived(step int) {
	c := &h.s.count(h.f).Steps[step]
	c.Arrived++
	c.At++
}

func (h *host) Left(step int, r flows.Result) { h.s.count(h.f).left(step, r) }

func (h *host) LooksAgain() bool { return h.s.port.Rules() >= rulesLookAgain }

func (h *host) Returned(step int, r flows.Result) { h.s.count(h.f).returned(step, r) }

func (h *host) Matches(step int) bool {
	e := h.s.port.Engine()
	return e.Contains(conditionID(h.f.Flow, step), h.o, e.NowMs()) &&
		(!h.f.def.Steps[step].Condition.OpenCart || h.s.port.HasOpenCart(h.o))
}

func (h *host) Random(step int) uint64 {
	out, buf := h.s.splitBits(h.s.run.scratch, h.f.Number, h.o, h.e.Number, step)
	h.s.run.scratch = buf
	return out
}

// splitBits is what decides a split for a profile, the same for the same enrolment and
// step. buf is scratch.
func (s *State) splitBits(buf []byte, flow, o, enrolment uint32, step int) (bits uint64, scratch []byte) {
	id := s.port.ProfileID(o)
	buf = append(append(buf[:0], "split\x00"...), id[:]...)
	for _, n := range [...]uint32{flow, uint32(step), enrolment} {
		buf = binary.LittleEndian.AppendUint32(buf, n)
	}
	sum := s.port.Sum(buf)
	return binary.LittleEndian.Uint64(sum[:]), buf
}

// source is where an item of the outbox for a step comes from.
func (h *host) source(step int) Source {
	return Source{Ordinal: h.o, Flow: h.f.ID, Step: h.f.def.Steps[step].ID, Event: h.e.Event}
}

func (h *host) HeldUntil() int64 { return h.heldUntil }

func (h *host) Send(step int, messages []flows.Message) (r flows.Result, at int) {
	skipped := make([]flows.Result, 0, len(messages))
	for i := range messages {
		switch r = h.send(step, &messages[i]); r {
		case flows.Later, flows.Held, flows.OutOfCredits:
			return r, 0 // the step is carried out again
		case flows.Queued:
			h.s.countChannels(h.f, step, 0, skipped, true)
			return r, i
		}
		skipped = append(skipped, r)
	}
	h.s.countChannels(h.f, step, 0, skipped, false)
	return r, 0
}

// send queues a message, or says why there is none.
func (h *host) send(step int, x *flows.Message) flows.Result {
	port := h.s.port
	r := port.Reach(h.d, x.Channel)
	if r == flows.Queued && !x.IgnoresLimits {
		r, h.heldUntil = port.MayGo(h.o, x.Channel)
	}
	if r != flows.Queued {
		return r
	}
	if x.Email != nil && port.Credits() < 1 {
		h.s.PauseForCredits()
		return flows.OutOfCredits
	}
	if !port.QueueMessage(h.source(step), h.d, x) {
		return flows.Later
	}
	return flows.Queued
}

func (h *host) Webhook(step int, x *flows.Webhook) (flows.Result, uint64) {
	seq, ok := h.s.port.QueueCall(h.source(step), x)
	if !ok {
		return flows.Later, 0
	}
	return flows.Queued, seq
}
