package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/musterhq/muster/bench/internal/crash"
	"github.com/musterhq/muster/bench/internal/history"
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
type sent map[string]*sentEvent

type sentEvent struct {
	eventType   string
	acked, seen bool
}

func (s sent) add(key, eventType string, acked bool) {
	s[key] = &sentEvent{eventType: eventType, acked: acked}
}

// check compares rows that are new with what was sent, and passes those of the
// crash load on.
func (s sent) check(rows []history.Key, others func(history.Key) error) error {
	var faults []string
	for _, k := range rows {
		if crash.IsKey(k.Key) {
			if err := others(k); err != nil {
				return err
			}
			continue
		}
		e, known := s[k.Key]
		switch {
		case !known:
			faults = append(faults, fmt.Sprintf("key %q is in ClickHouse and was never sent", k.Key))
			continue
		case e.seen:
			faults = append(faults, fmt.Sprintf("key %q is in ClickHouse again, after a check that found it once", k.Key))
		case k.Rows != 1:
			faults = append(faults, fmt.Sprintf("key %q is in ClickHouse %d times", k.Key, k.Rows))
		case k.EventType != e.eventType:
			faults = append(faults, fmt.Sprintf("key %q has event type %q in ClickHouse, sent %q", k.Key, k.EventType, e.eventType))
		}
		e.seen = true
	}
	for key, e := range s {
		if e.acked && !e.seen {
			faults = append(faults, fmt.Sprintf("key %q was acknowledged and is not in ClickHouse", key))
		}
	}
	return list(faults)
}

// maxFaults bounds the faults that are listed one by one.
const maxFaults = 12

func list(faults []string) error {
	slices.Sort(faults)
	var errs []error
	for i, f := range faults {
		if i == maxFaults {
			errs = append(errs, fmt.Errorf("and %d more", len(faults)-i))
			break
		}
		errs = append(errs, errors.New(f))
	}
	return errors.Join(errs...)
}
