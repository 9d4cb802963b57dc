package clickhouse

import (
	"testing"

	"github.com/musterhq/muster/query/internal/historytest"
)

// What is tested here is in package historytest.

func TestS1NaiveEqualsClickHouse(t *testing.T) {
	t.Parallel()
	historytest.S1(t, small(300, 20), 2)
}

func TestS1Replay(t *testing.T) {
	t.Parallel()
	historytest.Replays(t, small(50, 20), 3)
}

func TestReplayRefusesFiltersOfTheInstant(t *testing.T) {
	t.Parallel()
	historytest.ReplayRefusesFiltersOfTheInstant(t, openHistory)
}

func TestS1HostilePaths(t *testing.T) {
	t.Parallel()
	historytest.HostilePaths(t, openHistory)
}

func TestS1TextOperators(t *testing.T) {
	t.Parallel()
	historytest.TextOperators(t, openHistory)
}

func TestS1AliasChainInOneRecord(t *testing.T) {
	t.Parallel()
	historytest.AliasChainInOneRecord(t, openHistory)
}

func TestR2AccountsAndPartitionsAreApart(t *testing.T) {
	t.Parallel()
	historytest.AccountsAndPartitionsAreApart(t, openHistory)
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	historytest.Unsupported(t, openHistory)
}

func TestS1SeriesEqualsScan(t *testing.T) {
	t.Parallel()
	historytest.SeriesEqualsScan(t, small(300, 100), 50)
}

func TestSeriesIsBounded(t *testing.T) {
	t.Parallel()
	historytest.SeriesIsBounded(t, openHistory)
}

func TestEraseLeavesTheOthers(t *testing.T) {
	t.Parallel()
	historytest.EraseLeavesTheOthers(t, openHistory)
}

func TestTimelinePages(t *testing.T) {
	t.Parallel()
	historytest.TimelinePages(t, openHistory)
}

func TestTransitionsPages(t *testing.T) {
	t.Parallel()
	historytest.TransitionsPages(t, openHistory)
}

func TestTimelineOfTypes(t *testing.T) {
	t.Parallel()
	historytest.TimelineOfTypes(t, openHistory)
}

func TestProfileTransitionsPages(t *testing.T) {
	t.Parallel()
	historytest.ProfileTransitionsPages(t, openHistory)
}

func TestMovesEqualsScan(t *testing.T) {
	t.Parallel()
	historytest.MovesEqualsScan(t, openHistory)
}
