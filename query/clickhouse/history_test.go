package clickhouse

import (
	"testing"

	"github.com/musterhq/muster/query/internal/historytest"
)

// What is tested here is in package historytest.

func TestS1NaiveEqualsClickHouse(t *testing.T) { historytest.S1(t, small(300, 20), 3) }

func TestS1Replay(t *testing.T) { historytest.Replays(t, small(50, 20), 3) }

func TestReplayRefusesFiltersOfTheInstant(t *testing.T) {
	historytest.ReplayRefusesFiltersOfTheInstant(t, openHistory)
}

func TestS1HostilePaths(t *testing.T) { historytest.HostilePaths(t, openHistory) }

func TestS1AliasChainInOneRecord(t *testing.T) { historytest.AliasChainInOneRecord(t, openHistory) }

func TestR2AccountsAndPartitionsAreApart(t *testing.T) {
	historytest.AccountsAndPartitionsAreApart(t, openHistory)
}

func TestUnsupported(t *testing.T) { historytest.Unsupported(t, openHistory) }

func TestS1SeriesEqualsScan(t *testing.T) { historytest.SeriesEqualsScan(t, small(300, 100)) }

func TestSeriesIsBounded(t *testing.T) { historytest.SeriesIsBounded(t, openHistory) }

func TestEraseLeavesTheOthers(t *testing.T) { historytest.EraseLeavesTheOthers(t, openHistory) }

func TestTimelinePages(t *testing.T) { historytest.TimelinePages(t, openHistory) }

func TestTransitionsPages(t *testing.T) { historytest.TransitionsPages(t, openHistory) }
