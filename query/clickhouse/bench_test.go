package clickhouse

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
	"github.com/musterhq/muster/segment"
)

var shopEvents = []string{"page_viewed", "item_viewed", "item_purchased", "cart_updated", "searched", "email_opened", "checkout_started"}

// shopBatch fills b with rows of a believable shop, 100 events to a record.
func shopBatch(b *query.Batch, rng *rand.Rand, rows, profiles int) {
	countries := []string{"United Kingdom", "Germany", "France", "Spain"}
	first := b.To
	b.Reset()
	b.From = first
	var buf []byte
	for i := range rows {
		o := first + int64(i/100)
		b.Account, b.Offset, b.Index = append(b.Account, 1), append(b.Offset, o), append(b.Index, uint32(i%100))
		b.Ordinal = append(b.Ordinal, uint32(rng.IntN(profiles)))
		b.TimeMs = append(b.TimeMs, 1_700_000_000_000+o*300+int64(rng.IntN(50)))
		b.EventType.Append([]byte(shopEvents[rng.IntN(len(shopEvents))]))
		buf = fmt.Appendf(buf[:0], `{"country":"%s","currency":"EUR","product_id":"sku-%07d","quantity":%d,"session":"%08x","value":%d.%02d}`,
			countries[rng.IntN(4)], rng.IntN(200000), 1+rng.IntN(12), rng.Uint32(), rng.IntN(500), rng.IntN(100))
		b.Properties.Append(buf)
		b.IdempotencyKey.Append(fmt.Appendf(buf[:0], "%016x", rng.Uint64()))
	}
	b.To = first + int64((rows+99)/100)
}

// BenchmarkAppend appends batches, and in turn inserts the same rows with the
// driver alone, column by column, into a table like events without what makes
// appends exact: no writer, no sync to disk, no commit. "ratio" is the time of
// the one by that of the other.
func BenchmarkAppend(b *testing.B) {
	for _, rows := range []int{2_000, 20_000, 122_880} {
		b.Run(fmt.Sprint("rows=", rows), func(b *testing.B) {
			s := openTest(b)
			ctx := context.Background()
			if err := s.exec(ctx, time.Minute, `CREATE TABLE bare (account UInt64, "partition" UInt32, record_offset Int64, record_index UInt32, ordinal UInt32,
				time_ms Int64, event_type String, properties String CODEC(ZSTD(1)), idempotency_key String CODEC(ZSTD(1))) ENGINE = MergeTree ORDER BY (account, event_type, time_ms)`); err != nil {
				b.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(1, 2))
			batch := new(query.Batch)
			var ours, bare time.Duration
			for i := range b.N {
				shopBatch(batch, rng, rows, 100_000)
				// The order changes, as do the merges meanwhile.
				for turn := range 2 {
					began := time.Now()
					if (i+turn)%2 == 0 {
						if err := s.Append(ctx, batch); err != nil {
							b.Fatal(err)
						}
						ours += time.Since(began)
						continue
					}
					if err := insertBare(ctx, s.conn, batch); err != nil {
						b.Fatal(err)
					}
					bare += time.Since(began)
				}
			}
			n := float64(b.N * rows)
			b.ReportMetric(n/ours.Seconds(), "rows/s")
			b.ReportMetric(n/bare.Seconds(), "bare-rows/s")
			b.ReportMetric(float64(ours)/float64(bare), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func insertBare(ctx context.Context, conn driver.Conn, b *query.Batch) error {
	batch, err := conn.PrepareBatch(clickhouse.Context(ctx), "INSERT INTO bare")
	if err != nil {
		return err
	}
	n := b.Rows()
	for i, c := range []any{b.Account, same(uint32(b.Partition), n), b.Offset, b.Index, b.Ordinal, b.TimeMs,
		texts(&b.EventType, 0, n), texts(&b.Properties, 0, n), texts(&b.IdempotencyKey, 0, n)} {
		if err := batch.Column(i).Append(c); err != nil {
			return err
		}
	}
	return batch.Send()
}

// BenchmarkActivity asks a store of 1 M rows and 100,000 profiles (10 M and 1 M
// if MUSTER_LONG is set), and in turn the same by the statement that one would
// write without merges, cuts, writers and exact sums. "ratio" is the time of the
// one by that of the other.
func BenchmarkActivity(b *testing.B) {
	batches, profiles := 8, 100_000
	if testlevel.Long() {
		batches, profiles = 82, 1_000_000
	}
	s := openTest(b)
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 2))
	batch := new(query.Batch)
	for range batches {
		shopBatch(batch, rng, 122_880, profiles)
		if err := s.Append(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	at := int64(1) << 50
	value := func(fn segment.Fn) *segment.Activity {
		return &segment.Activity{Aggregate: &segment.Aggregate{Fn: fn, Property: []string{"value"}, Compare: segment.Compare{Op: segment.OpGe, Micros: historytest.Micros(1000)}}}
	}
	german := historytest.CountLeaf("", 2)
	german.Where = []segment.Predicate{{Path: []string{"country"}, Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueString, Str: "Germany"}}}}
	for _, c := range []struct {
		name, bare string
		leaf       *segment.Activity
	}{
		{"count", "HAVING count() >= 3", historytest.CountLeaf("", 3)},
		{"where", "HAVING countIf(JSONExtractString(properties, 'country') = 'Germany') >= 2", german},
		{"sum", "HAVING sum(JSONExtractFloat(properties, 'value')) >= 1000", value(segment.FnSum)},
	} {
		c.leaf.Event = "item_purchased"
		b.Run(c.name, func(b *testing.B) {
			var ours, bare time.Duration
			for i := range b.N {
				for turn := range 2 {
					began := time.Now()
					if (i+turn)%2 == 0 {
						set, err := s.Activity(ctx, query.ActivityQuery{Cut: query.Cut{UpTo: batch.To}, Account: 1, Leaf: c.leaf, AtMs: at})
						if err != nil || set.IsEmpty() {
							b.Fatal(set, err)
						}
						ours += time.Since(began)
						continue
					}
					var n uint64
					err := s.ask(ctx, "SELECT count() FROM (SELECT ordinal FROM events WHERE account = 1 AND event_type = 'item_purchased' GROUP BY ordinal "+c.bare+")",
						func(r driver.Rows) error { return r.Scan(&n) })
					if err != nil || n == 0 {
						b.Fatal(n, err)
					}
					bare += time.Since(began)
				}
			}
			b.ReportMetric(ours.Seconds()*1000/float64(b.N), "ms")
			b.ReportMetric(bare.Seconds()*1000/float64(b.N), "bare-ms")
			b.ReportMetric(float64(ours)/float64(bare), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
	b.Run("timeline", func(b *testing.B) {
		for i := range b.N {
			if _, err := s.Timeline(ctx, query.TimelineQuery{Cut: query.Cut{UpTo: batch.To}, Account: 1, Ordinals: []uint32{uint32(i * 7919 % profiles)}, Limit: 50}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("replay", func(b *testing.B) {
		rows := 0
		for range b.N {
			err := s.Replay(ctx, query.ReplayQuery{Cut: query.Cut{UpTo: batch.To}, Account: 1, EventType: "item_purchased", Properties: true}, func(block *query.ReplayBlock) error {
				rows += len(block.Ordinal)
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	})
}
