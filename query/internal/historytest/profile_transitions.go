package historytest

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// ProfileTransitionsPages pages through the entries and exits of a profile and of those
// merged into it: each below the cut once, newest first, ties by position.
func ProfileTransitionsPages(t *testing.T, open Open) {
	s := open(t)
	rng := rand.New(rand.NewPCG(31, 32))
	var all []query.Transition
	for from := int64(0); from < 400; from += 100 {
		b := &query.Batch{Partition: 1, From: from, To: from + 100}
		for o := from; o < b.To; o++ {
			for seq := range rng.IntN(6) {
				b.Transitions = append(b.Transitions, query.Transition{
					Account: 1 + rng.Uint64N(2), Key: query.TransitionKey{Offset: o, Seq: uint32(seq + 1)}, Segment: []string{"s", "é", "a segment of 20 byte"}[rng.IntN(3)],
					Ordinal: uint32(rng.IntN(5)), Entered: rng.IntN(2) == 0, Cause: segment.Cause(rng.IntN(5)), AtMs: 1000 + rng.Int64N(30)})
			}
		}
		all = append(all, b.Transitions...)
		if err := s.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	for _, ordinals := range [][]uint32{{2}, {1, 4}, {9}, nil} {
		for _, limit := range []int{1, 7, 10_000} {
			q := query.ProfileTransitionsQuery{Cut: query.Cut{Partition: 1, UpTo: 350}, Account: 2, Ordinals: ordinals, Limit: limit}
			var want, got []query.Transition
			for _, x := range all {
				if x.Account == 2 && x.Key.Offset < q.Cut.UpTo && slices.Contains(ordinals, x.Ordinal) {
					want = append(want, x)
				}
			}
			slices.SortFunc(want, func(a, b query.Transition) int {
				return -cmp.Or(cmp.Compare(a.AtMs, b.AtMs), cmp.Compare(a.Key.Offset, b.Key.Offset), cmp.Compare(a.Key.Seq, b.Key.Seq))
			})
			if limit == 1 {
				want = want[:min(30, len(want))]
			}
			if len(want) == 0 && len(ordinals) > 0 && ordinals[0] != 9 {
				t.Fatal("nothing is compared")
			}
			for limit > 1 || len(got) < len(want) {
				page, err := s.ProfileTransitions(context.Background(), q)
				if err != nil || len(page) > limit {
					t.Fatalf("a page of %d of %d, %v", len(page), limit, err)
				}
				if len(page) == 0 || len(got) > len(want) {
					break
				}
				got = append(got, page...)
				last := page[len(page)-1]
				q.Before = &query.TransitionPlace{AtMs: last.AtMs, Key: last.Key}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%v, limit %d: got %v\nwant %v", ordinals, limit, got, want)
			}
		}
	}
}
