package duckdb_test

import (
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/query/internal/historytest"
)

// TestS1S2EngineEqualsNaiveEqualsDuckDB: see [historytest.EngineEqualsHistory].
func TestS1S2EngineEqualsNaiveEqualsDuckDB(t *testing.T) {
	cases := 2_000
	if testing.Short() {
		cases = 300
	}
	historytest.EngineEqualsHistory(t, func(t *testing.T) []historytest.Named {
		s, err := duckdb.Open(filepath.Join(t.TempDir(), "h.duckdb"), duckdb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return []historytest.Named{{Name: "DuckDB", History: s}}
	}, 150, historytest.Cases(cases))
}
