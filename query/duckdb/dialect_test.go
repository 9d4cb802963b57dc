package duckdb

import (
	"context"
	"fmt"
	"testing"

	"github.com/musterhq/muster/query/internal/historytest"
)

// each evaluates an expression of j, the JSON behind "v", for each event.
func each(t *testing.T, s *Store, expr string) (values []int64) {
	t.Helper()
	var args []any
	j := dialect{}.Extract("properties", []string{"v"}, func(v any) string { args = append(args, v); return "$1" })
	sql := fmt.Sprintf(`SELECT coalesce(%s, %d::BIGINT) FROM (SELECT record_offset, %s AS j FROM events) ORDER BY record_offset`, expr, int64(historytest.None), j)
	err := s.writer.query(context.Background(), sql, args, func(ch chunk) error {
		values = append(values, column[int64](ch, 0)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// TestS1Micros compares the millionths of numbers with segment.MicrosOf.
func TestS1Micros(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	historytest.MicrosOfNumbers(t, s, func() []int64 { return each(t, s, new(dialect).Micros("j", "TRY_CAST(j AS DOUBLE)")) })
}

// TestS1Times compares times with segment.ParseTime.
func TestS1Times(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	historytest.InstantsOfTexts(t, s, func() []int64 { return each(t, s, new(dialect).TimeMs(new(dialect).Text("j"))) })
}

func TestS1HostilePaths(t *testing.T) {
	t.Parallel()
	historytest.HostilePaths(t, openHistory)
}

func TestS1TextOperators(t *testing.T) {
	t.Parallel()
	historytest.TextOperators(t, openHistory)
}
