package catalog

import (
	"cmp"
	"slices"
)

// The bounds. They are part of the rules of the state machine: changing one changes what
// Apply does.
const (
	maxFields     = 100 // of an event type
	maxAttributes = 200
	maxDepth      = 8   // keys of a path
	maxPathBytes  = 200 // of a path with its dots
	maxValues     = 20  // counted for each field
	maxValueBytes = 64
	maxElements   = 20 // looked at of a list
	maxProfiles   = 4  // known for each field and value

	// What a field and a value take beside their texts.
	fieldBytes = 320
	valueBytes = 64
)

// Sketch is what was seen of objects of one kind. It is used by one goroutine at a time.
type Sketch struct {
	// Base is the caller's, and saved with the rest: what it needs to number objects.
	Base uint64

	looked  uint64
	dropped uint64 // times that a field had no room, or was forgotten though others may have it
	beyond  uint64 // times that a path was too deep, too long, or none that a condition can have
	fields  []*Field
	index   map[string]*Field
	size    int // bytes, as far as the budget goes: a function of the fields
	limit   int // of fields
}

// Field is a path in objects, with what was seen there.
type Field struct {
	// Path has the keys joined by dots, as conditions name it.
	Path string
	// FirstMs and LastMs are the times of the earliest and latest object looked at that
	// has it, in Unix milliseconds.
	FirstMs, LastMs int64
	// Kinds counts the objects looked at by the kind of what stands there.
	Kinds [kinds]uint64
	// Elements counts the objects with a list there that has a scalar of the kind.
	Elements [scalars]uint64
	// Lost is how often a value was not counted, or took the place of another.
	Lost uint64

	values []value
	by     profiles
}

// value is a counter of the space-saving algorithm (Metwally et al. 2005).
type value struct {
	kind  Kind
	text  string
	count uint64 // at least as often as it was seen
	over  uint64 // by how much count may be too large
	by    profiles
}

// New returns the sketch of an event type.
func New() *Sketch { return &Sketch{index: map[string]*Field{}, limit: maxFields} }

// NewAttributes returns the sketch of profiles.
func NewAttributes() *Sketch {
	s := New()
	s.limit = maxAttributes
	return s
}

// Looked is how many objects were looked at.
func (s *Sketch) Looked() uint64 { return s.looked }

// More is how often something was found that had no room: another field, or a path too
// deep, too long or with a dot in a key.
func (s *Sketch) More() uint64 { return s.dropped + s.beyond }

// Size is the number of bytes that count against a [Budget].
func (s *Sketch) Size() int { return s.size }

// Known is how many fields had a value.
func (s *Sketch) Known() (n int) {
	for _, f := range s.fields {
		if f.Seen() > 0 {
			n++
		}
	}
	return n
}

// Fields lists the fields that had a value, in the order of their paths. They are the
// sketch's and valid until it changes.
func (s *Sketch) Fields() []*Field {
	out := make([]*Field, 0, len(s.fields))
	for _, f := range s.fields {
		if f.Seen() > 0 {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b *Field) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// Find finds the field of a path, nil if no object looked at had a value there. Not known
// means that one might have been missed: nothing was looked at, a field had no room, or
// paths like this are not kept.
func (s *Sketch) Find(path []string) (f *Field, known bool) {
	text := make([]byte, 0, maxPathBytes)
	for i, key := range path {
		if i > 0 {
			text = append(text, '.')
		}
		text = append(text, key...)
	}
	if f = s.index[string(text)]; f != nil && f.Seen() > 0 {
		return f, true
	}
	return nil, s.looked > 0 && s.dropped == 0 && len(path) <= maxDepth && len(text) <= maxPathBytes
}

// Seen is how many of the objects looked at have a value there that is not null: to
// conditions null is nothing.
func (f *Field) Seen() (n uint64) {
	for k, c := range f.Kinds {
		if Kind(k) != Null {
			n += c
		}
	}
	return n
}

// KindShare is how much of what stands at a path is of a kind.
type KindShare struct {
	Kind  Kind
	Share float64 // from 0 to 1, of all that was seen there, nulls included
}

// ByKind lists the kinds that were seen, the most frequent first.
func (f *Field) ByKind() []KindShare {
	all := uint64(0)
	for _, n := range f.Kinds {
		all += n
	}
	var out []KindShare
	for k, n := range f.Kinds {
		if n > 0 {
			out = append(out, KindShare{Kind(k), float64(n) / float64(all)})
		}
	}
	slices.SortStableFunc(out, func(a, b KindShare) int { return cmp.Compare(b.Share, a.Share) })
	return out
}

// Compares reports whether a condition that compares with values of a kind could hold for
// one of the objects looked at: lists hold where an element does.
func (f *Field) Compares(k Kind) bool { return f.Kinds[k] > 0 || f.Elements[k] > 0 }

// Value is one of the most frequent values of a field.
type Value struct {
	Kind Kind
	Text string // as written in JSON, without the quotes and escapes of a text
	// AtLeast is how many of the objects looked at have it at least.
	AtLeast uint64
}

// Top lists the most frequent values, the most frequent first. Where not all values are
// kept, those that are known to have been seen twice at most are left out: they are not
// frequent but late.
func (f *Field) Top() []Value {
	out := make([]Value, 0, len(f.values))
	for _, v := range f.values {
		if n := v.count - v.over; n > 2 || f.Lost == 0 {
			out = append(out, Value{v.kind, v.text, n})
		}
	}
	slices.SortFunc(out, func(a, b Value) int {
		return cmp.Or(cmp.Compare(b.AtLeast, a.AtLeast), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Kind, b.Kind))
	})
	return out
}

// Budget bounds the bytes of several sketches together.
type Budget struct {
	Used, Limit int
}

func (b *Budget) take(s *Sketch, n int) bool {
	if b.Used+n > b.Limit {
		return false
	}
	b.Used += n
	s.size += n
	return true
}
