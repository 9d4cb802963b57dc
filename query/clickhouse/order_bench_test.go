package clickhouse

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/musterhq/muster/query"
)

// BenchmarkOrder tells what part of the rows ClickHouse reads for the questions that Muster asks,
// in the order and with the indexes that events have, and with others. A million rows of 100,000
// profiles and seven types of events, in one part each.
func BenchmarkOrder(b *testing.B) {
	s := openTest(b)
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(1, 2))
	batch := new(query.Batch)
	for range 8 {
		shopBatch(batch, rng, 122_880, 100_000)
		if err := s.Append(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	run := func(statement string) {
		if err := s.exec(ctx, time.Minute, statement); err != nil {
			b.Fatal(err)
		}
	}
	index := "INDEX by_ordinal ordinal TYPE bloom_filter(0.01) GRANULARITY 1, INDEX by_offset record_offset TYPE minmax GRANULARITY 1"
	columns := `account UInt64, "partition" UInt32, record_offset Int64, record_index UInt32, ordinal UInt32, time_ms Int64, event_type String, properties String`
	for _, layout := range []struct{ name, order, indexes string }{
		{"type,time", "account, event_type, time_ms", index},
		{"type,time,no-index", "account, event_type, time_ms", ""},
		{"type,profile", "account, event_type, ordinal", index},
		{"time", "account, time_ms", index},
		{"profile,time", "account, ordinal, time_ms", index},
	} {
		more := ""
		if layout.indexes != "" {
			more = ", " + layout.indexes
		}
		run("DROP TABLE IF EXISTS laid")
		run(`CREATE TABLE laid (` + columns + more + `) ENGINE = MergeTree PARTITION BY "partition" ORDER BY (` + layout.order + `)`)
		run(`INSERT INTO laid SELECT account, "partition", record_offset, record_index, ordinal, time_ms, event_type, properties FROM events`)
		run("OPTIMIZE TABLE laid FINAL")
		first, last := int64(1_700_000_000_000), int64(1_700_000_000_000)+batch.To*300
		for _, q := range []struct{ name, where string }{
			{"condition", "event_type = 'item_purchased'"},
			{"windowed-condition", fmt.Sprintf("event_type = 'item_purchased' AND time_ms > %d", last-(last-first)/10)},
			{"timeline", "ordinal = 4711"},
			{"newest-records", fmt.Sprintf("event_type = 'item_purchased' AND record_offset >= %d", batch.To-batch.To/50)},
		} {
			b.Run(layout.name+"/"+q.name, func(b *testing.B) {
				var rows, bytes uint64
				for range b.N {
					asked := clickhouse.Context(ctx, clickhouse.WithProgress(func(p *clickhouse.Progress) { rows += p.Rows; bytes += p.Bytes }))
					r, err := s.conn.Query(asked, "SELECT ordinal, sum(length(properties)) FROM laid WHERE account = 1 AND "+q.where+" GROUP BY ordinal")
					if err != nil {
						b.Fatal(err)
					}
					for r.Next() { //nolint:revive // the answer does not matter
					}
					if err := r.Close(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(100*float64(rows)/float64(b.N)/(8*122_880), "%rows")
				b.ReportMetric(float64(bytes)/float64(b.N)/1e6, "MB-read")
			})
		}
	}
}
