package duckdb

import (
	"context"
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// BenchmarkReplay reads the events of one type of seven, of 10 M rows (1 M
// unless MUSTER_LONG is set), beside the questions over the same events.
func BenchmarkReplay(b *testing.B) {
	s, batch := shopStore(b)
	ctx := context.Background()
	at, begin := batch.TimeMs[0], int64(1_700_000_000_000)
	after := at - (at-begin)/10
	cut := query.Cut{UpTo: batch.From}
	dear := segment.Predicate{Path: []string{"value"}, Op: segment.OpGe, Values: []segment.Value{{Kind: segment.ValueNumber, Num: 250}}}
	german := segment.Predicate{Path: []string{"country"}, Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueString, Str: "Germany"}}}
	compare := segment.Compare{Op: segment.OpGe, Micros: []segment.Int128{int128.From(3 * segment.MicrosPerUnit)}}
	for _, c := range []struct {
		name string
		leaf segment.Activity
	}{
		{"ask/count", segment.Activity{Count: &compare}},
		{"ask/count/where", segment.Activity{Count: &compare, Where: []segment.Predicate{german, dear}}},
		{"ask/sum", segment.Activity{Aggregate: &segment.Aggregate{Fn: segment.FnSum, Property: []string{"value"}, Compare: compare}}},
	} {
		c.leaf.Event = "item_purchased"
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				if set, err := s.Activity(ctx, query.ActivityQuery{Cut: cut, Account: 1, Leaf: &c.leaf, AtMs: at}); err != nil || set.IsEmpty() {
					b.Fatal(set, err)
				}
			}
		})
	}
	for _, c := range []struct {
		name string
		q    query.ReplayQuery
	}{
		{"replay", query.ReplayQuery{}},
		{"replay/last-tenth", query.ReplayQuery{AfterMs: &after}},
		{"replay/where", query.ReplayQuery{Where: []segment.Predicate{german, dear}}},
		{"replay/properties", query.ReplayQuery{Properties: true}},
		{"replay/properties/where", query.ReplayQuery{Properties: true, Where: []segment.Predicate{german, dear}}},
	} {
		c.q.Cut, c.q.Account, c.q.EventType = cut, 1, "item_purchased"
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			rows, cpu := 0, cpuNanos()
			for range b.N {
				rows = 0
				err := s.Replay(ctx, c.q, func(block *query.ReplayBlock) error {
					rows += len(block.Ordinal)
					return nil
				})
				if err != nil || rows == 0 {
					b.Fatal(rows, err)
				}
			}
			b.ReportMetric(float64(cpuNanos()-cpu)/float64(b.N)/1e6, "cpu-ms/op")
			b.ReportMetric(float64(rows), "rows")
		})
	}
}

// BenchmarkTransitions appends a million transitions in one batch, and reads
// pages of them.
func BenchmarkTransitions(b *testing.B) {
	const each = 1_000_000
	s := openBench(b)
	ctx := context.Background()
	batch := &query.Batch{Transitions: make([]query.Transition, each)}
	b.Run("append", func(b *testing.B) {
		cpu := cpuNanos()
		for range b.N {
			batch.From, batch.To = batch.To, batch.To+1
			for i := range batch.Transitions {
				batch.Transitions[i] = query.Transition{Account: 1, Key: query.TransitionKey{Offset: batch.From, Seq: uint32(i + 1)},
					Segment: fmt.Sprintf("01J8ZQK3W%016d", i%20), Ordinal: uint32(i), Entered: i%3 == 0,
					Cause: segment.CauseExpiry, AtMs: 1_700_000_000_000 + batch.From*1000}
			}
			if err := s.Append(ctx, batch); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(cpuNanos()-cpu)/float64(b.N)/each, "cpu-ns/row")
	})
	for batch.To < 10 {
		batch.From, batch.To = batch.To, batch.To+1
		for i := range batch.Transitions {
			batch.Transitions[i].Key.Offset = batch.From
		}
		if err := s.Append(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		q    query.TransitionsQuery
	}{
		{"first-page", query.TransitionsQuery{}},
		{"last-page", query.TransitionsQuery{After: query.TransitionKey{Offset: batch.To - 1, Seq: each - 5000}}},
		{"segment/first-page", query.TransitionsQuery{Segment: fmt.Sprintf("01J8ZQK3W%016d", 7)}},
		{"segment/last-page", query.TransitionsQuery{Segment: fmt.Sprintf("01J8ZQK3W%016d", 7), After: query.TransitionKey{Offset: batch.To - 1, Seq: each - 5000}}},
		{"segment/none", query.TransitionsQuery{Segment: "01J8ZQK3W"}},
	} {
		c.q.Cut.UpTo, c.q.Account, c.q.Limit = batch.To, 1, 100
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				if _, err := s.Transitions(ctx, c.q); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(batch.To)*each, "stored")
		})
	}
}
