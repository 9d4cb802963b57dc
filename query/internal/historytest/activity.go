package historytest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// AliasChainInOneRecord: one event can merge 1 into 2 and then 2 into 3;
// its last word counts, at any cut.
func AliasChainInOneRecord(t *testing.T, open Open) {
	s := open(t)
	b := &query.Batch{To: 3}
	for i, ordinal := range []uint32{1, 2, 4} {
		b.Account = append(b.Account, 9)
		b.Offset = append(b.Offset, int64(i))
		b.Index = append(b.Index, 0)
		b.Ordinal = append(b.Ordinal, ordinal)
		b.TimeMs = append(b.TimeMs, 100)
		b.EventType.Append([]byte("e"))
		b.Properties.Append(nil)
		b.IdempotencyKey.Append(nil)
	}
	alias := func(offset int64, ordinal, winner uint32) {
		b.Aliases = append(b.Aliases, query.Alias{Account: 9, Offset: offset, Ordinal: ordinal, Winner: winner})
	}
	alias(1, 1, 2)
	alias(1, 2, 3)
	alias(1, 1, 3)
	alias(2, 3, 4)
	alias(2, 1, 4)
	alias(2, 2, 4)
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		upTo, atLeast int64
		want          string
	}{{1, 1, "{1}"}, {2, 1, "{3}"}, {2, 2, "{3}"}, {2, 3, "{}"}, {3, 3, "{4}"}} {
		got, err := s.Activity(context.Background(), query.ActivityQuery{
			Cut: query.Cut{UpTo: c.upTo}, Account: 9, Leaf: CountLeaf("e", c.atLeast), AtMs: 100})
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != c.want {
			t.Errorf("at cut %d, at least %d: %v, want %s", c.upTo, c.atLeast, got, c.want)
		}
	}
}

// AccountsAndPartitionsAreApart: a question sees its account and its
// partition only, aliases included.
func AccountsAndPartitionsAreApart(t *testing.T, open Open) {
	s := open(t)
	for partition := range 2 {
		for account := range uint64(2) {
			position, err := s.Position(context.Background(), partition)
			if err != nil {
				t.Fatal(err)
			}
			b := &query.Batch{Partition: partition, From: position, To: position + 1, Account: []uint64{account}, Offset: []int64{position},
				Index: []uint32{0}, Ordinal: []uint32{5}, TimeMs: []int64{0},
				Aliases: []query.Alias{{Account: account, Offset: position, Ordinal: 5, Winner: uint32(10*partition) + uint32(account)}}}
			b.EventType.Append([]byte("e"))
			b.Properties.Append(nil)
			b.IdempotencyKey.Append(nil)
			if err := s.Append(context.Background(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	for partition := range 2 {
		for account := range uint64(3) {
			got, err := s.Activity(context.Background(), query.ActivityQuery{
				Cut: query.Cut{Partition: partition, UpTo: 2}, Account: account, Leaf: CountLeaf("e", 1)})
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("{%d}", uint64(10*partition)+account)
			if account == 2 {
				want = "{}"
			}
			if got.String() != want {
				t.Errorf("partition %d, account %d: %v, want %s", partition, account, got, want)
			}
		}
	}
}

// Unsupported: what Parse would have refused is an error, not a panic.
func Unsupported(t *testing.T, open Open) {
	s := open(t)
	compare := segment.Compare{Op: segment.OpGe, Micros: Micros(1)}
	for want, leaf := range map[string]*segment.Activity{
		"comparison contains": {Event: "e", Count: &segment.Compare{Op: segment.OpContains, Micros: Micros(1)}},
		"aggregate median":    {Event: "e", Aggregate: &segment.Aggregate{Fn: "median", Property: []string{"x"}, Compare: compare}},
		"operator like":       {Event: "e", Count: &compare, Where: []segment.Predicate{{Path: []string{"x"}, Op: "like"}}},
	} {
		if _, err := s.Activity(context.Background(), query.ActivityQuery{Leaf: leaf}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// CountLeaf is the condition that a profile did the event so often.
func CountLeaf(event string, atLeast int64) *segment.Activity {
	return &segment.Activity{Event: event, Did: true, Count: &segment.Compare{Op: segment.OpGe, Micros: Micros(atLeast)}}
}
