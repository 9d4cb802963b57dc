package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/segment"
)

// dayMs is a day; times of the test are days after the epoch.
const dayMs = 86_400_000

// interleaving is a history that is changed and asked in turns, through the
// cache; the back end is asked the same.
type interleaving struct {
	t     *testing.T
	rng   *rand.Rand
	inner Backend
	cache synced
	next  int64
	nowMs int64
	// gone are merged or erased profiles.
	gone map[uint32]bool
}

const profiles = 40

func (w *interleaving) append(records int, change func(b *query.Batch, o int64)) {
	b := &query.Batch{From: w.next, To: w.next + int64(records)}
	for o := b.From; o < b.To; o++ {
		change(b, o)
	}
	if err := w.cache.Append(context.Background(), b); err != nil {
		w.t.Fatal(err)
	}
	w.next = b.To
}

func (w *interleaving) event(b *query.Batch, o, at int64) {
	ordinal := uint32(w.rng.IntN(profiles))
	if w.gone[ordinal] {
		return
	}
	b.Account, b.Offset, b.Index = append(b.Account, 1), append(b.Offset, o), append(b.Index, 0)
	b.Ordinal, b.TimeMs = append(b.Ordinal, ordinal), append(b.TimeMs, at)
	b.EventType.Append([]byte(fmt.Sprintf("t%d", w.rng.IntN(3))))
	b.Properties.Append([]byte([]string{"", `{"v":2.5}`, `{"v":-1,"s":"a"}`, `{"v":"2","s":"b"}`, `{"v":7,"s":["a"]}`}[w.rng.IntN(5)]))
	b.IdempotencyKey.Append(nil)
}

// change does one of what changes a history.
func (w *interleaving) change() string {
	rng := w.rng
	w.nowMs += rng.Int64N(dayMs / 2)
	switch rng.IntN(8) {
	case 0, 1, 2:
		w.append(1+rng.IntN(20), func(b *query.Batch, o int64) { w.event(b, o, w.nowMs-rng.Int64N(1000)) })
		return "events"
	case 3:
		w.append(1+rng.IntN(5), func(b *query.Batch, o int64) { w.event(b, o, w.nowMs-rng.Int64N(3*dayMs)) })
		return "late events"
	case 4:
		w.append(30, func(b *query.Batch, o int64) { w.event(b, o, rng.Int64N(w.nowMs)) })
		return "an import"
	case 5:
		winner, merged := uint32(rng.IntN(profiles)), uint32(rng.IntN(profiles))
		if winner == merged || w.gone[winner] || w.gone[merged] || len(w.gone) > profiles/2 {
			return "nothing"
		}
		w.gone[merged] = true
		w.append(1, func(b *query.Batch, o int64) {
			b.Aliases = append(b.Aliases, query.Alias{Account: 1, Offset: o, Ordinal: merged, Winner: winner})
		})
		return "a merge"
	case 6:
		if rng.IntN(4) > 0 || len(w.gone) > profiles/2 {
			return "nothing"
		}
		o := uint32(rng.IntN(profiles))
		w.gone[o] = true
		if err := w.cache.Erase(context.Background(), query.EraseQuery{Cut: query.Cut{UpTo: w.next}, Account: 1, Ordinals: []uint32{o}}); err != nil {
			w.t.Fatal(err)
		}
		return "an erasure"
	}
	w.append(1, func(*query.Batch, int64) {})
	return "a record without rows"
}

var interleavedLeaves = func() (out []*segment.Activity) {
	for _, event := range []string{"t0", "t1"} {
		for _, window := range []int64{0, 2 * dayMs, 30 * dayMs} {
			for _, where := range [][]segment.Predicate{nil, {{Path: []string{"s"}, Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueString, Str: "a"}}}}} {
				out = append(out, &segment.Activity{Event: event, Did: true, WindowMs: window, Where: where})
			}
		}
	}
	return append(out, &segment.Activity{Event: segment.AnyEvent, Did: true})
}()

// ask asks the cache and the back end.
func (w *interleaving) ask() {
	rng, ctx := w.rng, context.Background()
	cut := query.Cut{UpTo: w.next}
	if rng.IntN(10) == 0 {
		cut.UpTo = rng.Int64N(w.next + 1)
	}
	if rng.IntN(3) > 0 {
		leaf := *interleavedLeaves[rng.IntN(len(interleavedLeaves))]
		compare := segment.Compare{Op: []segment.Op{segment.OpGe, segment.OpLt, segment.OpEq, segment.OpNe}[rng.IntN(4)], Micros: []segment.Int128{segment.Micros(rng.Int64N(12) * 500_000)}}
		fn := []segment.Fn{"", segment.FnSum, segment.FnAvg, segment.FnMin, segment.FnMax, segment.FnDistinct}[rng.IntN(6)]
		if fn == "" || leaf.Event == segment.AnyEvent {
			leaf.Count = &compare
		} else {
			leaf.Aggregate = &segment.Aggregate{Fn: fn, Property: []string{"v"}, Compare: compare}
		}
		q := query.ActivityQuery{Cut: cut, Account: 1, Leaf: &leaf, AtMs: w.nowMs, Negate: rng.IntN(2) == 0}
		if rng.IntN(10) == 0 {
			q.AtMs = rng.Int64N(w.nowMs)
		}
		got, err := w.cache.Activity(ctx, q)
		if err != nil {
			w.t.Fatal(err)
		}
		want, err := w.inner.Activity(ctx, q)
		if err != nil {
			w.t.Fatal(err)
		}
		if !got.Equals(want) {
			w.t.Fatalf("S1: %s at %d, cut %d of %d, negate %t: the cache has %v, history %v", leaf.Key(), q.AtMs, cut.UpTo, w.next, q.Negate, got, want)
		}
		got.AddRange(0, 100) // it is the caller's
		return
	}
	q := query.SeriesQuery{Cut: cut, Account: 1, ToMs: w.nowMs + 1, FromMs: max(0, w.nowMs-10*dayMs), Granularity: []query.Granularity{query.Whole, query.Hour, query.Day, query.Month}[rng.IntN(4)]}
	if rng.IntN(2) == 0 {
		q.Types = []string{"t1", "t0"}
	}
	if rng.IntN(2) == 0 {
		q.By = []string{"s"}
	}
	if rng.IntN(4) == 0 {
		q.FromMs, q.ToMs = 2*dayMs, 5*dayMs
	}
	got, err := w.cache.Series(ctx, q)
	if err != nil {
		w.t.Fatal(err)
	}
	want, err := w.inner.Series(ctx, q)
	if err != nil {
		w.t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		w.t.Fatalf("S1: %+v: the cache has %v, history %v", q, got, want)
	}
}

// TestS1CacheEqualsHistory: whatever is appended, imported, merged and erased
// between questions, at any instant and cut, the cache answers as its back end.
// MUSTER_SEED is the seed.
func TestS1CacheEqualsHistory(t *testing.T) { cacheEqualsHistory(t, openBackend(t), 20) }

// TestS1CacheOverColumnsEqualsHistory: likewise where the back end answers from columns and
// windows move without the events behind them being kept.
func TestS1CacheOverColumnsEqualsHistory(t *testing.T) {
	cacheEqualsHistory(t, openBackendWith(t, duckdb.Options{Columns: true}), 5)
}

// cacheEqualsHistory changes and asks; at least so many answers must be from memory.
func cacheEqualsHistory(t *testing.T, inner Backend, hits uint64) {
	seed := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("MUSTER_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("MUSTER_SEED=%d", seed)
	w := &interleaving{t: t, rng: rand.New(rand.NewPCG(seed, 3)), inner: inner, cache: openOn(t, inner, 8*mb), gone: map[uint32]bool{},
		nowMs: 8 * dayMs}
	happened := map[string]int{}
	for range testlevel.Count(40, 150) {
		happened[w.change()]++
		for range 6 {
			w.ask()
		}
	}
	s := w.cache.Stats()
	t.Logf("%v, %+v", happened, s)
	if s.Hits < hits || s.Extended < 20 || s.Misses < 20 {
		t.Errorf("%+v", s)
	}
	for _, what := range []string{"events", "late events", "an import", "a merge", "an erasure"} {
		if happened[what] == 0 {
			t.Errorf("%s never happened", what)
		}
	}
}
