package engine

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/segment"
)

// TestS1PublishedEqualsCount drives the engine at random and compares what it
// publishes with what it counts: at random instants, and at the edges of what
// will expire ± 1 ms (S1). Segments that are deleted, or are being built, must
// not answer, nor may any while the engine lags.
func TestS1PublishedEqualsCount(t *testing.T) {
	steps := testlevel.Count(2_000, 12_000)
	told, stepped, refused := 0, 0, 0
	for seed := uint64(1); steps > 0; seed++ {
		w := newWorld(t, seed)
		known := map[string]*Published{}
		for range 400 {
			steps--
			e := w.e
			w.step()
			if w.e != e {
				clear(known) // what another engine published is not this one's to withdraw
			}
			if w.rng.IntN(4) == 0 {
				continue // several records' worth at once
			}
			w.e.Publish()
			for id, p := range known {
				if w.e.Publication(id) == p {
					continue
				}
				if _, ok := p.Count(w.now); ok && w.e.segments[id] == nil {
					w.fatalf("S1: segment %s is deleted and still counts", id)
				}
				delete(known, id)
			}
			for _, id := range w.e.sortedIDs() {
				p := w.e.Publication(id)
				known[id] = p
				at := []int64{w.now, w.at(), w.at(), w.now + 1, p.bound.Load() - 1, p.bound.Load(), p.bound.Load() + 1}
				for i := range p.steps {
					if due := p.steps[i].due.Load(); due != never {
						at = append(at, due-1, due, due+1)
					}
				}
				for _, ms := range at {
					if ms < w.now {
						continue
					}
					n, ok := p.Count(ms)
					if !ok {
						if ms == w.now && w.e.Live(id) && !w.e.Lagging() {
							refused++
						}
						continue
					}
					if !w.e.Live(id) || w.e.Lagging() {
						w.fatalf("S1: %s counts, live: %t, lagging: %t", id, w.e.Live(id), w.e.Lagging())
					}
					if want := w.e.Count(id, ms); n != want {
						w.fatalf("S1: %s has %d members at %d as published, %d as counted\n%s", id, n, ms, want, w.defs[id].Canonical())
					}
					told++
					if n != uint64(p.count.Load()) {
						stepped++
					}
				}
				if _, ok := p.Count(w.now); !ok && w.e.Live(id) && !w.e.Lagging() && len(w.e.segments[id].timed) == 0 {
					w.fatalf("%s does not depend on time and does not count", id)
				}
			}
		}
	}
	t.Logf("%d counts compared, %d after a step, %d refused by live segments", told, stepped, refused)
	if told < 100*refused || stepped < told/200 {
		t.Fatal("too little is published to tell anything")
	}
}

// TestPublishCostsWhatChanges: a record that changes members of one segment
// looks at no other, and makes nothing (L3).
func TestPublishCostsWhatChanges(t *testing.T) {
	e := New()
	e.Advance(100*dayMs, 1)
	for i := range 200 {
		defined(t, e, fmt.Sprint("idle", i), fmt.Sprintf(`{"kind":"activity","event":"idle","window":{"last_days":%d}}`, i+1), 1)
	}
	n, err := segment.Parse([]byte(`{"kind":"activity","event":"act","window":{"last_days":1}}`), segment.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	e.Define("s", n, 1, func(string) bool { return false })
	e.Publish()
	if allocs := testing.AllocsPerRun(100, func() { e.Publish() }); allocs > 0 {
		t.Errorf("%v allocations where nothing has changed", allocs)
	}
	e.Touch(7)
	e.Create(7)
	e.Event(7, e.now, []byte("act"), nil)
	e.Evaluate(7)
	if len(e.pub.queue) != 1 {
		t.Fatalf("%d segments are to be written, one has changed", len(e.pub.queue))
	}
	if e.Publish() {
		t.Error("no definition has changed")
	}
	if n, ok := e.Publication("s").Count(e.now); n != 1 || !ok {
		t.Errorf("%d members, known: %t", n, ok)
	}
	if n, ok := e.Publication("s").Count(e.now + dayMs); ok && n != 0 {
		t.Errorf("%d members a day later", n)
	}
}

// BenchmarkPublish publishes after each event of a profile that enters or
// leaves one of the segments on it, beside others on other events.
func BenchmarkPublish(b *testing.B) {
	for _, segments := range []int{20, 1000} {
		b.Run(fmt.Sprintf("segments=%d", segments), func(b *testing.B) {
			e := New()
			e.Advance(100*dayMs, 1)
			define := func(id, text string) {
				n, err := segment.Parse([]byte(text), segment.Limits{})
				if err != nil {
					b.Fatal(err)
				}
				e.Define(id, n, 1, func(string) bool { return false })
			}
			for i := range segments {
				define(fmt.Sprint("idle", i), fmt.Sprintf(`{"kind":"activity","event":"idle%d","window":{"last_days":%d}}`, i%50, i+1))
			}
			for i := range 10 {
				define(fmt.Sprint("sum", i), fmt.Sprintf(`{"kind":"activity","event":"act","window":{"last_days":%d},"aggregate":{"fn":"sum","property":"v","op":">","value":0}}`, i+1))
			}
			for o := range uint32(10_000) {
				e.Touch(o)
				e.Create(o)
				e.Evaluate(o)
			}
			e.Publish()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				b.StopTimer()
				e.Advance(100*dayMs+int64(i/10), 1<<20)
				o := uint32(i*7919) % 10_000
				e.Touch(o)
				v := `{"v":1}`
				if i%20_000 >= 10_000 {
					v = `{"v":-1}`
				}
				e.Event(o, e.now, []byte("act"), []byte(v))
				e.Evaluate(o)
				e.Transitions()
				b.StartTimer()
				e.Publish()
			}
		})
	}
}
