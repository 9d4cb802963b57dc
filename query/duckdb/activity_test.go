package duckdb

import (
	"testing"

	"github.com/musterhq/muster/query/internal/historytest"
)

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
