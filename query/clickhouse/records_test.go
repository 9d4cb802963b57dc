package clickhouse

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

func appendRecords(t *testing.T, s *Store, partition int, from, to int64) {
	t.Helper()
	b := new(query.Batch)
	historytest.FillRecords(b, partition, from, to)
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

// scalar asks for one number.
func scalar(t *testing.T, s *Store, sql string) (v int64) {
	t.Helper()
	err := s.ask(context.Background(), "SELECT toInt64(("+sql+"))", func(r driver.Rows) error { return r.Scan(&v) })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// checkRecords compares a partition with what its position promises: each record
// below it whole, once and unchanged.
func checkRecords(t *testing.T, s *Store, partition int) (position int64) {
	t.Helper()
	ctx := context.Background()
	position, err := s.Position(ctx, partition)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.coverFor(ctx, partition, position)
	if err != nil || c.end() != position {
		t.Fatalf("the cover ends at %d, the position is %d (%v)", c.end(), position, err)
	}
	where := fmt.Sprintf(` WHERE "partition" = %d AND %s ORDER BY record_offset, `, partition, c.condition(""))
	var want query.Batch
	historytest.FillRecords(&want, partition, 0, position)
	n := 0
	err = s.ask(ctx, "SELECT account, record_offset, record_index, ordinal, time_ms, event_type, properties, idempotency_key FROM events"+where+"record_index", func(r driver.Rows) error {
		var account uint64
		var offset, timeMs int64
		var index, ordinal uint32
		var typ, properties, key string
		if err := r.Scan(&account, &offset, &index, &ordinal, &timeMs, &typ, &properties, &key); err != nil {
			return err
		}
		if n >= want.Rows() || account != want.Account[n] || offset != want.Offset[n] || index != want.Index[n] || ordinal != want.Ordinal[n] || timeMs != want.TimeMs[n] ||
			typ != string(want.EventType.At(n)) || properties != string(want.Properties.At(n)) || key != string(want.IdempotencyKey.At(n)) {
			return fmt.Errorf("row %d of %d is %d.%d %s", n, want.Rows(), offset, index, properties)
		}
		n++
		return nil
	})
	if err != nil || n != want.Rows() {
		t.Fatalf("L2: partition %d at %d: %d rows, want %d: %v", partition, position, n, want.Rows(), err)
	}
	n = 0
	err = s.ask(ctx, "SELECT account, record_offset, record_index, seq, ordinal, winner FROM aliases"+where+"record_index, seq", func(r driver.Rows) error {
		var a query.Alias
		var seq uint32
		if err := r.Scan(&a.Account, &a.Offset, &a.Index, &seq, &a.Ordinal, &a.Winner); err != nil {
			return err
		}
		if n >= len(want.Aliases) || seq != 0 || a != want.Aliases[n] {
			return fmt.Errorf("alias %d of %d is %+v", n, len(want.Aliases), a)
		}
		n++
		return nil
	})
	if err != nil || n != len(want.Aliases) {
		t.Fatalf("L2: partition %d at %d: %d aliases, want %d: %v", partition, position, n, len(want.Aliases), err)
	}
	n = 0
	q := query.TransitionsQuery{Cut: query.Cut{Partition: partition, UpTo: position}, Account: uint64(7 + partition), Limit: maxTransitions}
	for {
		page, err := s.Transitions(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range page {
			if n >= len(want.Transitions) || x != want.Transitions[n] {
				t.Fatalf("L2: partition %d at %d: transition %d of %d is %+v", partition, position, n, len(want.Transitions), x)
			}
			n++
			q.After = x.Key
		}
		if len(page) < q.Limit {
			break
		}
	}
	if n != len(want.Transitions) {
		t.Fatalf("L2: partition %d at %d: %d transitions, want %d", partition, position, n, len(want.Transitions))
	}
	// What analysts see is the same; others may append meanwhile.
	for view, want := range map[string]int{"stored_events": want.Rows(), "stored_transitions": len(want.Transitions)} {
		if got := scalar(t, s, "SELECT count() FROM "+view+fmt.Sprintf(` WHERE "partition" = %d AND record_offset < %d`, partition, position)); got != int64(want) {
			t.Fatalf("L2: partition %d at %d: %s has %d rows, want %d", partition, position, view, got, want)
		}
	}
	return position
}

// analystExamples is the SQL of docs/clickhouse.md.
func analystExamples(t *testing.T) (sql string) {
	t.Helper()
	root, err := services.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "clickhouse.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(text), "```") {
		if strings.HasPrefix(block, "sql\n") && i%2 == 1 {
			sql += strings.TrimPrefix(block, "sql\n") + ";"
		}
	}
	if strings.Count(sql, "SELECT") < 5 {
		t.Fatal("docs/clickhouse.md has no examples")
	}
	return sql
}
