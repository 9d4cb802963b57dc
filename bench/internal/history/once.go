package history

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/payload"
)

// Once is how the rows of a load compare with what was acknowledged.
type Once struct {
	// Acked is the number of acknowledged events.
	Acked uint64 `json:"acked"`
	// Rows is the number of rows, DistinctKeys that of different keys in them.
	Rows         uint64 `json:"rows"`
	DistinctKeys uint64 `json:"distinct_keys"`
	// Missing is acknowledged events without a row. It must be 0.
	Missing uint64 `json:"missing"`
	// Doubled is rows beyond the first of their key. It must be 0.
	Doubled uint64 `json:"doubled"`
	// Unacked is keys with a row that were not acknowledged. Requests that
	// failed may have left some.
	Unacked uint64 `json:"unacked"`
	// Foreign is rows whose key no load made. It must be 0.
	Foreign uint64 `json:"foreign"`
	// Profiles is the number of different profiles in the rows.
	Profiles uint64 `json:"profiles"`
}

// Err is nil when every acknowledged event is there exactly once and nothing
// is there that was not sent. failed is the number of events whose requests
// failed: that many may be there without having been acknowledged.
func (o Once) Err(failed uint64) error {
	if o.Missing == 0 && o.Doubled == 0 && o.Foreign == 0 && o.Unacked <= failed {
		return nil
	}
	return fmt.Errorf("history does not hold each acknowledged event exactly once: %+v, events of failed requests: %d", o, failed)
}

// CheckOnce compares the rows with the acknowledged ranges (L2).
func (f *File) CheckOnce(ctx context.Context, acked []loader.Range) (Once, error) {
	var o Once
	if _, err := f.db.ExecContext(ctx, "CREATE OR REPLACE TEMP TABLE acked (worker INTEGER, lo UBIGINT, hi UBIGINT)"); err != nil {
		return o, fmt.Errorf("checking history: %w", err)
	}
	insert, err := f.db.PrepareContext(ctx, "INSERT INTO acked VALUES (?, ?, ?)")
	if err != nil {
		return o, fmt.Errorf("checking history: %w", err)
	}
	defer insert.Close()
	for _, r := range acked {
		o.Acked += r.Len()
		if _, err := insert.ExecContext(ctx, r.Worker, r.From, r.To); err != nil {
			return o, fmt.Errorf("checking history: %w", err)
		}
	}
	// A key is b, the worker's number, a dash and the sequence number. A
	// worker's ranges are disjoint, so the join finds at most one per key.
	sql := fmt.Sprintf(`
		WITH keys AS (
			SELECT %[1]s AS key, count(*) AS times,
				try_cast(key[2:5] AS INTEGER) AS worker, try_cast(key[-%[3]d:] AS UBIGINT) AS seq
			FROM %[2]s GROUP BY key
		)
		SELECT coalesce(sum(times), 0)::UBIGINT, count(*)::UBIGINT, coalesce(sum(times - 1), 0)::UBIGINT,
			count(*) FILTER (acked.worker IS NOT NULL)::UBIGINT,
			coalesce(sum(times) FILTER (keys.key NOT SIMILAR TO 'b[0-9]{4}-[0-9]{%[3]d}'), 0)::UBIGINT,
			(SELECT count(DISTINCT %[4]s) FROM %[2]s)::UBIGINT
		FROM keys LEFT JOIN acked ON acked.worker = keys.worker AND keys.seq >= acked.lo AND keys.seq < acked.hi`,
		columnKey, tableEvents, payload.KeyDigits, columnWho)
	var found uint64
	if err := f.db.QueryRowContext(ctx, sql).Scan(&o.Rows, &o.DistinctKeys, &o.Doubled, &found, &o.Foreign, &o.Profiles); err != nil {
		return o, fmt.Errorf("checking history: %w", err)
	}
	o.Missing = o.Acked - found
	o.Unacked = o.DistinctKeys - found
	return o, nil
}
