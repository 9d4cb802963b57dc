package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/query"
)

// span is the records from ≤ offset < to of one writer.
type span struct {
	writer   uint64
	from, to int64
}

// cover is for each record below the position one writer: spans in order, the
// first from 0, each from where the one before ends.
type cover []span

// coverOf chooses among the spans that writers have committed: from each end
// on, the one that reaches furthest. Writers' numbers break ties.
//
// Among appends that see each other's commits, a cover only grows at its end:
// the last span was not chosen earlier, so it begins behind all earlier ends,
// and extending it changes no earlier choice; a new span begins at the end.
func coverOf(committed []span) cover {
	committed = slices.Clone(committed)
	slices.SortFunc(committed, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.writer, b.writer))
	})
	var c cover
	best := span{to: math.MinInt64}
	for end := int64(0); ; {
		for len(committed) > 0 && committed[0].from <= end {
			if x := committed[0]; x.to > best.to || x.to == best.to && x.writer > best.writer {
				best = x
			}
			committed = committed[1:]
		}
		if best.to <= end {
			return c
		}
		c = append(c, span{best.writer, end, best.to})
		end = best.to
	}
}

// end is the position.
func (c cover) end() int64 {
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].to
}

// condition is a condition that a row of the table lies in the cover.
func (c cover) condition(table string) string {
	if table != "" {
		table += "."
	}
	switch len(c) {
	case 0:
		return "false"
	case 1:
		return fmt.Sprintf("(%swriter = %d AND %srecord_offset < %d)", table, c[0].writer, table, c[0].to)
	}
	var writers, from, to strings.Builder
	for i, s := range c {
		comma := ","
		if i == 0 {
			comma = ""
		}
		fmt.Fprintf(&writers, "%s%d", comma, s.writer)
		// All of one type: else the arrays' would depend on the numbers.
		fmt.Fprintf(&from, "%stoInt64(%d)", comma, s.from)
		fmt.Fprintf(&to, "%stoInt64(%d)", comma, s.to)
	}
	return fmt.Sprintf("(%[1]srecord_offset >= transform(%[1]swriter, [%[2]s], [%[3]s], %[5]d) AND %[1]srecord_offset < transform(%[1]swriter, [%[2]s], [%[4]s], toInt64(0)))",
		table, writers.String(), from.String(), to.String(), int64(math.MaxInt64))
}

// kept is a cover, and the tables that have its rows.
type kept struct {
	cover
	tables tables
}

// condition is a condition that a row of the table lies in the cover. A statement that has it
// fails when a table was made again after the cover was read.
func (k kept) condition(table string) string {
	return "(" + k.cover.condition(table) + " AND " + k.tables.unchanged() + ")"
}

// extends reports whether the cover is of the same tables as one read before, and the same
// below the end of that.
func (k kept) extends(before kept) bool {
	below := k.below(before.end())
	return k.tables == before.tables && k.end() >= before.end() &&
		slices.EqualFunc(below, before.cover, func(a, b span) bool { return a.writer == b.writer && a.from == b.from })
}

// below is the cover of the records below the offset.
func (c cover) below(upTo int64) cover {
	for i, s := range c {
		if s.from >= upTo {
			return c[:i]
		}
	}
	return c
}

// readCover reads commits to the tables that are there, and the server's clock in Unix
// milliseconds.
func (s *Store) readCover(ctx context.Context, partition int) (k kept, nowMs int64, err error) {
	committed := map[string][]span{}
	k.tables.database = s.opts.Database
	there := uint64(0)
	var all []string // of any partition
	sql := fmt.Sprintf(`SELECT count(), toInt64(-1), toUnixTimestamp64Milli(now64(3)), %s FROM %s UNION ALL
		SELECT DISTINCT toUInt64(0), toInt64(-2), toInt64(0), generation FROM commits UNION ALL
		SELECT writer, min(first_offset), max(next_offset), max(generation) FROM commits WHERE "partition" = %d GROUP BY writer`,
		generationSQL, k.tables.from(), partition)
	err = s.query(ctx, s.opts.QueryTimeout, sql, func(r driver.Rows) error {
		var x span
		var generation string
		if err := r.Scan(&x.writer, &x.from, &x.to, &generation); err != nil {
			return err
		}
		switch x.from {
		case -1:
			there, nowMs, k.tables.generation = x.writer, x.to, generation
		case -2:
			all = append(all, generation)
		default:
			committed[generation] = append(committed[generation], x)
		}
		return nil
	})
	if err != nil {
		return k, nowMs, err
	}
	if there != uint64(len(rowTables)) {
		err = errTablesGone
	} else {
		err = k.tables.checkMarks(all)
	}
	if err != nil {
		s.heal()
		return k, nowMs, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	k.cover = coverOf(committed[k.tables.generation])
	return k, nowMs, nil
}

// coverFor is a cover that reaches the cut, and no further than needed.
func (s *Store) coverFor(ctx context.Context, partition int, upTo int64) (kept, error) {
	p := s.partition(partition)
	p.mu.Lock()
	c, at := p.mu.cover, p.mu.coverAt
	p.mu.Unlock()
	if c.end() < upTo || time.Since(at) > coverAge {
		done, err := s.readers.take(ctx)
		if err != nil {
			return c, err
		}
		defer done()
		at := time.Now()
		if c, _, err = s.readCover(ctx, partition); err != nil {
			return c, err
		}
		p.remember(c, at)
	}
	if c.end() < upTo {
		// Nobody asks beyond what was stored: that is lost.
		s.tellLoss()
		return c, &query.RebuildingError{Done: c.end(), Total: upTo}
	}
	c.cover = c.below(upTo)
	return c, nil
}

// Position implements [query.History].
func (s *Store) Position(ctx context.Context, partition int) (int64, error) {
	done, err := s.readers.take(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	at := time.Now()
	c, _, err := s.readCover(ctx, partition)
	if err != nil {
		return 0, fmt.Errorf("history: position: %w", err)
	}
	s.partition(partition).remember(c, at)
	return c.end(), nil
}
