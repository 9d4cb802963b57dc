package historytest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/query"
)

// TimelinePages pages through timelines and finds each event of the
// profile below the cut once, newest first, ties by position.
func TimelinePages(t *testing.T, open Open) {
	s := open(t)
	rng := rand.New(rand.NewPCG(8, 9))
	type row struct {
		key     query.TimelineKey
		account uint64
		ordinal uint32
	}
	var all []row
	b := &query.Batch{Partition: 2, To: 600}
	for o := range int64(600) {
		for i := range rng.IntN(4) {
			r := row{query.TimelineKey{TimeMs: 1000 + rng.Int64N(40), Offset: o, Index: uint32(i)}, uint64(1 + rng.IntN(2)), uint32(rng.IntN(4))}
			all = append(all, r)
			b.Account = append(b.Account, r.account)
			b.Offset = append(b.Offset, o)
			b.Index = append(b.Index, uint32(i))
			b.Ordinal = append(b.Ordinal, r.ordinal)
			b.TimeMs = append(b.TimeMs, r.key.TimeMs)
			b.EventType.Append([]byte("e"))
			b.Properties.Append(fmt.Appendf(nil, `{"at":"%d.%d"}`, o, i))
			b.IdempotencyKey.Append(nil)
		}
	}
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, 3, 50, 10_000} {
		ordinals, cut := []uint32{1, 3}, query.Cut{Partition: 2, UpTo: 450}
		var want []query.TimelineKey
		for _, r := range all {
			if r.account == 2 && slices.Contains(ordinals, r.ordinal) && r.key.Offset < cut.UpTo {
				want = append(want, r.key)
			}
		}
		slices.SortFunc(want, func(a, b query.TimelineKey) int {
			return -cmp.Or(cmp.Compare(a.TimeMs, b.TimeMs), cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Index, b.Index))
		})
		if limit == 1 {
			want = want[:40]
		}
		var got []query.TimelineKey
		q := query.TimelineQuery{Cut: cut, Account: 2, Ordinals: ordinals, Limit: limit}
		for len(got) < len(want) {
			page, err := s.Timeline(context.Background(), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 || len(page) > limit {
				t.Fatalf("a page of %d", len(page))
			}
			for _, e := range page {
				if e.Properties != fmt.Sprintf(`{"at":"%d.%d"}`, e.Key.Offset, e.Key.Index) {
					t.Fatalf("%+v", e)
				}
				got = append(got, e.Key)
			}
			q.Before = &got[len(got)-1]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("limit %d: got %v\nwant %v", limit, got, want)
		}
		if limit != 1 {
			if page, err := s.Timeline(context.Background(), q); err != nil || len(page) != 0 {
				t.Fatal(page, err)
			}
		}
	}
}
