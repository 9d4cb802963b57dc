package duckdb

import (
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query/internal/historytest"
)

func TestS1SeriesEqualsScan(t *testing.T) {
	t.Parallel()
	historytest.SeriesEqualsScan(t, grouped(300), testlevel.Count(60, 150))
}

func TestSeriesIsBounded(t *testing.T) {
	t.Parallel()
	historytest.SeriesIsBounded(t, openHistory)
}

func TestMovesEqualsScan(t *testing.T) {
	t.Parallel()
	historytest.MovesEqualsScan(t, openHistory)
}
