package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/musterhq/muster/bench/internal/crash"
	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/ledger"
)

// stored reads ClickHouse's rows, each once, and counts them all each time.
type stored struct {
	// next is, by partition, behind the rows that were read; total is their number.
	next  []int64
	total int
}

// read asks ClickHouse itself for the keys of the events that came since the last
// time, and how often each is there. Those of before must still be as many.
func (s *stored) read(ctx context.Context, dsn string, visit func(history.Key)) error {
	opt, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		return err
	}
	opt.Auth.Database, opt.DialTimeout = database, 10*time.Second
	db := clickhouse.OpenDB(opt)
	for p := range s.next {
		err = errors.Join(err, s.readPartition(ctx, db, p, visit))
	}
	if err == nil {
		err = s.count(ctx, db)
	}
	return errors.Join(err, db.Close())
}

func (s *stored) readPartition(ctx context.Context, db *sql.DB, partition int, visit func(history.Key)) error {
	rows, err := db.QueryContext(ctx, `SELECT idempotency_key, any(event_type), toInt64(count()), any(ordinal), max(record_offset)
		FROM stored_events WHERE "partition" = ? AND record_offset >= ? AND idempotency_key != '' GROUP BY idempotency_key`, partition, s.next[partition])
	if err != nil {
		return fmt.Errorf("ClickHouse's rows: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var k history.Key
		var times, offset int64
		if err := rows.Scan(&k.Key, &k.EventType, &times, &k.Ordinal, &offset); err != nil {
			return fmt.Errorf("ClickHouse's rows: %w", err)
		}
		k.Rows = int(times)
		s.total += k.Rows
		s.next[partition] = max(s.next[partition], offset+1)
		visit(k)
	}
	return rows.Err()
}

func (s *stored) count(ctx context.Context, db *sql.DB) error {
	n := int64(0)
	if err := db.QueryRowContext(ctx, "SELECT toInt64(count()) FROM stored_events WHERE idempotency_key != ''").Scan(&n); err != nil {
		return fmt.Errorf("ClickHouse's rows: %w", err)
	}
	if int(n) != s.total {
		return fmt.Errorf("ClickHouse has %d rows with a key, %d were there when they were read", n, s.total)
	}
	return nil
}

// sent is what was posted by others than the crash load, by key, in all rounds.
type sent map[string]*ledger.Event

func (s sent) add(key string, e *ledger.Event) { s[key] = e }

// check compares rows that are new with what was sent, and passes those of the
// crash load on.
func (s sent) check(rows []history.Key, others func(history.Key) error) error {
	var faults ledger.Faults
	for _, k := range rows {
		if !crash.IsKey(k.Key) {
			faults.Found(k, s[k.Key])
		} else if err := others(k); err != nil {
			return err
		}
	}
	faults.Lost(func(visit func(string, *ledger.Event)) {
		for key, e := range s {
			visit(key, e)
		}
	})
	return faults.Err()
}
