package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
)

// encodingVersion is the first byte of the saved form.
const encodingVersion = 1

// ErrFormat means that bytes are no saved sketch.
var ErrFormat = errors.New("catalog: this is no saved sketch")

// Append appends the saved form of the sketch, which equal sketches have alike. See
// docs/formats.md.
func (s *Sketch) Append(dst []byte) []byte {
	dst = append(dst, encodingVersion)
	for _, n := range []uint64{s.Base, s.looked, s.dropped, s.beyond, uint64(len(s.fields))} {
		dst = binary.AppendUvarint(dst, n)
	}
	for _, f := range s.fields {
		dst = appendText(dst, f.Path)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(f.FirstMs))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(f.LastMs))
		for _, n := range f.Kinds {
			dst = binary.AppendUvarint(dst, n)
		}
		for _, n := range f.Elements {
			dst = binary.AppendUvarint(dst, n)
		}
		dst = binary.AppendUvarint(dst, f.Lost)
		dst = f.by.append(dst)
		dst = append(dst, byte(len(f.values)))
		for i := range f.values {
			v := &f.values[i]
			dst = appendText(append(dst, byte(v.kind)), v.text)
			dst = binary.AppendUvarint(dst, v.count)
			dst = binary.AppendUvarint(dst, v.over)
			dst = v.by.append(dst)
		}
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// append writes the number of profiles, plus 128 if there were others, and their ordinals.
func (p *profiles) append(dst []byte) []byte {
	n := p.n
	if p.others {
		n |= 1 << 7
	}
	dst = append(dst, n)
	for _, o := range p.list[:p.n] {
		dst = binary.LittleEndian.AppendUint32(dst, o)
	}
	return dst
}

// Decode fills an empty sketch, as [New] or [NewAttributes] return it, from its saved
// form, and takes what it holds from the budget whether that has it or not: it had it. The
// error wraps [ErrFormat].
func (s *Sketch) Decode(b *Budget, data []byte) error {
	r := reader{rest: data}
	if r.byte() != encodingVersion {
		return ErrFormat
	}
	s.Base, s.looked, s.dropped, s.beyond = r.uint(), r.uint(), r.uint(), r.uint()
	for n := r.uint(); n > 0 && !r.bad; n-- {
		if len(s.fields) == s.limit {
			return ErrFormat
		}
		f := r.field()
		if r.bad || s.index[f.Path] != nil {
			return ErrFormat
		}
		s.fields = append(s.fields, f)
		s.index[f.Path] = f
		s.size += f.bytes()
	}
	// What is written in another way than Append's is not its work.
	if r.bad || len(r.rest) > 0 || !bytes.Equal(s.Append(make([]byte, 0, len(data))), data) {
		return ErrFormat
	}
	b.Used += s.size
	return nil
}

// reader reads the saved form. After bad, all it returns is zero.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) take(n uint64) []byte {
	if r.bad = r.bad || n > uint64(len(r.rest)); r.bad {
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint() uint64 {
	n, w := binary.Uvarint(r.rest)
	if r.bad = r.bad || w <= 0; r.bad {
		return 0
	}
	r.rest = r.rest[w:]
	return n
}

func (r *reader) time() int64 {
	if b := r.take(8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (r *reader) text(limit int) string {
	b := r.take(r.uint())
	r.bad = r.bad || len(b) > limit
	return string(b)
}

func (r *reader) field() *Field {
	f := &Field{Path: r.text(maxPathBytes), FirstMs: r.time(), LastMs: r.time()}
	for k := range f.Kinds {
		f.Kinds[k] = r.uint()
	}
	for k := range f.Elements {
		f.Elements[k] = r.uint()
	}
	f.Lost, f.by = r.uint(), r.profiles()
	n := r.byte()
	r.bad = r.bad || n > maxValues || f.Path == ""
	for range n {
		v := value{kind: Kind(r.byte()), text: r.text(maxValueBytes), count: r.uint(), over: r.uint(), by: r.profiles()}
		same := func(x value) bool { return x.kind == v.kind && x.text == v.text }
		if r.bad = r.bad || v.kind >= scalars || v.over >= v.count || slices.ContainsFunc(f.values, same); r.bad {
			return f
		}
		f.values = append(f.values, v)
	}
	return f
}

func (r *reader) profiles() (p profiles) {
	n := r.byte()
	p.others = n&(1<<7) != 0
	n &^= 1 << 7
	if r.bad = r.bad || n == 0 || n > maxProfiles; r.bad {
		return p
	}
	for range n {
		b := r.take(4)
		if b == nil {
			return p
		}
		o := binary.LittleEndian.Uint32(b)
		if r.bad = r.bad || slices.Contains(p.list[:p.n], o); r.bad {
			return p
		}
		p.list[p.n] = o
		p.n++
	}
	return p
}
