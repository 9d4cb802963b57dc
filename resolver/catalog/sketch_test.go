package catalog

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// naive is what is to be known of objects, found without bounds.
type naive struct {
	looked uint64
	fields map[string]*naiveField
}

type naiveField struct {
	first, last int64
	kinds       [kinds]uint64
	elements    [scalars]uint64
	values      map[string]uint64 // by kind and text
	by          map[uint32]bool
	valueBy     map[string]map[uint32]bool
}

func (n *naive) look(t *testing.T, ordinal uint32, atMs int64, raw []byte) {
	var x map[string]any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if err := d.Decode(&x); err != nil {
		t.Fatal(err)
	}
	n.looked++
	n.object("", x, ordinal, atMs)
}

func naiveKind(x any) Kind {
	switch x.(type) {
	case string:
		return Text
	case json.Number:
		return Number
	case bool:
		return Boolean
	case []any:
		return List
	case map[string]any:
		return Object
	}
	return Null
}

func (n *naive) object(prefix string, x map[string]any, ordinal uint32, atMs int64) {
	for k, v := range x {
		f := n.fields[prefix+k]
		if f == nil {
			f = &naiveField{first: atMs, last: atMs, values: map[string]uint64{}, by: map[uint32]bool{}, valueBy: map[string]map[uint32]bool{}}
			n.fields[prefix+k] = f
		}
		f.first, f.last = min(f.first, atMs), max(f.last, atMs)
		f.kinds[naiveKind(v)]++
		f.by[ordinal] = true
		note := func(v any) {
			key := fmt.Sprint(naiveKind(v), " ", v)
			f.values[key]++
			if f.valueBy[key] == nil {
				f.valueBy[key] = map[uint32]bool{}
			}
			f.valueBy[key][ordinal] = true
		}
		switch v := v.(type) {
		case map[string]any:
			n.object(prefix+k+".", v, ordinal, atMs)
		case []any:
			seen := map[any]bool{}
			has := map[Kind]bool{}
			for _, e := range v {
				if k := naiveKind(e); k < scalars {
					has[k] = true
					if !seen[e] {
						note(e)
					}
					seen[e] = true
				}
			}
			for k := range has {
				f.elements[k]++
			}
		case nil:
		default:
			note(v)
		}
	}
}

// compare holds a sketch that kept all against the naive one.
func (n *naive) compare(t *testing.T, s *Sketch) {
	t.Helper()
	if s.Looked() != n.looked || s.More() != 0 || len(s.fields) != len(n.fields) {
		t.Fatalf("%d looked at, %d more, %d fields; want %d, 0, %d", s.Looked(), s.More(), len(s.fields), n.looked, len(n.fields))
	}
	for path, want := range n.fields {
		f := s.index[path]
		if f == nil {
			t.Fatalf("no %s", path)
		}
		if f.FirstMs != want.first || f.LastMs != want.last || f.Kinds != want.kinds || f.Elements != want.elements {
			t.Fatalf("%s is %+v, want %+v", path, f, want)
		}
		values := map[string]uint64{}
		for _, v := range f.Top() {
			values[fmt.Sprint(v.Kind, " ", v.Text)] = v.AtLeast
		}
		if !reflect.DeepEqual(values, want.values) {
			t.Fatalf("%s has %v, want %v", path, values, want.values)
		}
		has := want.kinds
		has[Null] = 0
		if found, known := s.Find(strings.Split(path, ".")); !known || (found != nil) != (has != [kinds]uint64{}) {
			t.Fatalf("%s is %v, known: %v", path, found, known)
		}
	}
}

// randomObject draws an object with few keys and few values.
func randomObject(rng *rand.Rand, depth int) []byte {
	b := []byte{'{'}
	for _, k := range []string{"a", "b", "c\\u00e9\\\"", "d"} {
		if rng.IntN(3) == 0 {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `"%s":`, k)
		switch rng.IntN(8) {
		case 0:
			if depth > 0 {
				b = append(b, randomObject(rng, depth-1)...)
				break
			}
			fallthrough
		case 1:
			b = fmt.Appendf(b, `[%d,"x%d",%d,{"no":1},null,[2],true]`, rng.IntN(3), rng.IntN(2), rng.IntN(3))
		case 2:
			b = append(b, "null"...)
		case 3:
			b = append(b, []string{"true", "false"}[rng.IntN(2)]...)
		case 4, 5:
			b = fmt.Appendf(b, `"v\"\u00fc%d"`, rng.IntN(4))
		default:
			b = fmt.Appendf(b, "%d.5", rng.IntN(4))
		}
	}
	return append(b, '}')
}

// TestSketchOfFewIsExact: while nothing is beyond a bound, a sketch knows what a naive
// count of all objects knows, however often it is saved and read again.
func TestSketchOfFewIsExact(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b, s := &Budget{Limit: 1 << 20}, New()
		n := &naive{fields: map[string]*naiveField{}}
		var l Looker
		for range 1 + rng.IntN(200) {
			raw, o, at := randomObject(rng, 2), uint32(rng.IntN(9)), rng.Int64N(1000)-500
			l.Look(s, b, o, at, Part{"", raw})
			n.look(t, o, at, raw)
			if rng.IntN(20) == 0 {
				s, b = again(t, s, b)
			}
		}
		n.compare(t, s)
	}
}

// again is the sketch after it was saved and read.
func again(t *testing.T, s *Sketch, b *Budget) (*Sketch, *Budget) {
	t.Helper()
	saved := s.Append(nil)
	read, budget := New(), &Budget{Limit: b.Limit}
	if err := read.Decode(budget, saved); err != nil {
		t.Fatal(err)
	}
	if string(read.Append(nil)) != string(saved) || read.Size() != s.Size() || budget.Used != b.Used {
		t.Fatalf("a sketch of %d bytes has %d after it was read", s.Size(), read.Size())
	}
	for i, f := range s.fields {
		if have, want := fmt.Sprintf("%+v", *read.fields[i]), fmt.Sprintf("%+v", *f); have != want {
			t.Fatalf("read is %s, saved was %s", have, want)
		}
	}
	if read.Base != s.Base || read.looked != s.looked || read.dropped != s.dropped || read.beyond != s.beyond {
		t.Fatalf("read is %+v, saved was %+v", read, s)
	}
	return read, budget
}

// TestBounds: whatever comes, a sketch stays within its bounds and says that there was
// more; its bytes are those of what it holds.
func TestBounds(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		b, s := &Budget{Limit: 20_000 + rng.IntN(100_000)}, New()
		var l Looker
		for i := range 400 {
			obj := fmt.Appendf(nil, `{"id":"%d-%d","long":"%s","deep":%s1%s`, seed, i, strings.Repeat("x", 100), strings.Repeat(`{"d":`, 12), strings.Repeat("}", 12))
			for range rng.IntN(30) {
				obj = fmt.Appendf(obj, `,"p%d":%d`, rng.IntN(1_000_000), rng.IntN(100))
			}
			obj = fmt.Appendf(obj, `,"dot.ted":1,"%s":1}`, strings.Repeat("k", 300))
			l.Look(s, b, uint32(rng.IntN(1000)), int64(i), Part{"", obj})
			if rng.IntN(50) == 0 {
				b.give(s, 0)
				s.Erase(b, func(o uint32) bool { return o%7 == 0 })
			}
			size := 0
			for _, f := range s.fields {
				size += f.bytes()
				if len(f.values) > maxValues || len(f.Path) > maxPathBytes || strings.Count(f.Path, ".") >= maxDepth {
					t.Fatalf("%s has %d values", f.Path, len(f.values))
				}
			}
			if size != s.size || size != b.Used || b.Used > b.Limit || len(s.fields) > maxFields {
				t.Fatalf("%d bytes, counted as %d and %d of %d; %d fields", size, s.size, b.Used, b.Limit, len(s.fields))
			}
		}
		if s.More() == 0 || s.Looked() != 400 {
			t.Fatalf("%d more of %d", s.More(), s.Looked())
		}
		again(t, s, b)
		if top := s.index["id"].Top(); len(top) != 0 {
			t.Errorf("no value came twice, and the most frequent are %v", top)
		}
		if _, known := s.Find([]string{"never"}); known {
			t.Error("a field may have been missed, and is said not to be there")
		}
	}
}

// TestFrequentValues: of more values than there are counters the frequent ones are
// found, and never said to be more frequent than they are.
func TestFrequentValues(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	b, s := &Budget{Limit: 1 << 20}, New()
	count := map[string]uint64{}
	var l Looker
	for range 10_000 {
		v := fmt.Sprint("rare", rng.IntN(5000))
		if rng.IntN(2) == 0 {
			v = fmt.Sprint("often", rng.IntN(5))
		}
		count[v]++
		l.Look(s, b, 1, 1, Part{"", fmt.Appendf(nil, `{"p":"%s"}`, v)})
	}
	top := s.index["p"].Top()
	for i, v := range top {
		if v.AtLeast > count[v.Text] {
			t.Errorf("%s is there %d times, %d are told", v.Text, count[v.Text], v.AtLeast)
		}
		if often := strings.HasPrefix(v.Text, "often"); i < 5 && !often || often && v.AtLeast < 500 {
			t.Errorf("%s is number %d, with %d times", v.Text, i, v.AtLeast)
		}
	}
	if len(top) < 5 {
		t.Errorf("%v", top)
	}
}

// TestErase: after some were erased there is no text left that only they had, and all of
// those that one of the newest others had.
func TestErase(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 4))
		b, s := &Budget{Limit: 1 << 20}, New()
		n := &naive{fields: map[string]*naiveField{}}
		var l Looker
		for range 1 + rng.IntN(60) {
			raw, o := randomObject(rng, 1), uint32(rng.IntN(10))
			l.Look(s, b, o, 1, Part{"", raw})
			n.look(t, o, 1, raw)
		}
		erased := uint32(rng.IntN(1 << 10))
		gone := func(o uint32) bool { return erased>>o&1 == 1 }
		before := string(s.Append(nil))
		if changed := s.Erase(b, gone); changed != (before != string(s.Append(nil))) {
			t.Fatalf("changed: %v", changed)
		}
		again(t, s, b)
		left := func(by map[uint32]bool) (n int) {
			for o := range by {
				if !gone(o) {
					n++
				}
			}
			return n
		}
		for path, f := range n.fields {
			got := s.index[path]
			switch some := left(f.by); {
			case got != nil && some == 0:
				t.Fatalf("%s was of erased people alone and is there", path)
			case got == nil && some > 0 && len(f.by) <= maxProfiles:
				t.Fatalf("a profile still has %s, and it is gone", path)
			case got == nil && some > 0:
				if _, known := s.Find(strings.Split(path, ".")); known {
					t.Fatalf("a profile has %s, and it is said not to be there", path)
				}
				continue
			case got == nil:
				continue
			}
			for key, by := range f.valueBy {
				is := slices.ContainsFunc(got.values, func(v value) bool { return fmt.Sprint(v.kind, " ", v.text) == key })
				if some := left(by); is && some == 0 || !is && some > 0 && len(by) <= maxProfiles {
					t.Fatalf("%s %s: there: %v, %d people", path, key, is, some)
				}
			}
		}
	}
}

// TestMaskedKeys: what stands for an erased person's attributes in a redacted record is
// passed over.
func TestMaskedKeys(t *testing.T) {
	b, s := &Budget{Limit: 1 << 20}, NewAttributes()
	var l Looker
	l.Look(s, b, 1, 1, Part{"geo", nil}, Part{"attributes", []byte(`{"\u0000mAAAA.3.":"xxx","plan":"pro"}`)})
	if f, _ := s.Find([]string{"attributes", "plan"}); f == nil || len(s.fields) != 1 || s.More() != 0 {
		t.Errorf("%d fields, %d more", len(s.fields), s.More())
	}
}

// TestSampled: all of the first, then about as many of each doubling, down to one in 64.
func TestSampled(t *testing.T) {
	const end = 1 << 20
	n := map[int]int{}
	for i := range uint64(end) {
		if Sampled(i) {
			n[bits.Len64(i/lookAll)]++
		} else if i < lookAll {
			t.Fatal("number", i, "is not looked at")
		}
	}
	for k, got := range n {
		of := lookAll << max(k-1, 0)
		if k == bits.Len64(end/lookAll) {
			of = end - of
		}
		want := of >> min(k, maxRarity)
		if got < want*3/4 || got > want*5/4 {
			t.Errorf("of the doubling %d: %d, want about %d", k, got, want)
		}
	}
	// Whatever period events have, each of their kinds is looked at.
	for period := range uint64(12) {
		for rest := range period {
			some := 0
			for i := rest; i < end; i += period {
				if i > 100_000 && Sampled(i) {
					some++
				}
			}
			if want := int(end-100_000) / int(period) / 64; some < want/2 {
				t.Errorf("of each %dth from %d only %d are looked at, not about %d", period, rest, some, want)
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	b, s := &Budget{Limit: 1 << 20}, New()
	var l Looker
	f.Add(s.Append(nil))
	rng := rand.New(rand.NewPCG(1, 5))
	for range 20 {
		l.Look(s, b, uint32(rng.IntN(6)), 1, Part{"", randomObject(rng, 1)})
	}
	f.Add(s.Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, b := New(), &Budget{Limit: 1 << 20}
		if s.Decode(b, data) != nil {
			return
		}
		if string(s.Append(nil)) != string(data) {
			t.Fatal("another form")
		}
		b.Limit = max(b.Limit, b.Used)
		var l Looker
		l.Look(s, b, 7, 1, Part{"", []byte(`{"a":1,"b":["x",{"c":2}]}`)})
		s.Erase(b, func(o uint32) bool { return o == 7 })
		s.Fields()
		if b.Used != s.Size() {
			t.Fatal("its bytes are not counted")
		}
	})
}

func FuzzLook(f *testing.F) {
	f.Add([]byte(`{"a":{"b":["x","x",1]},"c.d":null,"\u0000m":1}`))
	f.Add([]byte(`{"a":"\ud83d`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, b := New(), &Budget{Limit: 10_000}
		var l Looker
		l.Look(s, b, 7, 1, Part{"", raw})
		l.Look(s, b, 7, 1, Part{"x", raw})
		again(t, s, b)
	})
}

func BenchmarkLook(b *testing.B) {
	budget, s := &Budget{Limit: 1 << 20}, New()
	var l Looker
	var objects [64][]byte
	for i := range objects {
		objects[i] = fmt.Appendf(nil, `{"value":%d.95,"currency":"EUR","product_id":"sku-%d","category":"c%d","items":[{"id":1}],"first":true}`, i, i*17, i%7)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		l.Look(s, budget, uint32(i), int64(i), Part{"", objects[i%64]})
	}
}
