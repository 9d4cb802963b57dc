package payload

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
)

// layouts is how many different bodies a worker rotates through.
const layouts = 8

// frame is one prepared request.
type frame struct {
	data   []byte
	events []slots
}

// Worker makes the requests of one connection. It is used by one goroutine.
type Worker struct {
	spec   Spec
	number int
	rng    *rand.Rand
	frames []frame
	turn   int

	next      uint64 // sequence number of the next event
	newBase   uint64
	newCount  uint64
	newCutoff uint64 // of 2^32
	// traits draws which events change their profile, apart from rng, so that the events
	// are otherwise those of the load that does not repeat; changes is of 2^32.
	traits  *rand.Rand
	changes uint64

	sweepNext  uint64
	sweepUntil uint64
}

// NewWorker makes worker number n of the load. head returns the HTTP head of a
// request with a body of that many bytes; nil makes frames without a head.
func NewWorker(spec Spec, n int, head func(bodyBytes int) []byte) (*Worker, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if n < 0 || n >= MaxWorkers {
		return nil, fmt.Errorf("worker number %d is not within 0 to %d", n, MaxWorkers-1)
	}
	w := &Worker{
		spec: spec, number: n,
		rng:       rand.New(rand.NewPCG(spec.Seed, uint64(n)+1)),
		newBase:   MaxProfiles + uint64(n)*newPerWorker,
		newCutoff: uint64(spec.NewRatio * (1 << 32)),
		traits:    rand.New(rand.NewPCG(spec.Seed, 1<<32|uint64(n))),
		changes:   uint64(spec.ChangeRatio * (1 << 32)),
	}
	for range layouts {
		f, err := w.makeFrame(head)
		if err != nil {
			return nil, err
		}
		w.frames = append(w.frames, f)
	}
	return w, nil
}

func (w *Worker) makeFrame(head func(int) []byte) (frame, error) {
	var f frame
	var body []byte
	write, size := appendEvent, w.spec.EventBytes
	switch {
	case w.spec.Tracked:
		write, size = appendTracked, w.spec.EventBytes+TrackedBytes
		body = append(body, `{"batch":[`...)
	case w.spec.Batch > 0:
		body = append(body, `{"events":[`...)
	}
	for i := range w.spec.EventsPerRequest() {
		if i > 0 {
			body = append(body, ',')
		}
		var at slots
		var err error
		if body, at, err = write(body, w.rng, w.number, size, w.spec.Repeat); err != nil {
			return f, err
		}
		f.events = append(f.events, at)
	}
	switch {
	case w.spec.Tracked:
		body = append(body, `],"sentAt":"`+trackedTime+`"}`...)
	case w.spec.Batch > 0:
		body = append(body, `]}`...)
	}
	if head != nil {
		h := head(len(body))
		for i := range f.events {
			f.events[i].shift(len(h))
		}
		body = append(bytes.Clone(h), body...)
	}
	f.data = body
	return f, nil
}

func (s *slots) shift(n int) {
	s.email += n
	s.external += n
	s.value += n
	s.sequence += n
	if s.traits > 0 {
		s.traits += n
	}
}

// Sweep makes the next requests go through the known profiles from (included)
// to to (excluded), each once, before profiles are drawn again.
func (w *Worker) Sweep(from, to int) { w.sweepNext, w.sweepUntil = uint64(from), uint64(to) }

// SweepRequests is how many requests are left of a sweep. The last one is
// filled up with drawn profiles.
func (w *Worker) SweepRequests() int {
	n := uint64(w.spec.EventsPerRequest())
	return int((w.sweepUntil - w.sweepNext + n - 1) / n)
}

// Next returns the next request and the sequence number of its first event;
// the others follow it. The bytes are valid until the following call.
func (w *Worker) Next() (request []byte, first uint64) {
	f := &w.frames[w.turn]
	w.turn = (w.turn + 1) % len(w.frames)
	first = w.next
	for i := range f.events {
		at := &f.events[i]
		random := w.rng.Uint64()
		profile := w.profile(random)
		putDigits(f.data[at.email:at.email+profileDigits], profile)
		copy(f.data[at.external:at.external+profileDigits], f.data[at.email:at.email+profileDigits])
		if at.traits > 0 {
			repeatedTraits.put(f.data[at.traits:], profile, w.traits.Uint64(), w.changes)
		}
		putDigits(f.data[at.value:at.value+valueDigits], random>>11%100_000)
		putDigits(f.data[at.sequence:at.sequence+sequenceDigits], w.next)
		w.next++
	}
	return f.data, first
}

// Pass passes over the next request as Next does, and tells what is in it: a
// worker made again tells so what another with its number has sent.
func (w *Worker) Pass(visit func(sequence, profile uint64, eventType string)) {
	f := &w.frames[w.turn]
	w.turn = (w.turn + 1) % len(w.frames)
	for i := range f.events {
		visit(w.next, w.profile(w.rng.Uint64()), f.events[i].eventType)
		w.next++
	}
}

// Sent is the number of events in the requests made so far.
func (w *Worker) Sent() uint64 { return w.next }

// profile picks an event's profile. The upper half of random decides whether
// it is new, the lower half which known one it is.
func (w *Worker) profile(random uint64) uint64 {
	if w.sweepNext < w.sweepUntil {
		w.sweepNext++
		return w.sweepNext - 1
	}
	if random>>32 < w.newCutoff && w.newCount < newPerWorker {
		w.newCount++
		return w.newBase + w.newCount - 1
	}
	return (random & math.MaxUint32) * uint64(w.spec.Profiles) >> 32
}

// NewProfiles is how many new profiles the requests made so far used.
func (w *Worker) NewProfiles() uint64 { return w.newCount }

// KeyDigits is the width of a key's sequence number, which ends the key.
const KeyDigits = sequenceDigits

// AppendKey appends the idempotency key of a worker's event to dst.
func AppendKey(dst []byte, worker int, sequence uint64) []byte {
	return fmt.Appendf(dst, "b%0*d-%0*d", workerDigits, worker, sequenceDigits, sequence)
}
