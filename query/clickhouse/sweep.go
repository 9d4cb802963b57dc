package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// sweep removes from disk what no query sees: rows that are not in the cover,
// and rows that were erased.
//
// A row outside the cover may belong to an append under way, which may commit it
// yet. So the sweep takes the position first, and at the next time, at least
// [leastSweepEvery] later, removes what is below that position and in no cover
// by then. It will never be in one:
//
//   - Appends that began before the first look have been committed or never
//     will be: the server refuses commits later than [commitFence].
//   - Appends that began after it have seen that position and insert above it.
//     A cover that only such appends extend stays as it is below ([coverOf]).
//
// Readers use a cover for [coverAge] and a statement takes [pieceTimeout] at
// most, so none asks by a cover of before.
//
// Rows that were erased and come again late, by a writer that was frozen, are in
// no cover, so this removes them too.
type sweep struct {
	// positions are those of the last time.
	positions map[uint32]int64
}

func (s *Store) sweepNowAndThen(ctx context.Context) {
	var w sweep
	t := time.NewTicker(s.opts.SweepEvery)
	defer t.Stop()
	for {
		if err := w.run(ctx, s); err != nil && ctx.Err() == nil {
			s.opts.Logger.Warn("history: the sweep is put off", "retry_in", s.opts.SweepEvery, "error", err)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// run is one sweep. It counts towards the bound on writers.
func (w *sweep) run(ctx context.Context, s *Store) error {
	done, err := s.writers.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := s.nameBrokenParts(ctx); err != nil {
		return err
	}
	before := w.positions
	w.positions = make(map[uint32]int64)
	err = s.query(ctx, s.opts.QueryTimeout, `SELECT DISTINCT "partition" FROM commits`, func(r driver.Rows) error {
		var p uint32
		if err := r.Scan(&p); err != nil {
			return err
		}
		w.positions[p] = 0
		return nil
	})
	if err != nil {
		return err
	}
	for p := range w.positions {
		c, _, err := s.readCover(ctx, int(p))
		if err != nil {
			return err
		}
		w.positions[p] = c.end()
		// A position that went back, since commits or a table was lost, says that appends under
		// way insert below where it was.
		if err := s.removeGarbage(ctx, p, c, min(before[p], c.end())); err != nil {
			return err
		}
	}
	return s.removeErased(ctx)
}

// removeGarbage marks what is below the offset and not in the cover, which
// reaches it, as deleted.
func (s *Store) removeGarbage(ctx context.Context, partition uint32, c kept, upTo int64) error {
	if upTo <= 0 {
		return nil
	}
	where := fmt.Sprintf("record_offset < %d AND NOT %s", upTo, c.cover.condition(""))
	for _, table := range []string{"events", "aliases", "transitions"} {
		rows, err := s.remove(ctx, table, int(partition), where)
		if err != nil {
			return err
		}
		if rows > 0 {
			s.opts.Logger.Info("history: rows of appends that were never completed are removed", "table", table, "partition", partition, "rows", rows)
		}
	}
	return nil
}

// removeErased has parts with rows marked as deleted rewritten, without them.
func (s *Store) removeErased(ctx context.Context) error {
	type place struct{ table, partition string }
	var places []place
	err := s.query(ctx, s.opts.QueryTimeout, `SELECT DISTINCT table, partition FROM system.parts
		WHERE database = currentDatabase() AND active AND has_lightweight_delete AND table IN ('events', 'aliases', 'transitions')`, func(r driver.Rows) error {
		var p place
		if err := r.Scan(&p.table, &p.partition); err != nil {
			return err
		}
		places = append(places, p)
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range places {
		if err := s.alter(ctx, fmt.Sprintf("ALTER TABLE %s APPLY DELETED MASK IN PARTITION %s", p.table, p.partition)); err != nil {
			return err
		}
	}
	return nil
}

// nameBrokenParts logs which parts ClickHouse took out of use because their files are
// damaged. What they had is missing in answers, and nothing else says so.
func (s *Store) nameBrokenParts(ctx context.Context) error {
	return s.query(ctx, s.opts.QueryTimeout, `SELECT table, name, ifNull(reason, '') FROM system.detached_parts
		WHERE database = currentDatabase() AND startsWith(reason, 'broken') AND table IN ('events', 'aliases', 'transitions', 'commits')`, func(r driver.Rows) error {
		var table, name, reason string
		if err := r.Scan(&table, &name, &reason); err != nil {
			return err
		}
		s.opts.Logger.Error("history: ClickHouse has taken a damaged part of a table out of use, and answers lack its rows. If the log still has its beginning, "+
			"ALTER TABLE … DROP DETACHED PART it and TRUNCATE TABLE commits: history is rebuilt from the log. Otherwise put the table back from ClickHouse's backup",
			"database", s.opts.Database, "table", table, "part", name, "reason", reason)
		return nil
	})
}
