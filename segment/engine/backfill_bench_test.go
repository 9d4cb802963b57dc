package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/musterhq/muster/segment"
)

// BenchmarkBackfill builds a segment on a million profiles from two million events, in random
// order, in chunks as large as the resolver's. The parts are reported beside the whole.
func BenchmarkBackfill(b *testing.B) {
	const profiles, events = 1_000_000, 2_000_000
	for _, kind := range []struct{ name, text string }{
		{"count", `{"kind":"activity","event":"act","count":{"op":">=","value":2}}`},
		{"windowed", `{"kind":"activity","event":"act","window":{"last_days":21},"count":{"op":">=","value":2}}`},
		{"sum", `{"kind":"activity","event":"act","aggregate":{"fn":"sum","property":"value","op":">=","value":50}}`},
	} {
		b.Run(kind.name, func(b *testing.B) {
			const now = 1_700_000_000_000
			e := New()
			e.Advance(now, 1)
			for o := range uint32(profiles) {
				e.Create(o)
			}
			rng := rand.New(rand.NewPCG(1, 1))
			ordinals, times := make([]uint32, events), make([]int64, events)
			for i := range ordinals {
				ordinals[i], times[i] = uint32(rng.IntN(profiles)), now-rng.Int64N(20*86_400_000)
			}
			root, err := segment.Parse([]byte(kind.text), segment.Limits{})
			if err != nil {
				b.Fatal(err)
			}
			spent := map[string]time.Duration{}
			for b.Loop() {
				e.Define("s", root, 1, func(string) bool { return true })
				for {
					work, ok := e.Work(nothing)
					if !ok {
						break
					}
					at := time.Now()
					l := NewLoader(work.State)
					for i, o := range ordinals {
						if work.State.Number != nil {
							l.AddNumber(o, times[i], 30_000_000, true)
						} else {
							l.Add(o, times[i], nil)
						}
					}
					spent["add"] += time.Since(at)
					for last := false; !last; {
						at = time.Now()
						var chunk []byte
						chunk, last = l.Chunk(256 << 10)
						spent["chunk"] += time.Since(at)
						at = time.Now()
						if err := e.Load(chunk, func(o uint32) uint32 { return o }); err != nil {
							b.Fatal(err)
						}
						spent["load"] += time.Since(at)
					}
				}
				at := time.Now()
				for e.Working() {
					e.Continue(4096)
					e.Transitions()
				}
				spent["judge"] += time.Since(at)
				e.Undefine("s")
				for e.Working() {
					e.Continue(4096)
					e.Transitions()
				}
			}
			for part, d := range spent {
				b.ReportMetric(float64(d.Milliseconds())/float64(b.N), part+"-ms")
			}
		})
	}
}
