package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

func commentOf(t *testing.T, s *Store, table string) (comment string) {
	t.Helper()
	err := s.ask(context.Background(), "SELECT comment FROM system.tables WHERE database = currentDatabase() AND name = "+quote(table), func(r driver.Rows) error { return r.Scan(&comment) })
	if err != nil {
		t.Fatal(err)
	}
	return comment
}

func setComment(t *testing.T, s *Store, table, comment string) {
	t.Helper()
	do(t, s, "ALTER TABLE "+table+" MODIFY COMMENT "+quote(comment))
}

// TestL2CommentOverwritten: a comment that somebody else writes on a table takes no rows out of
// count and stores none twice: history is refused, with the statement that helps, until that
// was run.
func TestL2CommentOverwritten(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	opts := Options{DSN: services.ClickHouse(t), Database: services.Database(t)}
	s := openOptions(t, opts)
	rebuild(t, s, 100)
	for _, tables := range [][]string{{"events"}, {"aliases", "transitions"}, rowTables} {
		for _, table := range tables {
			setComment(t, s, table, "page views and orders of the shop")
		}
		_, err := s.Position(ctx, 0)
		b := new(query.Batch)
		historytest.FillRecords(b, 0, 100, 120)
		appended := s.Append(ctx, b)
		_, counted := s.Counts(ctx, query.Cut{Partition: 0, UpTo: 100}, 0, 1)
		if !errors.Is(err, ErrLostComment) || !errors.Is(appended, ErrLostComment) || !errors.Is(err, ErrUnavailable) || !errors.Is(counted, ErrUnavailable) {
			t.Fatalf("%v: the position: %v; an append: %v; counts: %v", tables, err, appended, counted)
		}
		// Who knows a cover is told why, too, soon.
		eventually.Succeeds(t, func() error {
			if _, err := s.Counts(ctx, query.Cut{Partition: 0, UpTo: 100}, 0, 1); !errors.Is(err, ErrLostComment) {
				return fmt.Errorf("counts: %w", err)
			}
			return nil
		})
		o, err := Open(ctx, opts)
		if !errors.Is(err, ErrLostComment) {
			if err == nil {
				o.Close()
			}
			t.Fatalf("a start: %v", err)
		}
		if err := new(sweep).run(ctx, s); !errors.Is(err, ErrLostComment) {
			t.Errorf("the sweep: %v", err)
		}
		put := regexp.MustCompile("ALTER TABLE [^ ]+ MODIFY COMMENT '[^']*'").FindAllString(err.Error(), -1)
		if len(put) != len(tables) {
			t.Fatalf("%v: %v", tables, err)
		}
		for _, sql := range put {
			do(t, s, sql)
		}
		if at := checkRecords(t, s, 0); at != 100 {
			t.Errorf("%v: the position is %d", tables, at)
		}
	}
	// Text beside it changes nothing.
	for _, table := range rowTables {
		setComment(t, s, table, "page views; "+commentOf(t, s, table)+" of the shop")
	}
	eventually.Succeeds(t, func() error { _, err := s.Position(ctx, 0); return err })
	rebuild(t, s, 150)
	if at := checkRecords(t, s, 0); at != 150 {
		t.Errorf("the position is %d", at)
	}
	if n := scalar(t, s, "SELECT max(record_offset) FROM stored_events"); n < 140 {
		t.Errorf("analysts see events to %d", n)
	}
	if n := scalar(t, s, "SELECT count(DISTINCT writer) FROM events WHERE record_offset < 100"); n != 1 {
		t.Errorf("%d writers have stored the same", n)
	}
}

// TestCommentOverwrittenOfFirstSchema: where only one table has a generation, the others being
// of version 1, and loses it, what was committed before does not count again.
func TestCommentOverwrittenOfFirstSchema(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openTest(t)
	for _, table := range rowTables {
		setComment(t, s, table, "")
	}
	rebuild(t, s, 100)
	do(t, s, "DROP TABLE events SYNC")
	if err := s.ensureSchema(ctx); err != nil {
		t.Fatal(err)
	}
	rebuild(t, s, 60)
	comment := commentOf(t, s, "events")
	setComment(t, s, "events", "")
	if at, err := s.Position(ctx, 0); !errors.Is(err, ErrLostComment) || !strings.Contains(err.Error(), comment) {
		t.Fatalf("the position is %d (%v)", at, err)
	}
	setComment(t, s, "events", comment)
	if at := checkRecords(t, s, 0); at != 60 {
		t.Errorf("the position is %d", at)
	}
	setComment(t, s, "events", "")
	do(t, s, "TRUNCATE TABLE commits")
	rebuild(t, s, 100)
	checkRecords(t, s, 0)
}

func TestLostMarks(t *testing.T) {
	t.Parallel()
	of := func(names string) (generation string) {
		for _, n := range strings.Fields(names) {
			generation += generationMark + n
		}
		return generation
	}
	for _, x := range []struct{ present, committed, want string }{
		{"a e t", "a e t", ""},
		{"a e2 t", "a e t", ""},
		{"a t", "a e t", "e"},
		{"e", "a e t", "a t"},
		{"", "a e t", "a e t"},
		{"a e t", "a t", ""},
		{"a2 t", "a e t", ""},
		{"e2", "e1", ""},
		{"", "", ""},
		{"", "e", "e"},
		{"a e t", "", ""},
	} {
		if have := lostMarks(of(x.present), of(x.committed)); !slices.Equal(have, marksOf(of(x.want))) {
			t.Errorf("%q beside what %q was committed to lacks %q", x.present, x.committed, have)
		}
	}
}
