package columns

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// blockRows is how many events a scan looks at at once.
const blockRows = 4096

// view is a group to be scanned: one of a builder as it was, or one of a file whose
// columns were read.
type view struct {
	rows    int
	offset  []int64 // nil where all events are in the range that is asked
	ordinal ordinals
	times   times
	columns []viewColumn // those that are asked for
}

// viewColumn is a column of a view. Without a key in any event it has no texts.
type viewColumn struct {
	numbers numbers
	texts   texts
}

// ordinals are those of a group: values, or four bytes each.
type ordinals struct {
	values []uint32
	raw    []byte
}

// pick writes the ordinals at places behind from into dst.
func (o *ordinals) pick(dst []uint32, from int, places []int32) {
	if o.raw != nil {
		raw := o.raw[4*from:]
		for i, at := range places {
			dst[i] = binary.LittleEndian.Uint32(raw[4*at:])
		}
		return
	}
	values := o.values[from:]
	for i, at := range places {
		dst[i] = values[at]
	}
}

// times are those of a group: values, or what is added to base, in four or eight bytes
// each.
type times struct {
	values []int64
	base   int64
	width  int
	raw    []byte
}

func (t *times) decode(dst []int64, from int) {
	switch {
	case t.values != nil:
		copy(dst, t.values[from:])
	case t.width == 4:
		raw := t.raw[4*from:]
		for i := range dst {
			dst[i] = t.base + int64(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	default:
		raw := t.raw[8*from:]
		for i := range dst {
			dst[i] = t.base + int64(binary.LittleEndian.Uint64(raw[8*i:]))
		}
	}
}

// numbers are those of values: as they are, of the first events, or in so many bytes
// each.
type numbers struct {
	values []uint32
	width  int
	raw    []byte
}

func (n *numbers) decode(dst []uint32, from int) {
	switch n.width {
	case 0:
		have := 0
		if from < len(n.values) {
			have = copy(dst, n.values[from:])
		}
		clear(dst[have:])
	case 1:
		raw := n.raw[from : from+len(dst)]
		for i := range dst {
			dst[i] = uint32(raw[i])
		}
	case 2:
		raw := n.raw[2*from : 2*(from+len(dst))]
		for i := range dst {
			dst[i] = uint32(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	default:
		raw := n.raw[4*from : 4*(from+len(dst))]
		for i := range dst {
			dst[i] = binary.LittleEndian.Uint32(raw[4*i:])
		}
	}
}

// wanted are the keys that a question looks at, in order and each once; the filters'
// first.
func wanted(q *query.MatchQuery) []string {
	var keys []string
	want := func(path []string) {
		if !slices.Contains(keys, path[0]) {
			keys = append(keys, path[0])
		}
	}
	for i := range q.Where {
		want(q.Where[i].Path)
	}
	if q.As != query.NoValue {
		want(q.Value)
	}
	return keys
}

// Answers reports whether a question is of a kind that columns answer.
func Answers(q *query.MatchQuery) bool {
	if q.ByType || q.EventType == segment.AnyEvent || q.As != query.NoValue && (q.As != query.AsMicros || len(q.Value) == 0) {
		return false
	}
	return !slices.ContainsFunc(q.Where, func(p segment.Predicate) bool { return len(p.Path) == 0 || p.Timed() || !judged(&p) })
}

// judged reports whether a filter is one that [segment.Parse] lets through.
func judged(p *segment.Predicate) bool {
	switch p.Op {
	case segment.OpExists, segment.OpNotExists, segment.OpBefore, segment.OpAfter:
		return true
	case segment.OpBetween:
		return len(p.Values) == 2 && p.Values[0].Kind == p.Values[1].Kind && p.Values[0].Kind != segment.ValueBool
	case segment.OpEq, segment.OpNe, segment.OpIn, segment.OpNotIn:
		return len(p.Values) > 0
	case segment.OpGt, segment.OpGe, segment.OpLt, segment.OpLe:
		return len(p.Values) == 1 && p.Values[0].Kind != segment.ValueBool
	case segment.OpContains, segment.OpNotContains, segment.OpStartsWith, segment.OpEndsWith:
		return len(p.Values) == 1 && p.Values[0].Kind == segment.ValueString
	}
	return false
}

// scratch is the memory of a scan.
type scratch struct {
	timeMs []int64
	number []uint32
	at     []int32
	block  query.MatchBlock
	// sections are what was read of the file that is scanned, the first used ones.
	sections [][]byte
	used     int
}

// scratches are those that no scan uses. A question reads whole columns: tens of megabytes
// where there are millions of events, which would make the garbage collector run while a
// caller waits for the next answer.
var scratches = sync.Pool{New: func() any { return newScratch() }}

// begin takes back what bytes has given.
func (s *scratch) begin() { s.used = 0 }

// bytes is memory of that size until begin; what is in it is anything. Without a scratch
// it is new.
func (s *scratch) bytes(size int) []byte {
	if s == nil {
		return make([]byte, size)
	}
	if s.used == len(s.sections) {
		s.sections = append(s.sections, nil)
	}
	b := &s.sections[s.used]
	s.used++
	if cap(*b) < size {
		*b = make([]byte, size)
	}
	return (*b)[:size]
}

func newScratch() *scratch {
	return &scratch{timeMs: make([]int64, blockRows), number: make([]uint32, blockRows), at: make([]int32, blockRows)}
}

// scan calls fn with the events of a view that answer the question, of records from on
// and below to. keys are the view's columns.
func (v *view) scan(q *query.MatchQuery, keys []string, from, to int64, merged *Aliases, s *scratch, fn func(*query.MatchBlock) error) error {
	if v.rows == 0 {
		return nil
	}
	column := func(path []string) *viewColumn { return &v.columns[slices.Index(keys, path[0])] }
	within, ok := windowOf(q)
	if !ok {
		return nil
	}
	type filter struct {
		column *viewColumn
		pass   []uint8
	}
	filters := make([]filter, len(q.Where))
	for i := range q.Where {
		filters[i] = filter{column: column(q.Where[i].Path)}
		pass, some := judge(&q.Where[i], &filters[i].column.texts)
		if !some {
			return nil
		}
		filters[i].pass = pass
	}
	var value *viewColumn
	var micros []int64
	if q.As == query.AsMicros {
		value = column(q.Value)
		micros = microsOf(q.Value, &value.texts)
	}
	b := &s.block
	for first := 0; first < v.rows; first += blockRows {
		n := min(blockRows, v.rows-first)
		timeMs, number := s.timeMs[:n], s.number[:n]
		v.times.decode(timeMs, first)
		at := within.pick(s.at[:n], timeMs)
		if v.offset != nil {
			at = keepRecords(at, v.offset[first:first+n], from, to)
		}
		for i := range filters {
			if len(at) == 0 {
				break
			}
			filters[i].column.numbers.decode(number, first)
			at = keep(at, number, filters[i].pass)
		}
		if len(at) == 0 {
			continue
		}
		b.Ordinal, b.TimeMs, b.Micros = withLen(b.Ordinal, len(at)), withLen(b.TimeMs, len(at)), b.Micros[:0]
		v.ordinal.pick(b.Ordinal, first, at)
		merged.replace(b.Ordinal)
		for i, j := range at {
			b.TimeMs[i] = timeMs[j]
		}
		if value != nil {
			value.numbers.decode(number, first)
			for _, j := range at {
				b.Micros = append(b.Micros, micros[number[j]])
			}
		}
		if err := fn(b); err != nil {
			return err
		}
	}
	return nil
}

// withLen is s or a new one, of so many elements with anything in them.
func withLen[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// judge finds for the number of each value whether a filter holds for it, 1 or 0, and
// whether it does for any.
func judge(p *segment.Predicate, t *texts) (pass []uint8, some bool) {
	pass = make([]uint8, len(t.ends)+1)
	set := func(number int, raw []byte) {
		if p.MatchValue(raw, 0) {
			pass[number], some = 1, true
		}
	}
	set(0, nil)
	for i := range t.ends {
		raw := t.at(i)
		if len(p.Path) > 1 {
			raw, _ = rawjson.Lookup(raw, p.Path[1:])
		}
		set(i+1, raw)
	}
	return pass, some
}

// microsOf are the millionths of each value by its number.
func microsOf(path []string, t *texts) []int64 {
	micros := make([]int64, len(t.ends)+1)
	micros[0] = query.NoMicros
	for i := range t.ends {
		micros[i+1] = query.NoMicros
		raw := t.at(i)
		if len(path) > 1 {
			raw, _ = rawjson.Lookup(raw, path[1:])
		}
		if m, ok := segment.MicrosOfJSON(raw); ok {
			micros[i+1] = m
		}
	}
	return micros
}
