package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/segmenttest"
)

const (
	ingestProfiles = 100_000
	ingestWindow   = 32 // events prepared together
	ingestRecord   = 512
)

// ingest is the load of `bench ingest`: events on random profiles, each with
// an attribute and a place that differ from the last ones most of the time.
type ingest struct {
	e          *Engine
	now        int64
	rng        *rand.Rand
	types      [][]byte
	properties [][]byte
	facts      []segment.Facts // by plan, then country
	window     [ingestWindow]ingestEvent
	near       [ingestWindow]Near
	last       []uint8 // the facts of each profile
	n          int
}

type ingestEvent struct {
	o          uint32
	facts      uint8
	typ        []byte
	properties []byte
}

func newIngest(b testing.TB) *ingest {
	const start = 19_800 * dayMs
	in := &ingest{e: crowd(b, start, 0, segmenttest.LiveSegments...), now: start, rng: rand.New(rand.NewPCG(7, 7)), last: make([]uint8, ingestProfiles)}
	for _, t := range []string{"page_viewed", "page_viewed", "page_viewed", "item_viewed", "item_viewed", "cart_added", "purchased", "searched"} {
		in.types = append(in.types, []byte(t))
	}
	for range 1024 {
		in.properties = append(in.properties, fmt.Appendf(nil, `{"value":1%05d.%02d,"currency":"%s","quantity":%d,"product_id":"sku-%05d-%060d"}`,
			in.rng.IntN(100_000), in.rng.IntN(99)+1, []string{"EUR", "EUR", "GBP", "USD"}[in.rng.IntN(4)], in.rng.IntN(9)+1, in.rng.IntN(20_000), 0))
	}
	for _, plan := range []string{"free", "basic", "plus", "pro"} {
		for _, country := range []string{"DE", "FR", "GB", "ES", "NL", "SE", "US", "JP"} {
			in.facts = append(in.facts, segment.Facts{Fields: segment.Fields{
				Attributes: fmt.Appendf(nil, `{"plan":%q}`, plan), Geo: fmt.Appendf(nil, `{"country":%q}`, country), CreatedAtMs: start,
			}})
		}
	}
	for o := range uint32(ingestProfiles) {
		in.e.Create(o)
		in.e.Profile(o, &in.facts[0], AllFields)
		in.e.Evaluate(o)
		if o%4096 == 0 {
			in.e.Transitions()
		}
	}
	return in
}

// step prepares and applies a window of events, as the resolver does.
func (in *ingest) step() {
	if in.n += ingestWindow; in.n%ingestRecord == 0 {
		in.now += 5
		in.e.Advance(in.now, 4096)
		in.e.Transitions()
	}
	for i := range in.window {
		r := in.rng.Uint64()
		in.window[i] = ingestEvent{
			o: uint32((r >> 32) * ingestProfiles >> 32), facts: uint8(r % uint64(len(in.facts))),
			typ: in.types[(r>>8)%8], properties: in.properties[(r>>16)%1024],
		}
		in.near[i] = in.e.Prefetch(in.window[i].o, in.window[i].typ)
	}
	for i := range in.near {
		in.near[i].Rows()
	}
	for i := range in.window {
		x := &in.window[i]
		in.e.Touch(x.o)
		changed := Fields(0)
		if was := in.last[x.o]; was != x.facts {
			in.last[x.o] = x.facts
			if was/8 != x.facts/8 {
				changed |= FieldAttributes
			}
			if was%8 != x.facts%8 {
				changed |= FieldGeo
			}
		}
		if in.e.Looks(changed) {
			in.e.Profile(x.o, &in.facts[x.facts], changed)
		}
		in.e.Event(x.o, in.now, x.typ, x.properties)
		in.e.Evaluate(x.o)
	}
}

// BenchmarkIngest is the engine's part in `bench ingest` with 20 segments on
// 100,000 profiles. Values grow with each event, so compare runs of one length
// (-benchtime 500000x).
func BenchmarkIngest(b *testing.B) {
	in := newIngest(b)
	for range 3 * ingestProfiles / ingestWindow {
		in.step()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += ingestWindow {
		in.step()
	}
	b.ReportMetric(float64(in.e.Stats().Bytes)/ingestProfiles, "B/profile")
}
