package clickhouse

import (
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query/internal/historytest"
)

// TestS1S2EngineEqualsNaiveEqualsClickHouse: see [historytest.EngineEqualsHistory]. DuckDB
// is compared with the same two over the same seeds, in its own package.
func TestS1S2EngineEqualsNaiveEqualsClickHouse(t *testing.T) {
	t.Parallel()
	cases := 80
	if testlevel.Long() {
		cases = 5_000
	}
	historytest.EngineEqualsHistory(t, func(t *testing.T) []historytest.Named {
		return []historytest.Named{{Name: "ClickHouse", History: openTest(t)}}
	}, 70, min(cases, historytest.Cases(cases))) // each is a round trip; the many are DuckDB's
}
