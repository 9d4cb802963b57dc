package duckdb_test

import (
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/query/internal/historytest"
)

// TestS1S2EngineEqualsNaiveEqualsDuckDB: see [historytest.EngineEqualsHistory]. One history
// answers from its tables, the other from columns and a cache where it can.
func TestS1S2EngineEqualsNaiveEqualsDuckDB(t *testing.T) {
	t.Parallel()
	files := 0
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
		c := openColumned(t, testlevel.Count(25, 50))
		t.Cleanup(func() { files += c.files })
		return []historytest.Named{{Name: "DuckDB", History: s}, {Name: "columns", History: c}}
	}, testlevel.Count(100, 150), historytest.Cases(testlevel.Count(40, 2_000)))
	if files == 0 {
		t.Error("no file of columns was made")
	}
}
