package cache

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/query/internal/historytest"
)

// synced waits after each question until ristretto has taken what was kept.
type synced struct{ *History }

func (s synced) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	defer s.entries.Wait()
	return s.History.Activity(ctx, q)
}

func (s synced) Series(ctx context.Context, q query.SeriesQuery) ([]query.SeriesRow, error) {
	defer s.entries.Wait()
	return s.History.Series(ctx, q)
}

func openBackend(t testing.TB) Backend { return openBackendWith(t, duckdb.Options{}) }

func openBackendWith(t testing.TB, o duckdb.Options) Backend {
	t.Helper()
	s, err := duckdb.Open(filepath.Join(t.TempDir(), "h.duckdb"), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openOn is a cache of so many bytes that is closed with its back end.
func openOn(t testing.TB, b Backend, bytes int64) synced {
	t.Helper()
	now := time.Date(2025, 1, 10, 12, 0, 0, 0, time.UTC)
	h, err := New(b, Options{Bytes: bytes, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return synced{h}
}

// counted opens caches and tells at the end what they did; least of each kind of
// answers must have been given.
func counted(t *testing.T, bytes int64, least Stats) historytest.Open {
	var all []synced
	t.Cleanup(func() {
		var sum Stats
		for _, h := range all {
			s := h.Stats()
			sum.Hits, sum.Extended, sum.Misses, sum.Bypassed = sum.Hits+s.Hits, sum.Extended+s.Extended, sum.Misses+s.Misses, sum.Bypassed+s.Bypassed
		}
		t.Logf("%+v", sum)
		if sum.Hits < least.Hits || sum.Extended < least.Extended || sum.Misses < least.Misses || sum.Bypassed < least.Bypassed {
			t.Errorf("%+v, want at least %+v", sum, least)
		}
	})
	return func(t *testing.T) query.History {
		h := openOn(t, openBackend(t), bytes)
		all = append(all, h)
		return h
	}
}

const mb = 1 << 20

func TestS1NaiveEqualsCache(t *testing.T) {
	historytest.S1(t, counted(t, 64*mb, Stats{Hits: testlevel.Count[uint64](5, 50), Misses: testlevel.Count[uint64](25, 50), Bypassed: testlevel.Count[uint64](25, 50)}), 4)
}

// In a cache that holds next to nothing.
func TestS1NaiveEqualsSmallCache(t *testing.T) {
	historytest.S1(t, counted(t, 12_000, Stats{Misses: testlevel.Count[uint64](5, 10), Bypassed: testlevel.Count[uint64](30, 100)}), 2)
}

func TestS1SeriesEqualsScan(t *testing.T) {
	historytest.SeriesEqualsScan(t, counted(t, 64*mb, Stats{Hits: 20, Misses: 20}), 200)
}

func TestSeriesIsBounded(t *testing.T) {
	historytest.SeriesIsBounded(t, counted(t, 64*mb, Stats{Misses: 1, Hits: 1}))
}

func TestS1AliasChainInOneRecord(t *testing.T) {
	historytest.AliasChainInOneRecord(t, counted(t, 64*mb, Stats{}))
}

func TestR2AccountsAndPartitionsAreApart(t *testing.T) {
	historytest.AccountsAndPartitionsAreApart(t, counted(t, 64*mb, Stats{Misses: 6}))
}

func TestUnsupported(t *testing.T) {
	historytest.Unsupported(t, counted(t, 64*mb, Stats{Bypassed: 3}))
}

func TestEraseLeavesTheOthers(t *testing.T) {
	historytest.EraseLeavesTheOthers(t, counted(t, 64*mb, Stats{}))
}
