package historytest

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// MovesEqualsScan compares counts of entries and exits with a plain look at all of
// them: by segment or of one, by spans of time, to the millisecond at their edges.
func MovesEqualsScan(t *testing.T, open Open) {
	s := open(t)
	rng := rand.New(rand.NewPCG(51, 52))
	base := time.Date(2025, 1, 30, 0, 0, 0, 0, time.UTC).UnixMilli()
	names := []string{"s", "é", "a segment of 20 byte"}
	grains := []query.Granularity{query.Whole, query.Hour, query.Day, query.Week, query.Month}
	b := &query.Batch{Partition: 1, To: 1000}
	for o := range b.To {
		at := base + rng.Int64N(60*86_400_000)
		if rng.IntN(2) == 0 {
			at = grains[1+rng.IntN(4)].Start(at) - int64(rng.IntN(2))
		}
		b.Transitions = append(b.Transitions, query.Transition{Account: 1 + rng.Uint64N(2), Key: query.TransitionKey{Offset: o, Seq: 1},
			Segment: names[rng.IntN(3)], Ordinal: uint32(rng.IntN(9)), Entered: rng.IntN(2) == 0, Cause: segment.CauseEvent, AtMs: at})
	}
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	for range 60 {
		q := query.MovesQuery{Cut: query.Cut{Partition: 1, UpTo: 1 + rng.Int64N(b.To)}, Account: 1 + rng.Uint64N(2), Granularity: grains[rng.IntN(5)],
			Segment: append(names, "", "no such")[rng.IntN(5)], FromMs: base + rng.Int64N(10*86_400_000)}
		q.ToMs = q.FromMs + rng.Int64N(50*86_400_000)
		var want []query.MovesRow
		for _, x := range b.Transitions {
			if x.Account != q.Account || x.Key.Offset >= q.Cut.UpTo || q.Segment != "" && x.Segment != q.Segment || x.AtMs < q.FromMs || x.AtMs >= q.ToMs {
				continue
			}
			at := q.Granularity.Start(x.AtMs)
			i := slices.IndexFunc(want, func(r query.MovesRow) bool { return r.Segment == x.Segment && r.StartMs == at })
			if i < 0 {
				i, want = len(want), append(want, query.MovesRow{Segment: x.Segment, StartMs: at})
			}
			if x.Entered {
				want[i].Entered++
			} else {
				want[i].Exits++
			}
		}
		slices.SortFunc(want, func(a, b query.MovesRow) int {
			return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.StartMs, b.StartMs))
		})
		got, err := s.Moves(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v:\nhistory %v\nscan    %v", q, got, want)
		}
	}
}
