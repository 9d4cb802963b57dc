package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// A table that is dropped is made again, empty, and what it had is rebuilt from the log. The
// commits of before must not count then: they say that rows are there. So each table of rows
// has a generation, a random text in its comment that is drawn when the table is made;
// commits note the generations of all three, one after the other, and only those count that
// note the present ones. Tables of before there were generations have none, and neither
// have the commits to them: the empty text on both sides.
//
// Nothing is dropped or emptied by this, so nodes that find the same table missing need no
// agreement. Of their CREATE TABLE IF NOT EXISTS one makes the table, and all read its
// generation. Whatever order things happen in:
//
//   - An append reads the generation together with commits, before it inserts anything, and
//     its commit is refused when that is another by then. A table made in between has another,
//     for good: so all that was inserted went to the tables of the generation. Where the table
//     is made again between that check and the commit's insert, the commit names the
//     generation of before, and does not count.
//   - A reader's statement fails when the generation is not that of its cover any more
//     ([kept.condition]). It never finds a position without its rows.
//   - A lost commits is made again, empty: the position is 0, and everything is appended
//     again by new writers. A commit that was under way names rows that are there, and counts
//     once all records before it are there, too.
//   - Rows in the tables that were left are in no cover: the next sweep but one removes them.
//
// A table that is put back from ClickHouse's backup has its comment, so that what was
// committed to it counts again, as long as the other tables still have their part of it. Where
// the rebuild is past it, the sweep removes that part as garbage, and before that the commits:
// the position is lower then, and rows are rebuilt from the log once more. A log that lacks its
// beginning rebuilds nothing, so that the sweep leaves all as it is, and the table may be put
// back whenever there is a backup of it.

// rowTables are the tables of rows.
var rowTables = []string{"aliases", "events", "transitions"}

// generationMark begins a generation in a comment. Other tools write comments, too: what
// stands beside it does not matter, and [tables.checkMarks] is for those that replace it.
const generationMark = "muster: generation "

// generationSQL is the generations of the tables of rows, asked [tables.from].
const generationSQL = `concat(maxIf(comment, name = 'aliases'), maxIf(comment, name = 'events'), maxIf(comment, name = 'transitions'))`

// tables are those of rows that a cover is of.
type tables struct{ database, generation string }

// from is where to ask for what is known of the tables that are there.
func (t tables) from() string {
	return fmt.Sprintf(`(SELECT name, extract(comment, '%s[0-9a-f]{16}') AS comment FROM system.tables WHERE database = %s AND name IN ('%s'))`,
		generationMark, quote(t.database), strings.Join(rowTables, "', '"))
}

// unchanged is a condition that throws when a table was made again.
func (t tables) unchanged() string {
	return fmt.Sprintf("(SELECT throwIf(%s != %s, '%s') FROM %s) = 0", generationSQL, quote(t.generation), textRemade, t.from())
}

// columns of the tables: what statements name.
var columns = map[string][]string{
	"events":      {"account", "partition", "record_offset", "record_index", "writer", "ordinal", "time_ms", "event_type", "properties", "readable", "idempotency_key"},
	"aliases":     {"account", "partition", "record_offset", "record_index", "seq", "writer", "ordinal", "winner"},
	"transitions": {"account", "partition", "record_offset", "seq", "writer", "segment", "ordinal", "entered", "cause", "at_ms"},
	"commits":     {"partition", "writer", "first_offset", "next_offset", "generation"},
}

// views are those for analysts.
var views = []string{"positions", "stored_events", "stored_transitions", "winners", "segment_members"}

// missing returns the migration from which on to make what is not there: that behind the
// version when all of the version is there.
func (s *Store) missing(ctx context.Context, version int) (from int, err error) {
	there := map[string]bool{}
	err = s.query(ctx, s.opts.QueryTimeout, "SELECT name FROM system.tables WHERE database = currentDatabase()", func(r driver.Rows) error {
		var name string
		defer func() { there[name] = true }()
		return r.Scan(&name)
	})
	if err != nil || version == 0 {
		return 0, err
	}
	var lost []string
	for table := range columns {
		if !there[table] {
			lost = append(lost, table)
		}
	}
	for _, view := range views {
		if !there[view] {
			lost = append(lost, view)
		}
	}
	if len(lost) == 0 {
		return version, nil
	}
	slices.Sort(lost)
	s.opts.Logger.Error("history: tables or views of the database were not there and are made again; rows that are lost are rebuilt from the log. "+
		"If that lacks its beginning, a table that was dropped without SYNC can be put back until the table_dropped_time that system.dropped_tables has for it, "+
		"by default 8 minutes after the DROP: at once after each other, DROP TABLE events SYNC and UNDROP TABLE events UUID '…' with the uuid from there",
		"database", s.opts.Database, "names", lost)
	return 0, nil
}

// ErrMissingColumn reports that a table lacks a column.
var ErrMissingColumn = errors.New("a column of history is not there")

// checkColumns refuses tables without a column that statements name.
func (s *Store) checkColumns(ctx context.Context) error {
	there := map[string]bool{}
	err := s.query(ctx, s.opts.QueryTimeout, "SELECT concat(table, '.', name) FROM system.columns WHERE database = currentDatabase()", func(r driver.Rows) error {
		var name string
		defer func() { there[name] = true }()
		return r.Scan(&name)
	})
	if err != nil {
		return err
	}
	for _, table := range []string{"events", "aliases", "transitions", "commits"} {
		for _, column := range columns[table] {
			if !there[table+"."+column] {
				return fmt.Errorf("%w: the table %s has no %s: DROP TABLE %s.%s, which is made again; its rows are rebuilt from the log, if that still has its beginning",
					ErrMissingColumn, table, column, identifier(s.opts.Database), table)
			}
		}
	}
	return nil
}
