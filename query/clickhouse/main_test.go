package clickhouse

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/query"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openTest opens a store in a database of the test's own.
func openTest(t testing.TB) *Store {
	t.Helper()
	return openOptions(t, Options{DSN: services.ClickHouse(t), Database: services.Database(t), Threads: 2})
}

func openOptions(t testing.TB, opts Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

// openHistory opens a store for a test that any history passes.
func openHistory(t *testing.T) query.History { return openTest(t) }

// small opens a store that inserts blocks, and replays pieces, of a few rows.
func small(blockRows, pieceRows int) func(t *testing.T) query.History {
	return func(t *testing.T) query.History {
		s := openTest(t)
		s.blockRows, s.pieceRows = blockRows, pieceRows
		return s
	}
}
