package duckdb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/musterhq/muster/query"
)

func cpuNanos() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

var shopEvents = []string{"page_viewed", "item_viewed", "item_purchased", "cart_updated", "searched", "email_opened", "checkout_started"}

// shopBatch appends rows of a believable shop, one record per 100 events.
func shopBatch(b *query.Batch, rng *rand.Rand, from int64, rows, profiles int, startMs int64) {
	b.Reset()
	b.From = from
	var buf []byte
	for i := range rows {
		b.Account = append(b.Account, 1)
		b.Offset = append(b.Offset, from+int64(i/100))
		b.Index = append(b.Index, uint32(i%100))
		b.Ordinal = append(b.Ordinal, uint32(rng.IntN(profiles)))
		b.TimeMs = append(b.TimeMs, startMs+(from*100+int64(i))*3+int64(rng.IntN(50)))
		b.EventType.Append([]byte(shopEvents[rng.IntN(len(shopEvents))]))
		buf = fmt.Appendf(buf[:0], `{"country":"%s","currency":"EUR","product_id":"sku-%07d","quantity":%d,"session":"%08x","value":%d.%02d}`,
			[]string{"United Kingdom", "Germany", "France", "Spain"}[rng.IntN(4)], rng.IntN(200000), 1+rng.IntN(12), rng.Uint32(), rng.IntN(500), rng.IntN(100))
		b.Properties.Append(buf)
		b.IdempotencyKey.Append(fmt.Appendf(buf[:0], "%016x", rng.Uint64()))
	}
	b.To = from + int64((rows+99)/100)
}

func BenchmarkAppend(b *testing.B) {
	total := 1_000_000
	for _, rows := range []int{20_000, 60_000, 122_880, 245_760} {
		b.Run(fmt.Sprintf("batch=%d", rows), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				path := filepath.Join(b.TempDir(), "h.duckdb")
				s, err := Open(path, Options{})
				if err != nil {
					b.Fatal(err)
				}
				rng := rand.New(rand.NewPCG(1, 2))
				batch := new(query.Batch)
				next, stored, bytes := int64(0), 0, 0
				var cpu int64
				for stored < total {
					shopBatch(batch, rng, next, rows, 100_000, 1_700_000_000_000)
					bytes += len(batch.Properties.Data)
					start := cpuNanos()
					b.StartTimer()
					if err := s.Append(context.Background(), batch); err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					cpu += cpuNanos() - start
					next, stored = batch.To, stored+rows
				}
				start := cpuNanos()
				b.StartTimer()
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				cpu += cpuNanos() - start
				info, _ := os.Stat(path)
				b.ReportMetric(float64(cpu)/float64(stored), "cpu-ns/row")
				b.ReportMetric(float64(info.Size())/float64(stored), "disk-B/row")
				b.ReportMetric(float64(bytes)/float64(stored), "props-B/row")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(stored)/float64(b.N), "wall-ns/row")
			}
		})
	}
}
