package catalog

import "github.com/musterhq/muster/internal/rawjson"

// Looker shows objects to sketches. It has scratch memory and is used by one goroutine.
type Looker struct {
	path, text []byte
	elements   [maxElements][]byte

	s       *Sketch
	b       *Budget
	ordinal uint32
	atMs    int64
}

// Part is an object in canonical text, empty for none, and the first key of its paths, ""
// for none.
type Part struct {
	Key string
	Raw []byte
}

// Look shows the sketch an object of a profile, in parts, which happened at atMs.
func (l *Looker) Look(s *Sketch, b *Budget, ordinal uint32, atMs int64, parts ...Part) {
	s.looked++
	l.s, l.b, l.ordinal, l.atMs = s, b, ordinal, atMs
	for _, p := range parts {
		l.path = append(l.path[:0], p.Key...)
		depth := 0
		if p.Key != "" {
			depth = 1
		}
		l.object(p.Raw, depth)
	}
	l.s, l.b = nil, nil
	clear(l.elements[:])
}

// object looks at the members of an object whose path, of depth keys, is in l.path.
func (l *Looker) object(raw []byte, depth int) {
	begin := len(l.path)
	rawjson.Each(raw, func(key, value []byte) bool {
		l.path = l.path[:begin]
		if begin > 0 {
			l.path = append(l.path, '.')
		}
		from := len(l.path)
		var ok bool
		if l.path, ok = rawjson.Unquote(l.path, key); !ok {
			l.s.beyond++
			return true
		}
		switch at := addressable(l.path[from:]); {
		case at == masked: // of an erased person, in a redacted record
			return true
		case at == never, depth == maxDepth, len(l.path) > maxPathBytes:
			l.s.beyond++
			return true
		}
		kind, ok := kindOf(value)
		if !ok {
			return false
		}
		l.field(kind, value)
		if kind == Object {
			l.object(value, depth+1)
		}
		return true
	})
	l.path = l.path[:begin]
}

// What a key is to a condition.
const (
	always = iota
	never  // empty, or with a dot
	masked // with a NUL, which no object that is sent has
)

func addressable(key []byte) int {
	if len(key) == 0 {
		return never
	}
	what := always
	for _, c := range key {
		switch c {
		case 0:
			return masked
		case '.':
			what = never
		}
	}
	return what
}

// field notes what stands at l.path.
func (l *Looker) field(kind Kind, raw []byte) {
	s := l.s
	f := s.index[string(l.path)]
	if f == nil {
		if len(s.fields) >= s.limit || !l.b.take(s, fieldBytes+len(l.path)) {
			s.dropped++
			return
		}
		f = &Field{Path: string(l.path), FirstMs: l.atMs, LastMs: l.atMs}
		s.fields = append(s.fields, f)
		s.index[f.Path] = f
	}
	f.Kinds[kind]++
	f.FirstMs, f.LastMs = min(f.FirstMs, l.atMs), max(f.LastMs, l.atMs)
	f.by.add(l.ordinal)
	switch {
	case kind < scalars:
		l.value(f, kind, raw)
	case kind == List:
		l.list(f, raw)
	}
}

// list notes the scalars among the first elements of a list, each once.
func (l *Looker) list(f *Field, raw []byte) {
	var has [scalars]bool
	n := 0
	rawjson.EachElement(raw, func(e []byte) bool {
		if n == maxElements {
			f.Lost++
			return false
		}
		kind, ok := kindOf(e)
		if !ok {
			return false
		}
		for _, before := range l.elements[:n] {
			if string(before) == string(e) {
				kind = Null // it was noted
			}
		}
		l.elements[n] = e
		n++
		if kind < scalars {
			has[kind] = true
			l.value(f, kind, e)
		}
		return true
	})
	for k, is := range has {
		if is {
			f.Elements[k]++
		}
	}
}

// value counts a scalar.
func (l *Looker) value(f *Field, kind Kind, raw []byte) {
	text := raw
	if kind == Text {
		var ok bool
		if text, ok = rawjson.Text(raw, l.text); !ok {
			f.Lost++
			return
		}
		if len(text) < len(raw)-2 {
			l.text = text[:0] // its room, for the next
		}
	}
	if len(text) > maxValueBytes {
		f.Lost++
		return
	}
	least := 0
	for i := range f.values {
		v := &f.values[i]
		if v.kind == kind && v.text == string(text) {
			v.count++
			v.by.add(l.ordinal)
			return
		}
		if v.count < f.values[least].count {
			least = i
		}
	}
	if len(f.values) < maxValues {
		if !l.b.take(l.s, valueBytes+len(text)) {
			f.Lost++
			return
		}
		v := value{kind: kind, text: string(text), count: 1}
		v.by.add(l.ordinal)
		f.values = append(f.values, v)
		return
	}
	f.Lost++
	v := &f.values[least]
	if !l.b.take(l.s, len(text)-len(v.text)) {
		return
	}
	*v = value{kind: kind, text: string(text), count: v.count + 1, over: v.count}
	v.by.add(l.ordinal)
}
