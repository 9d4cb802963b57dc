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

// rows asks ClickHouse itself for the keys of all events and how often each is
// there.
func (s *site) rows(ctx context.Context, visit func(history.Key) error) error {
	opt, err := clickhouse.ParseDSN(s.clickHouse.DSN())
	if err != nil {
		return err
	}
	opt.Auth.Database, opt.DialTimeout = database, 10*time.Second
	db := clickhouse.OpenDB(opt)
	return errors.Join(readRows(ctx, db, visit), db.Close())
}

func readRows(ctx context.Context, db *sql.DB, visit func(history.Key) error) error {
	rows, err := db.QueryContext(ctx, `SELECT idempotency_key, any(event_type), toInt64(count()), any(ordinal)
		FROM stored_events WHERE idempotency_key != '' GROUP BY idempotency_key`)
	if err != nil {
		return fmt.Errorf("ClickHouse's rows: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var k history.Key
		var times int64
		if err := rows.Scan(&k.Key, &k.EventType, &times, &k.Ordinal); err != nil {
			return fmt.Errorf("ClickHouse's rows: %w", err)
		}
		k.Rows = int(times)
		if err := visit(k); err != nil {
			return err
		}
	}
	return rows.Err()
}

// sent is what was posted by others than the crash load, by key, in all rounds.
type sent map[string]sentEvent

type sentEvent struct {
	eventType string
	acked     bool
}

func (s sent) add(key, eventType string, acked bool) { s[key] = sentEvent{eventType, acked} }

// check compares the rows with what was sent, and passes those of the crash load
// on.
func (s sent) check(rows []history.Key, others func(history.Key) error) error {
	var faults []string
	seen := map[string]bool{}
	for _, k := range rows {
		if crash.IsKey(k.Key) {
			if err := others(k); err != nil {
				return err
			}
			continue
		}
		seen[k.Key] = true
		e, known := s[k.Key]
		switch {
		case !known:
			faults = append(faults, fmt.Sprintf("key %q is in ClickHouse and was never sent", k.Key))
		case k.Rows != 1:
			faults = append(faults, fmt.Sprintf("key %q is in ClickHouse %d times", k.Key, k.Rows))
		case k.EventType != e.eventType:
			faults = append(faults, fmt.Sprintf("key %q has event type %q in ClickHouse, sent %q", k.Key, k.EventType, e.eventType))
		}
	}
	for key, e := range s {
		if e.acked && !seen[key] {
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
