package engine

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
)

// mixed are conditions of all kinds on one type of events.
var mixed = func() (out []string) {
	for _, days := range []int{1, 7, 30, 365} {
		for _, rest := range []string{
			`"count":{"op":">=","value":3}`,
			`"aggregate":{"fn":"sum","property":"value","op":">","value":100}`,
			`"aggregate":{"fn":"max","property":"value","op":">","value":90}`,
			`"aggregate":{"fn":"distinct","property":"sku","op":">=","value":3}`,
		} {
			out = append(out, fmt.Sprintf(`{"kind":"activity","event":"act","window":{"last_days":%d},%s}`, days, rest))
		}
	}
	return append(out,
		`{"kind":"activity","event":"act","count":{"op":">=","value":10}}`,
		`{"kind":"activity","event":"act","aggregate":{"fn":"avg","property":"value","op":">","value":50}}`,
		`{"kind":"activity","event":"act","where":[{"property":"sku","op":"=","value":"sku-3"}],"count":{"op":">=","value":2}}`,
		`{"kind":"activity","event":"act","did":false,"window":{"last_days":90},"count":{"op":">=","value":1}}`,
	)
}()

// load is events that go on and on: time passes, profiles are all over.
type load struct {
	e          *Engine
	now        int64
	profiles   uint32
	rng        uint64
	n          uint64
	properties [][]byte
	typ        []byte
}

func newLoad(e *Engine, profiles uint32) *load {
	l := &load{e: e, now: e.NowMs(), profiles: profiles, rng: 1, typ: []byte("act")}
	for i := range 64 {
		l.properties = append(l.properties, fmt.Appendf(nil, `{"currency":"EUR","value":%d.5,"sku":"sku-%d","note":"something else"}`, i*3%100, i%9))
	}
	return l
}

func (l *load) event() {
	l.rng = l.rng*6364136223846793005 + 1442695040888963407
	o := uint32((l.rng >> 32) * uint64(l.profiles) >> 32)
	if l.n++; l.n%64 == 0 {
		l.now += 50
		l.e.Advance(l.now, 4096)
		l.e.Transitions()
	}
	l.e.Touch(o)
	l.e.Event(o, l.now, l.typ, l.properties[l.n%64])
	l.e.Evaluate(o)
}

// crowdLoad is a load on profiles that each have an event.
func crowdLoad(b testing.TB, profiles uint32, definitions ...string) *load {
	l := newLoad(crowd(b, 19_800*dayMs, profiles, definitions...), profiles)
	for o := range profiles {
		act(l.e, o, l.now, "act", string(l.properties[o%64]))
		if o%4096 == 0 {
			l.e.Transitions()
		}
	}
	return l
}

func sizes() []uint32 {
	out := []uint32{10_000, 1_000_000}
	if testlevel.Long() {
		out = append(out, 10_000_000)
	}
	return out
}

// BenchmarkEvent is the cost of an event by the number of conditions on its
// type and of profiles.
func BenchmarkEvent(b *testing.B) {
	for _, leaves := range []int{1, 5, 20} {
		for _, profiles := range sizes() {
			b.Run(fmt.Sprintf("leaves=%d/profiles=%d", leaves, profiles), func(b *testing.B) {
				if profiles > 1_000_000 && leaves > 5 {
					b.Skip("the values take more memory than a machine of 16 GB has")
				}
				var some []string
				for i := range leaves {
					some = append(some, mixed[i*len(mixed)/leaves])
				}
				l := crowdLoad(b, profiles, some...)
				b.ReportAllocs()
				for b.Loop() {
					l.event()
				}
			})
		}
	}
}

// BenchmarkEventBesideSegments is the cost of an event of a type with five
// conditions by the number of other segments, on other types and on the same.
func BenchmarkEventBesideSegments(b *testing.B) {
	for _, where := range []string{"other", "same"} {
		for _, n := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s=%d", where, n), func(b *testing.B) {
				some := []string{mixed[0], mixed[5], mixed[10], mixed[15], mixed[16]}
				for i := range n {
					typ := "act"
					if where == "other" {
						typ = fmt.Sprintf("other%d", i%100)
					}
					some = append(some, fmt.Sprintf(`{"kind":"activity","event":%q,"window":{"last_days":30},"count":{"op":">=","value":%d}}`, typ, 1+i))
				}
				l := crowdLoad(b, 10_000, some...)
				b.ReportAllocs()
				for b.Loop() {
					l.event()
				}
			})
		}
	}
}

// BenchmarkEventOfManySegments is the cost of an event of a type that a thousand segments
// are about: counts, windows, sums and filters, as `bench segments` has them.
func BenchmarkEventOfManySegments(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var some []string
			for i := range n {
				k := i/4 + 1
				rest := []string{
					fmt.Sprintf(`"count":{"op":">=","value":%d}`, k),
					fmt.Sprintf(`"window":{"last_days":%d},"count":{"op":">=","value":2}`, k),
					fmt.Sprintf(`"aggregate":{"fn":"sum","property":"value","op":">=","value":%d}`, 10*k),
					fmt.Sprintf(`"where":[{"property":"sku","op":"=","value":"sku-%d"}]`, k),
				}[i%4]
				some = append(some, `{"kind":"activity","event":"act",`+rest+`}`)
			}
			l := crowdLoad(b, 2000, some...)
			b.ReportAllocs()
			for b.Loop() {
				l.event()
			}
		})
	}
}

// BenchmarkBytesPerValue is what each fold takes in memory for a profile with
// five events.
func BenchmarkBytesPerValue(b *testing.B) {
	for _, d := range append(mixed[4:8:8], append(mixed[16:18:18],
		`{"kind":"activity","event":"act","window":{"last_days":30},"count":{"op":">=","value":1}}`,
		`{"kind":"activity","event":"act","window":{"last_days":30},"aggregate":{"fn":"min","property":"value","op":"<","value":10}}`,
		`{"kind":"activity","event":"act","where":[{"property":"d","op":"not_in_last_days","value":1}],"count":{"op":">=","value":1}}`)...) {
		n, err := segment.Parse([]byte(d), segment.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(string(fold.SpecOf(n.Activity).Kind), func(b *testing.B) {
			for b.Loop() {
				l := crowdLoad(b, 100_000, d)
				for range 400_000 {
					l.event()
				}
				st := l.e.byState[0]
				whole := l.e.Stats()
				b.ReportMetric(float64(st.group.bytes())/float64(st.values()), "B/value")
				b.ReportMetric(float64(whole.Bytes)/float64(whole.Values), "B/value-with-bitmaps")
			}
		})
	}
}

// BenchmarkCount is a read of a segment of very many members, of whom a
// thousand leave by the instant asked for.
func BenchmarkCount(b *testing.B) {
	profiles := sizes()[len(sizes())-1]
	l := newLoad(crowd(b, 19_800*dayMs, profiles, `{"kind":"activity","event":"act","window":{"last_days":30},"count":{"op":">=","value":1}}`), profiles)
	for o := range profiles {
		act(l.e, o, l.now-int64(o%1000), "act", `{}`)
		if o >= profiles-1000 { // these leave early
			act(l.e, o, l.now, "act", `{}`)
		}
		l.e.Transitions()
	}
	// All but a thousand do it again, a day later.
	l.now += dayMs
	l.e.Advance(l.now, 1<<30)
	for o := range profiles - 1000 {
		act(l.e, o, l.now, "act", `{}`)
	}
	l.e.Transitions()
	edge := l.now + 29*dayMs
	for !l.e.Advance(edge-1000, 1<<20) {
	}
	for _, c := range []struct {
		name string
		t    int64
		want uint32
	}{{"now", l.e.NowMs(), profiles}, {"with1000pending", edge, profiles - 1000}} {
		b.Run(fmt.Sprintf("members=%d/%s", profiles, c.name), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := l.e.Count("s0", c.t); got != uint64(c.want) {
					b.Fatalf("%d members, want %d", got, c.want)
				}
			}
		})
	}
}

func write(b testing.TB, f *Frozen) []byte {
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	if err := f.Write(w); err != nil {
		b.Fatal(err)
	}
	w.Flush()
	return out.Bytes()
}

// BenchmarkRestore reads a million values of mixed kinds and puts the engine
// together.
func BenchmarkRestore(b *testing.B) {
	l := crowdLoad(b, 200_000, mixed[0], mixed[5], mixed[10], mixed[15], mixed[16])
	file := write(b, l.e.Freeze(true))
	values := l.e.Stats().Values
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		r := NewRestorer()
		if err := r.Read(bufio.NewReaderSize(bytes.NewReader(file), 1<<16)); err != nil {
			b.Fatal(err)
		}
		universe := roaring.New()
		universe.AddRange(0, 200_000)
		if _, err := r.Engine(universe); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(values), "values")
}

// BenchmarkFreezeDelta is how long the engine stands still to hand over a
// hundred thousand changed values among a million.
func BenchmarkFreezeDelta(b *testing.B) {
	benchDeltas(b, func(e *Engine) {
		b.StartTimer()
		e.Freeze(false)
	})
}

// benchDeltas calls fn, which starts the timer, after each fifty thousand events of a million
// profiles.
func benchDeltas(b *testing.B, fn func(e *Engine)) {
	l := crowdLoad(b, 1_000_000, mixed[0], mixed[16])
	l.e.Freeze(true)
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		for range 50_000 {
			l.event()
		}
		fn(l.e)
	}
}

// BenchmarkWriteDelta is how long a checkpoint takes to write values of fifty thousand of a
// million profiles.
func BenchmarkWriteDelta(b *testing.B) {
	benchDeltas(b, func(e *Engine) {
		f := e.Freeze(false)
		b.StartTimer()
		if err := f.Write(bufio.NewWriterSize(io.Discard, 1<<16)); err != nil {
			b.Fatal(err)
		}
	})
}

// TestAllocationsPerEvent: in the steady state an event costs no memory.
func TestAllocationsPerEvent(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	l := crowdLoad(t, 16, mixed...)
	for range 30_000 {
		l.event()
	}
	// Values and bitmaps have room; a rare growth is less than one per event.
	if n := testing.AllocsPerRun(5_000, l.event); n != 0 {
		t.Fatalf("%v allocations per event", n)
	}
}
