package duckdb_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/cache"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/query/internal/historytest"
)

// columned is a cache in front of a store that keeps columns, as the server has it. Each
// append makes some of the files that are due.
type columned struct {
	*cache.History
	store   *duckdb.Store
	appends int
	files   int
}

func openColumned(t *testing.T, groupRows int) *columned {
	t.Helper()
	s, err := duckdb.OpenColumned(filepath.Join(t.TempDir(), "h.duckdb"), groupRows)
	if err != nil {
		t.Fatal(err)
	}
	h, err := cache.New(s, cache.Options{Bytes: 32 << 20, Now: func() time.Time { return time.UnixMilli(1_800_000_000_000) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return &columned{History: h, store: s}
}

func (c *columned) Append(ctx context.Context, b *query.Batch) error {
	err := c.History.Append(ctx, b)
	if c.appends++; err != nil || c.appends%3 == 2 {
		return err
	}
	c.files, err = c.store.BuildColumns(ctx, c.appends%5)
	return err
}

// TestS1NaiveEqualsColumns is S1 of package historytest, for what answers from columns.
func TestS1NaiveEqualsColumns(t *testing.T) {
	t.Parallel()
	var c *columned
	historytest.S1(t, func(t *testing.T) query.History {
		c = openColumned(t, 15)
		return c
	}, 5)
	if s := c.Stats(); c.files == 0 || s.Misses == 0 {
		t.Errorf("%d files, %+v", c.files, s)
	}
}

func TestEraseReachesColumns(t *testing.T) {
	t.Parallel()
	historytest.EraseLeavesTheOthers(t, func(t *testing.T) query.History { return openColumned(t, 2) })
}
