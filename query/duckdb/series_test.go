package duckdb

import (
	"testing"

	"github.com/musterhq/muster/query/internal/historytest"
)

func TestS1SeriesEqualsScan(t *testing.T) { historytest.SeriesEqualsScan(t, grouped(300), 150) }

func TestSeriesIsBounded(t *testing.T) { historytest.SeriesIsBounded(t, openHistory) }

func TestMovesEqualsScan(t *testing.T) { historytest.MovesEqualsScan(t, openHistory) }
