package historytest

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// TransitionsPages pages through the transitions of accounts and segments:
// each below the cut once, in order, whatever the page's size; ordinals as they
// were stored, whatever merged since.
func TransitionsPages(t *testing.T, open Open) {
	s := open(t)
	rng := rand.New(rand.NewPCG(21, 22))
	names := []string{"s", "a segment of 20 byte", "é", "s2"}
	var all []query.Transition
	for partition := range 2 {
		for from := int64(0); from < 400; from += 100 {
			b := &query.Batch{Partition: partition, From: from, To: from + 100}
			for o := from; o < b.To; o++ {
				for seq := range rng.IntN(8) {
					b.Transitions = append(b.Transitions, query.Transition{
						Account: 1 + rng.Uint64N(2), Key: query.TransitionKey{Offset: o, Seq: uint32(seq + 1)},
						Segment: names[rng.IntN(len(names))], Ordinal: rng.Uint32(), Entered: rng.IntN(2) == 0,
						Cause: segment.Cause(rng.IntN(256)), AtMs: int64(rng.Uint64())})
				}
				t := b.Transitions[max(0, len(b.Transitions)-1):]
				if len(t) > 0 {
					b.Aliases = append(b.Aliases, query.Alias{Account: t[0].Account, Offset: o, Ordinal: t[0].Ordinal, Winner: 3})
				}
			}
			if partition == 1 {
				all = append(all, b.Transitions...)
			}
			if err := s.Append(context.Background(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, limit := range []int{1, 7, 100, 10_000, 1 << 40} {
		for _, name := range append(names, "", "no such") {
			q := query.TransitionsQuery{Cut: query.Cut{Partition: 1, UpTo: 350}, Account: 2, Segment: name, Limit: limit}
			if limit == 1 {
				q.Cut.UpTo = 30
			}
			var want, got []query.Transition
			for _, x := range all {
				if x.Account == 2 && x.Key.Offset < q.Cut.UpTo && (name == "" || x.Segment == name) {
					want = append(want, x)
				}
			}
			if (len(want) == 0) != (name == "no such") {
				t.Fatalf("%q has %d transitions", name, len(want))
			}
			for {
				page, err := s.Transitions(context.Background(), q)
				if err != nil || len(page) > limit {
					t.Fatalf("a page of %d of %d, %v", len(page), limit, err)
				}
				if len(page) == 0 || len(got) > len(want) {
					break
				}
				got = append(got, page...)
				q.After = page[len(page)-1].Key
				if len(page) < min(limit, len(want)) && len(got) < len(want) {
					t.Fatalf("a page of %d of %d", len(page), limit)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("limit %d, segment %q: got %v\nwant %v", limit, name, got, want)
			}
		}
	}
	if page, err := s.Transitions(context.Background(), query.TransitionsQuery{Cut: query.Cut{UpTo: 9}, Account: 1}); err != nil || page != nil {
		t.Fatalf("without a limit: %v, %v", page, err)
	}
}
