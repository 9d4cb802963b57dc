package clickhouse

import (
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/query/internal/historytest"
)

// TestS1S2EngineEqualsNaiveEqualsDuckDBEqualsClickHouse: see
// [historytest.EngineEqualsHistory].
func TestS1S2EngineEqualsNaiveEqualsDuckDBEqualsClickHouse(t *testing.T) {
	t.Parallel()
	cases := 80
	if testlevel.Long() {
		cases = 5_000
	}
	historytest.EngineEqualsHistory(t, func(t *testing.T) []historytest.Named {
		embedded, err := duckdb.Open(filepath.Join(t.TempDir(), "h.duckdb"), duckdb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := embedded.Close(); err != nil {
				t.Error(err)
			}
		})
		return []historytest.Named{{Name: "ClickHouse", History: openTest(t)}, {Name: "DuckDB", History: embedded}}
	}, 70, min(cases, historytest.Cases(cases))) // each is a round trip; the many are DuckDB's
}
