package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// blockRows is how many rows a bare insert has: the most muster inserts at once.
const blockRows = 122_880

// rows are events as they are in ClickHouse, by column.
type rows struct {
	account   []uint64
	partition []uint32
	offset    []int64
	index     []uint32
	ordinal   []uint32
	timeMs    []int64
	eventType []string
	props     []string
	key       []string
}

// bareTable is like that of events without what makes muster's inserts exact: no
// writer, no sync to disk, no deduplication, no indexes.
const bareTable = `CREATE TABLE IF NOT EXISTS bare (account UInt64 CODEC(ZSTD(1)), "partition" UInt32 CODEC(ZSTD(1)), record_offset Int64 CODEC(Delta, ZSTD(1)),
	record_index UInt32 CODEC(Delta, ZSTD(1)), ordinal UInt32 CODEC(LZ4), time_ms Int64 CODEC(Delta, ZSTD(1)), event_type String CODEC(ZSTD(1)),
	properties String CODEC(ZSTD(1)), idempotency_key String CODEC(ZSTD(1))) ENGINE = MergeTree ORDER BY (account, event_type, time_ms)`

// bareRows inserts rows that it read back from a group's database.
type bareRows struct {
	conn driver.Conn
	rows rows
}

// openRows reads rows back and makes the table.
func (b *backing) openRows(ctx context.Context, database string) (*bareRows, error) {
	opt, err := b.options(database)
	if err != nil {
		return nil, err
	}
	conn, err := clickhouse.Open(opt)
	if err != nil {
		return nil, fmt.Errorf("ClickHouse: %w", err)
	}
	r := &bareRows{conn: conn}
	if err := r.read(ctx); err != nil {
		return nil, fmt.Errorf("reading rows back: %w", err)
	}
	if err := conn.Exec(ctx, bareTable); err != nil {
		return nil, fmt.Errorf("making the table of bare rows: %w", err)
	}
	return r, nil
}

func (b *bareRows) read(ctx context.Context) error {
	found, err := b.conn.Query(ctx, fmt.Sprintf(`SELECT account, "partition", record_offset, record_index, ordinal, time_ms, event_type, properties, idempotency_key FROM events LIMIT %d`, blockRows))
	if err != nil {
		return err
	}
	defer found.Close()
	r := &b.rows
	for found.Next() {
		var account uint64
		var partition, index, ordinal uint32
		var offset, timeMs int64
		var eventType, props, key string
		if err := found.Scan(&account, &partition, &offset, &index, &ordinal, &timeMs, &eventType, &props, &key); err != nil {
			return err
		}
		r.account, r.partition, r.offset, r.index = append(r.account, account), append(r.partition, partition), append(r.offset, offset), append(r.index, index)
		r.ordinal, r.timeMs, r.eventType = append(r.ordinal, ordinal), append(r.timeMs, timeMs), append(r.eventType, eventType)
		r.props, r.key = append(r.props, props), append(r.key, key)
	}
	return found.Err()
}

// insert inserts the rows over and over.
func (b *bareRows) insert(ctx context.Context, d time.Duration) (inserted uint64, elapsed time.Duration, err error) {
	r := &b.rows
	begun := time.Now()
	for time.Since(begun) < d {
		batch, err := b.conn.PrepareBatch(ctx, "INSERT INTO bare")
		if err != nil {
			return 0, 0, fmt.Errorf("bare insert: %w", err)
		}
		for i, c := range []any{r.account, r.partition, r.offset, r.index, r.ordinal, r.timeMs, r.eventType, r.props, r.key} {
			if err := batch.Column(i).Append(c); err != nil {
				return 0, 0, fmt.Errorf("bare insert, column %d: %w", i, err)
			}
		}
		if err := batch.Send(); err != nil {
			return 0, 0, fmt.Errorf("bare insert: %w", err)
		}
		inserted += uint64(len(r.account))
	}
	return inserted, time.Since(begun), nil
}

// close drops the rows.
func (b *bareRows) close(ctx context.Context) error {
	err := b.conn.Exec(ctx, "DROP TABLE bare SYNC")
	if e := b.conn.Close(); err == nil {
		err = e
	}
	return err
}

// empty removes what was inserted, so that it is not merged beside what is
// measured next.
func (b *bareRows) empty(ctx context.Context) error { return b.conn.Exec(ctx, "TRUNCATE TABLE bare") }
