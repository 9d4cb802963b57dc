package engine

import (
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
	"github.com/musterhq/muster/segment/engine/internal/past"
)

// Loader turns past events into the chunks of a state. It belongs to one
// goroutine and holds the whole state it builds.
type Loader struct {
	work       StateWork
	state      state // says how an event is read; it has no values
	events     uint64
	occurrence fold.Occurrence
	values     *past.Values
}

// NewLoader begins a state's past.
func NewLoader(w *StateWork) *Loader {
	l := &Loader{work: *w, state: state{id: w.ID, spec: w.spec, source: w.source}, values: past.New(w.spec, w.nowMs)}
	if path := w.spec.Path(); path != nil {
		l.state.property = &lookup{path: path} // its own: it runs beside the engine
	}
	return l
}

// Add takes in an event that passed the filters asked for.
func (l *Loader) Add(o uint32, atMs int64, properties []byte) {
	if o < l.work.Cursor {
		return
	}
	l.events++
	l.state.read(&l.occurrence, atMs, properties, l.events)
	l.values.Add(o, &l.occurrence)
}

// AddNumber is Add of an event whose number was asked for; is says whether it has one.
func (l *Loader) AddNumber(o uint32, atMs, micros int64, is bool) {
	if o >= l.work.Cursor {
		l.values.Add(o, &fold.Occurrence{AtMs: atMs, Micros: micros, Number: is})
	}
}

// Chunk returns the next chunk, of about maxBytes, and whether it is the last. No more events
// are added then.
func (l *Loader) Chunk(maxBytes int) (chunk []byte, last bool) {
	var w entryWriter
	next, more := l.values.Next()
	for more && len(w.b) < maxBytes {
		w.add(next, l.values.Take())
		next, more = l.values.Next()
	}
	if last = !more; last {
		next = ^uint32(0)
	}
	chunk = append(chunk, chunkState)
	chunk = binary.LittleEndian.AppendUint32(chunk, l.state.id)
	chunk = binary.LittleEndian.AppendUint32(chunk, l.work.Cursor)
	chunk = binary.LittleEndian.AppendUint32(chunk, next)
	chunk = append(chunk, boolByte(last))
	chunk = append(binary.AppendUvarint(chunk, w.n), w.b...)
	l.work.Cursor = next
	return chunk, last
}

// Scanner turns profiles, in order of ordinals, into chunks of answers.
type Scanner struct {
	work  ScanWork
	bits  []*roaring.Bitmap
	spans []entryWriter
	next  uint32
	size  int
}

// NewScanner begins where the work continues.
func NewScanner(w *ScanWork) *Scanner {
	s := &Scanner{work: *w, next: w.Cursor, bits: make([]*roaring.Bitmap, len(w.nodes)), spans: make([]entryWriter, len(w.nodes))}
	for i := range s.bits {
		s.bits[i] = roaring.New()
	}
	return s
}

// Add takes in a profile.
func (s *Scanner) Add(o uint32, f *segment.Facts) {
	if o < s.work.Cursor {
		return
	}
	for i, n := range s.work.nodes {
		if timedAttribute(n) {
			if v := spansOf(n, f, s.work.nowMs); v != nil {
				s.spans[i].add(o, v)
				s.size += len(v) + 4
			}
			continue
		}
		if f.Holds(n, s.work.nowMs) != blankHolds(n) {
			s.bits[i].Add(o)
			s.size += 2
		}
	}
	s.next = o + 1
}

// Size is roughly the bytes of the chunk so far.
func (s *Scanner) Size() int { return s.size }

// Chunk returns what was added since the last one. last says that no profile
// is left.
func (s *Scanner) Chunk(last bool) ([]byte, error) {
	if last {
		s.next = ^uint32(0)
	}
	chunk := []byte{chunkScan}
	chunk = binary.LittleEndian.AppendUint32(chunk, s.work.Cursor)
	chunk = binary.LittleEndian.AppendUint32(chunk, s.next)
	chunk = append(chunk, boolByte(last))
	chunk = binary.AppendUvarint(chunk, uint64(len(s.work.nodes)))
	for i, n := range s.work.nodes {
		chunk = binary.LittleEndian.AppendUint32(chunk, s.work.Leaves[i])
		timed := timedAttribute(n)
		chunk = append(chunk, boolByte(timed))
		if timed {
			chunk = append(binary.AppendUvarint(chunk, s.spans[i].n), s.spans[i].b...)
			s.spans[i] = entryWriter{}
			continue
		}
		b, err := s.bits[i].MarshalBinary()
		if err != nil {
			return nil, err
		}
		chunk = append(binary.AppendUvarint(chunk, uint64(len(b))), b...)
		s.bits[i].Clear()
	}
	s.work.Cursor, s.size = s.next, 0
	return slices.Clip(chunk), nil
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}
