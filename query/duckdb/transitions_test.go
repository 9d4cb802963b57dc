package duckdb

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
	"github.com/musterhq/muster/segment"
)

func TestTransitionsPages(t *testing.T) {
	t.Parallel()
	historytest.TransitionsPages(t, openHistory)
}

// TestL2ManyTransitionsOfOneRecord: a record may move more profiles than a row
// group has rows; they are there once, in order, whatever is appended again.
func TestL2ManyTransitionsOfOneRecord(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	const many = fullGroup + 5000
	b := &query.Batch{To: 3}
	for o := range int64(3) {
		n := 1
		if o == 1 {
			n = many
		}
		for seq := range n {
			b.Transitions = append(b.Transitions, query.Transition{Account: 1, Key: query.TransitionKey{Offset: o, Seq: uint32(seq + 1)},
				Segment: fmt.Sprintf("segment number %d", seq/1000%2), Ordinal: uint32(seq), Entered: true, Cause: segment.CauseExpiry})
		}
	}
	for range 2 {
		if err := s.Append(context.Background(), b); err != nil {
			t.Fatal(err)
		}
	}
	b.To = 4
	b.Transitions = append(b.Transitions, query.Transition{Account: 1, Key: query.TransitionKey{Offset: 3, Seq: 1}, Segment: "segment number 0"})
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if n := scalar(t, s, "SELECT count(*) FROM transitions"); n != int64(len(b.Transitions)) {
		t.Fatalf("%d transitions, want %d", n, len(b.Transitions))
	}
	q := query.TransitionsQuery{Cut: query.Cut{UpTo: 4}, Account: 1, Segment: "segment number 0", After: query.TransitionKey{Offset: 1, Seq: many - 3}, Limit: 10}
	got, err := s.Transitions(context.Background(), q)
	want := b.Transitions[:0:0]
	for _, x := range b.Transitions[many-2:] {
		if x.Segment == q.Segment {
			want = append(want, x)
		}
	}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %v, %v\nwant %v", got, err, want)
	}
}

func TestProfileTransitionsPages(t *testing.T) {
	t.Parallel()
	historytest.ProfileTransitionsPages(t, openHistory)
}
