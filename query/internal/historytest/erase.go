package historytest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/query"
)

// EraseLeavesTheOthers erases profiles of a random history, twice, and
// appends on: nothing of them is left below the cut, also of those merged into
// them, all else stays, and rows that come again stay away (L2).
func EraseLeavesTheOthers(t *testing.T, open Open) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(5, 6))
	w := newSeriesWorld(t, open, rng)
	before := w.next
	gone := []uint32{2, 7}
	q := query.EraseQuery{Cut: query.Cut{Partition: seriesPartition, UpTo: before}, Account: 1, Ordinals: gone}
	late := q
	late.Cut.UpTo++
	if err := w.s.Erase(ctx, late); !errors.Is(err, query.ErrGap) {
		t.Fatalf("erased what is not stored yet: %v", err)
	}
	for range 2 {
		if err := w.s.Erase(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	was := len(w.rows)
	w.rows = slices.DeleteFunc(w.rows, func(e seriesEvent) bool { return e.account == 1 && slices.Contains(gone, e.ordinal) })
	w.aliases = slices.DeleteFunc(w.aliases, func(a query.Alias) bool {
		return a.Account == 1 && (slices.Contains(gone, a.Ordinal) || slices.Contains(gone, a.Winner))
	})
	w.moves = slices.DeleteFunc(w.moves, func(x query.Transition) bool { return x.Account == 1 && slices.Contains(gone, x.Ordinal) })
	if was == len(w.rows) {
		t.Fatal("nothing was to be erased")
	}
	w.compare(t)
	w.add(t, rng, 400)
	w.compare(t)
	// What is above the cut stays, of the same ordinals too, however often.
	if err := w.s.Erase(ctx, q); err != nil {
		t.Fatal(err)
	}
	w.compare(t)
}

// compare compares all that history holds with what it should.
func (w *seriesWorld) compare(t *testing.T) {
	t.Helper()
	ctx, cut := context.Background(), query.Cut{Partition: seriesPartition, UpTo: w.next}
	if u, err := w.s.Usage(ctx); err != nil || u.Rows != int64(len(w.rows)) {
		t.Fatalf("%d rows, want %d (%v)", u.Rows, len(w.rows), err)
	}
	for account := uint64(1); account <= 2; account++ {
		all := query.DeedsQuery{Cut: cut, Account: account, Types: []string{"t0", "t1", "t2"}, By: []string{"campaign_id"}}
		for o := range uint32(12) {
			all.Ordinals = append(all.Ordinals, o)
		}
		got, err := w.s.Deeds(ctx, all)
		if want := w.deeds(all); err != nil || !slices.Equal(got, want) {
			t.Fatalf("account %d: %v\nhistory %v\nwant    %v", account, err, got, want)
		}
		counted, err := w.s.Moves(ctx, query.MovesQuery{Cut: cut, Account: account, FromMs: 100, ToMs: 900})
		var entered, exits uint64
		for _, x := range w.moves {
			if x.Account == account && x.AtMs >= 100 && x.AtMs < 900 {
				if x.Entered {
					entered++
				} else {
					exits++
				}
			}
		}
		if err != nil || len(counted) != 1 || counted[0] != (query.MovesRow{Segment: "s", Entered: entered, Exits: exits}) {
			t.Fatalf("account %d: %v: moves %v, want %d and %d", account, err, counted, entered, exits)
		}
		moves, err := w.s.Transitions(ctx, query.TransitionsQuery{Cut: cut, Account: account, Limit: 10_000})
		want := slices.DeleteFunc(slices.Clone(w.moves), func(x query.Transition) bool { return x.Account != account })
		if err != nil || !slices.Equal(moves, want) {
			t.Fatalf("account %d: %v: %d transitions, want %d", account, err, len(moves), len(want))
		}
	}
}
