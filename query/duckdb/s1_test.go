package duckdb

import (
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// openHistory opens a store for a test that any history passes.
func openHistory(t *testing.T) query.History { return openTest(t) }

// grouped is openHistory with row groups of so many rows, so that rows are in
// both tables.
func grouped(rows int) historytest.Open {
	return func(t *testing.T) query.History {
		s := openTest(t)
		s.groupRows = rows
		return s
	}
}

// TestS1NaiveEqualsDuckDB is S1 of package historytest.
func TestS1NaiveEqualsDuckDB(t *testing.T) {
	t.Parallel()
	historytest.S1(t, grouped(300), 7)
}
