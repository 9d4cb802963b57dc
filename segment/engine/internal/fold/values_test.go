package fold

import (
	"testing"

	"github.com/musterhq/muster/segment"
)

// TestFoldsForgetWhatIsOver (L3): a value does not grow by events that are out
// of the window when others come.
func TestFoldsForgetWhatIsOver(t *testing.T) {
	for _, s := range []Spec{
		{Kind: KindTimes, WindowMs: 10, Keep: 8},
		{Kind: KindSums, WindowMs: 10, Property: "p"},
		{Kind: KindMin, WindowMs: 10, Property: "p"},
		{Kind: KindMax, WindowMs: 10, Property: "p"},
		{Kind: KindDistinct, WindowMs: 10, Property: "p", Keep: 8},
		{Kind: KindSpans, WindowMs: 10, Property: "p"},
	} {
		f := s.New()
		once := func(v []byte, at int64, n int) []byte {
			o := Occurrence{AtMs: at, Micros: int64(n), Number: true, Key: Key{byte(n)}, Scalar: true, Spans: []Span{{at, at + 10}}}
			return f.Add(v, &o, at)
		}
		v := once(once(nil, 100, 1), 101, 2)
		if got, want := once(v, 111, 3), once(nil, 111, 3); string(got) != string(want) {
			t.Errorf("%s keeps %x of what is over, want %x", s.Kind, got, want)
		}
		v, other := once(nil, 100, 1), once(nil, 100, 2)
		if got := f.Union(v, other, 110); got != nil {
			t.Errorf("%s: two values of the past make %x", s.Kind, got)
		}
		var long []byte
		for at := range int64(1000) {
			long = once(long, at, int(at%7))
		}
		if len(long) > sumsHead+30*spansEntry {
			t.Errorf("%s keeps %d bytes of a window of 10 events", s.Kind, len(long))
		}
	}
}

// TestFoldsCutLongValues (L3): long values are cut before they hold twice what
// decides.
func TestFoldsCutLongValues(t *testing.T) {
	for _, c := range []struct {
		s          Spec
		least, max int
	}{
		{Spec{Kind: KindTimes, WindowMs: 100_000, Keep: 64}, 64 * 8, 2 * 64 * 8},
		{Spec{Kind: KindTimes, WindowMs: 100_000, Keep: 8}, 8 * 8, 8 * 8},
		{Spec{Kind: KindTimes, WindowMs: 100, Keep: 1 << 20}, 100 * 8, 100 * 8},
		{Spec{Kind: KindSums, WindowMs: 100, Property: "p"}, sumsHead + 100*sumsEntry, sumsHead + 201*sumsEntry},
		{Spec{Kind: KindDistinct, WindowMs: 100_000, Property: "p", Keep: 8}, 8 * distinctEntry, 16 * distinctEntry},
		{Spec{Kind: KindDistinct, Property: "p", Keep: 8}, 8 * distinctEntry, 8 * distinctEntry},
	} {
		f := c.s.New()
		var v []byte
		for at := range int64(5000) {
			o := Occurrence{AtMs: at, Micros: 1, Number: true, Key: Key{byte(at), byte(at >> 8)}, Scalar: true}
			v = f.Add(v, &o, at)
			if at > 1000 && (len(v) < c.least || len(v) > c.max) {
				t.Fatalf("%v keeps %d bytes, want %d to %d", c.s, len(v), c.least, c.max)
			}
			if !f.Valid(v) {
				t.Fatalf("%v keeps what it does not hold for valid", c.s)
			}
		}
	}
}

// TestCountStopsAtItsBound: a count that is full stays full.
func TestCountStopsAtItsBound(t *testing.T) {
	full := []byte{0xff, 0xff, 0xff, 0xff}
	if v := (countFold{}).Add([]byte{0xff, 0xff, 0xff, 0xff}, nil, 0); string(v) != string(full) {
		t.Errorf("one more makes %x", v)
	}
	if v := (countFold{}).Union([]byte{0xfe, 0xff, 0xff, 0xff}, []byte{5, 0, 0, 0}, 0); string(v) != string(full) {
		t.Errorf("five more make %x", v)
	}
}

// TestEnoughLooksBesideConstants (L3): how many are enough is found without
// walking there, for constants that no count meets too.
func TestEnoughLooksBesideConstants(t *testing.T) {
	const unit = segment.MicrosPerUnit
	for _, c := range []struct {
		op     segment.Op
		micros []int64
		want   int64
	}{
		{segment.OpGe, []int64{0}, 1}, {segment.OpGe, []int64{unit}, 1}, {segment.OpGt, []int64{unit}, 2}, {segment.OpEq, []int64{unit}, 2},
		{segment.OpEq, []int64{2 * unit}, 4}, {segment.OpGe, []int64{3 * unit}, 4}, {segment.OpLt, []int64{2*unit + unit/2}, 4},
		{segment.OpEq, []int64{900_000_000_000*unit + 1}, 1}, {segment.OpNe, []int64{-5 * unit}, 1},
		{segment.OpIn, []int64{4 * unit, 900_000_000_000*unit + 1}, 8}, {segment.OpBetween, []int64{3*unit + 1, 3*unit + 2}, 1},
		{segment.OpGe, []int64{1_000_000 * unit}, 1 << 20}, {segment.OpGe, []int64{1 << 41 * unit}, 1 << 40},
	} {
		x := segment.Compare{Op: c.op}
		for _, m := range c.micros {
			x.Micros = append(x.Micros, segment.Micros(m))
		}
		if got := enough(&x); got != c.want {
			t.Errorf("%s %v: %d are enough, want %d", c.op, c.micros, got, c.want)
		}
	}
}
