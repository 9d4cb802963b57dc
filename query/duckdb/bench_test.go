package duckdb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

func cpuNanos() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

var shopEvents = []string{"page_viewed", "item_viewed", "item_purchased", "cart_updated", "searched", "email_opened", "checkout_started"}

// shopBatch fills b with rows of a believable shop, 100 events to a record.
func shopBatch(b *query.Batch, rng *rand.Rand, rows, profiles int) {
	countries := []string{"United Kingdom", "Germany", "France", "Spain"}
	b.Reset()
	var buf []byte
	for i := range rows {
		b.Account = append(b.Account, 1)
		b.Offset = append(b.Offset, int64(i/100))
		b.Index = append(b.Index, uint32(i%100))
		b.Ordinal = append(b.Ordinal, uint32(rng.IntN(profiles)))
		b.TimeMs = append(b.TimeMs, 1_700_000_000_000+int64(i)*3+int64(rng.IntN(50)))
		b.EventType.Append([]byte(shopEvents[rng.IntN(len(shopEvents))]))
		buf = fmt.Appendf(buf[:0], `{"country":"%s","currency":"EUR","product_id":"sku-%07d","quantity":%d,"session":"%08x","value":%d.%02d}`,
			countries[rng.IntN(4)], rng.IntN(200000), 1+rng.IntN(12), rng.Uint32(), rng.IntN(500), rng.IntN(100))
		b.Properties.Append(buf)
		b.IdempotencyKey.Append(fmt.Appendf(buf[:0], "%016x", rng.Uint64()))
	}
	b.To = int64((rows + 99) / 100)
}

// shift moves the batch behind itself in log and time.
func shift(b *query.Batch) {
	records := b.To - b.From
	b.From, b.To = b.To, b.To+records
	for i := range b.Offset {
		b.Offset[i] += records
		b.TimeMs[i] += records * 300
	}
}

// BenchmarkAppend reports the CPU time (user and system, all threads) and the
// disk a row takes, DuckDB's checkpoint included.
func BenchmarkAppend(b *testing.B) {
	const total = 1_500_000
	for _, rows := range []int{2_000, 20_000, 60_000, 122_880, 122_979, 200_000, 500_000} {
		b.Run(fmt.Sprintf("batch=%d", rows), func(b *testing.B) {
			batch := new(query.Batch)
			shopBatch(batch, rand.New(rand.NewPCG(1, 2)), rows, 100_000)
			stored, bytes, cpu := 0, int64(0), int64(0)
			for range b.N {
				path := filepath.Join(b.TempDir(), "h.duckdb")
				s, err := Open(path, Options{})
				if err != nil {
					b.Fatal(err)
				}
				start := cpuNanos()
				batch.To, batch.From = batch.To-batch.From, 0
				for i := range batch.Offset {
					batch.Offset[i] = int64(i / 100)
				}
				for n := 0; n < total; n += rows {
					if err := s.Append(context.Background(), batch); err != nil {
						b.Fatal(err)
					}
					shift(batch)
					stored += rows
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				cpu += cpuNanos() - start
				info, _ := os.Stat(path)
				bytes += info.Size()
			}
			b.ReportMetric(float64(cpu)/float64(stored), "cpu-ns/row")
			b.ReportMetric(float64(bytes)/float64(stored), "disk-B/row")
			b.ReportMetric(float64(len(batch.Properties.Data))/float64(rows), "props-B/row")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(stored), "wall-ns/row")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func openBench(b *testing.B) *Store {
	b.Helper()
	s, err := Open(filepath.Join(b.TempDir(), "h.duckdb"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// shopStore fills a store with 10 M rows of 1 M profiles (1 M rows unless
// MUSTER_LONG is set) and returns the batch that would come next.
func shopStore(b *testing.B) (*Store, *query.Batch) {
	b.Helper()
	batches := 8
	if testlevel.Long() {
		batches = 82
	}
	s := openBench(b)
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 2))
	batch := new(query.Batch)
	shopBatch(batch, rng, fullGroup, 1_000_000)
	for range batches {
		for i := range batch.Ordinal {
			batch.Ordinal[i] = uint32(rng.IntN(1_000_000))
		}
		if err := s.Append(ctx, batch); err != nil {
			b.Fatal(err)
		}
		shift(batch)
	}
	return s, batch
}

// BenchmarkQueries asks a store of 10 M rows and 1 M profiles (1 M rows unless
// MUSTER_LONG is set).
func BenchmarkQueries(b *testing.B) {
	s, batch := shopStore(b)
	ctx := context.Background()
	at, begin := batch.TimeMs[0], int64(1_700_000_000_000)
	usage, err := s.Usage(ctx)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d rows, %d bytes, %d ms of history", usage.Rows, usage.Bytes, at-begin)

	atLeast := func(n int64) segment.Compare {
		return segment.Compare{Op: segment.OpGe, Micros: []segment.Int128{int128.From(n * segment.MicrosPerUnit)}}
	}
	count, sum := atLeast(3), atLeast(1000)
	dear := segment.Predicate{Path: []string{"value"}, Op: segment.OpGe, Values: []segment.Value{{Kind: segment.ValueNumber, Num: 250}}}
	german := segment.Predicate{Path: []string{"country"}, Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueString, Str: "Germany"}}}
	value := func(fn segment.Fn) *segment.Aggregate {
		return &segment.Aggregate{Fn: fn, Property: []string{"value"}, Compare: sum}
	}
	for _, c := range []struct {
		name string
		leaf segment.Activity
	}{
		{"count", segment.Activity{Count: &count}},
		{"count/last-tenth", segment.Activity{Count: &count, WindowMs: (at - begin) / 10}},
		{"count/where-number", segment.Activity{Count: &count, Where: []segment.Predicate{dear}}},
		{"count/where-text-and-number", segment.Activity{Count: &count, Where: []segment.Predicate{german, dear}}},
		{"sum", segment.Activity{Aggregate: value(segment.FnSum)}},
		{"sum/where-text", segment.Activity{Aggregate: value(segment.FnSum), Where: []segment.Predicate{german}}},
		{"distinct", segment.Activity{Aggregate: &segment.Aggregate{Fn: segment.FnDistinct, Property: []string{"product_id"}, Compare: atLeast(2)}}},
	} {
		c.leaf.Event = "item_purchased"
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				set, err := s.Activity(ctx, query.ActivityQuery{Cut: query.Cut{UpTo: batch.From}, Account: 1, Leaf: &c.leaf, AtMs: at})
				if err != nil || set.IsEmpty() {
					b.Fatal(set, err)
				}
			}
		})
	}
	b.Run("timeline", func(b *testing.B) {
		for i := range b.N {
			_, err := s.Timeline(ctx, query.TimelineQuery{Cut: query.Cut{UpTo: batch.From}, Account: 1, Ordinals: []uint32{uint32(i * 7919)}, Limit: 50})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
