package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// sweep removes from disk what no query sees: rows that are not in the cover,
// and rows that were erased.
//
// A row outside the cover may belong to an append under way, which may commit it
// yet. So the sweep takes the cover first, and at the next time, at least
// [leastSweepEvery] later, removes what is below its end and in no cover by then,
// if the cover is still the same below. It will never be in one:
//
//   - Appends that began before the first look have been committed or never
//     will be: the server refuses commits later than [commitFence].
//   - Appends that began after it have seen that position and insert above it.
//     A cover that only such appends extend stays as it is below ([coverOf]).
//
// Where a table was made again, or commits was lost, appends insert below the position of
// before. The cover is another one then, or belongs to other tables, and the sweep begins
// anew. This may also happen while the sweep is at work: so it first notes whose rows there
// are to remove, then looks whether the cover is still the same, and deletes rows of those
// writers only. An append that began after the loss has drawn its number after it: either
// its rows were not there yet when writers were noted, or the look that follows sees the
// loss. The server may carry the delete out whenever it likes.
//
// Readers use a cover for [coverAge] and a statement takes [pieceTimeout] at
// most, so none asks by a cover of before.
//
// Rows that were erased and come again late, by a writer that was frozen, are in
// no cover, so this removes them too.
type sweep struct {
	// covers are those of the last time.
	covers map[uint32]kept
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
	// Damaged parts are named last: not every user may ask for them.
	return errors.Join(w.removeAll(ctx, s), s.nameBrokenParts(ctx))
}

func (w *sweep) removeAll(ctx context.Context, s *Store) error {
	before := w.covers
	w.covers = make(map[uint32]kept)
	var partitions []uint32
	err := s.query(ctx, s.opts.QueryTimeout, `SELECT DISTINCT "partition" FROM commits`, func(r driver.Rows) error {
		var p uint32
		if err := r.Scan(&p); err != nil {
			return err
		}
		partitions = append(partitions, p)
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range partitions {
		c, _, err := s.readCover(ctx, int(p))
		if err != nil {
			return err
		}
		w.covers[p] = c
		if b, ok := before[p]; ok && c.extends(b) {
			if err := s.removeGarbage(ctx, p, b); err != nil {
				return err
			}
		}
	}
	return s.removeErased(ctx)
}

// removeGarbage marks what is below the end of a cover of before and not in it as deleted.
func (s *Store) removeGarbage(ctx context.Context, partition uint32, before kept) error {
	if before.end() == 0 {
		return nil
	}
	for _, table := range rowTables {
		g, err := s.findGarbage(ctx, table, partition, before)
		if err != nil {
			return err
		}
		if err := s.removeFound(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// garbage is rows of a table that will never count.
type garbage struct {
	table     string
	partition uint32
	cover     kept // that they are below the end of, and not in
	writers   string
	rows      uint64
}

// findGarbage notes whose rows there are to remove.
func (s *Store) findGarbage(ctx context.Context, table string, partition uint32, before kept) (*garbage, error) {
	g := &garbage{table: table, partition: partition, cover: before}
	var writers []string
	err := s.query(ctx, s.opts.QueryTimeout, "SELECT writer, count() FROM "+table+" WHERE "+g.condition()+" GROUP BY writer", func(r driver.Rows) error {
		var writer, rows uint64
		if err := r.Scan(&writer, &rows); err != nil {
			return err
		}
		writers = append(writers, strconv.FormatUint(writer, 10))
		g.rows += rows
		return nil
	})
	g.writers = strings.Join(writers, ",")
	return g, err
}

// condition is a condition that a row is not in the cover, below its end.
func (g *garbage) condition() string {
	return fmt.Sprintf(`"partition" = %d AND record_offset < %d AND NOT %s`, g.partition, g.cover.end(), g.cover.cover.condition(""))
}

// removeFound removes it, unless the cover is another one by now.
func (s *Store) removeFound(ctx context.Context, g *garbage) error {
	if g.rows == 0 {
		return nil
	}
	now, _, err := s.readCover(ctx, int(g.partition))
	if err != nil {
		return err
	}
	if !now.extends(g.cover) {
		return fmt.Errorf("%w: rows of %s in partition %d stay", errCoverChanged, g.table, g.partition)
	}
	// What these writers have committed to other tables must not count again when one of those
	// is put back, since rows of it are removed here.
	commits := fmt.Sprintf(`"partition" = %d AND writer IN (%s) AND generation != %s`, g.partition, g.writers, quote(g.cover.tables.generation))
	var n uint64
	if err := s.query(ctx, s.opts.QueryTimeout, "SELECT count() FROM commits WHERE "+commits, func(r driver.Rows) error { return r.Scan(&n) }); err != nil {
		return err
	}
	if n > 0 {
		if err := s.alter(ctx, "DELETE FROM commits WHERE "+commits); err != nil {
			return err
		}
	}
	err = s.alter(ctx, fmt.Sprintf("DELETE FROM %s IN PARTITION %d WHERE %s AND writer IN (%s)", g.table, g.partition, g.condition(), g.writers))
	if err != nil {
		return err
	}
	s.opts.Logger.Info("history: rows of appends that were never completed are removed", "table", g.table, "partition", g.partition, "rows", g.rows)
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
