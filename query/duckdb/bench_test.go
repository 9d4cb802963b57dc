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
				s, err := Open(path, Options{CheckpointBytes: benchCk()})
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
				pre, _ := os.Stat(path)
				cc := cpuNanos()
				b.Logf("before close: %d B/row cpu %d ns/row", pre.Size()/int64(stored), (cc-start)/int64(stored))
				defer func() { b.Logf("close cpu %d ns/row", (cpuNanos()-cc)/int64(stored)) }()
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
func benchCk() int64 { var n int64; fmt.Sscan(os.Getenv("CK"), &n); return n * mb }
