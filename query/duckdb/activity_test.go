package duckdb

import (
	"testing"

	"github.com/musterhq/muster/query/internal/historytest"
)

func TestS1AliasChainInOneRecord(t *testing.T) { historytest.AliasChainInOneRecord(t, openHistory) }

func TestR2AccountsAndPartitionsAreApart(t *testing.T) {
	historytest.AccountsAndPartitionsAreApart(t, openHistory)
}

func TestUnsupported(t *testing.T) { historytest.Unsupported(t, openHistory) }
