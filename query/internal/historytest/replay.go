package historytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// Replays compares replays of random histories with what a naive filter
// leaves of them: at random cuts, with the merges below the cut, at the edges of
// AfterMs, with filters, in pieces of a few rows.
func Replays(t *testing.T, open Open, histories int) {
	if testlevel.Long() {
		histories = 60
	}
	if testlevel.Quick() {
		histories = 3
	}
	rows, filtered, mapped := 0, 0, 0
	for seed := range uint64(histories) {
		w := drawWorld(seed+1, 100)
		s := open(t)
		if err := s.Append(context.Background(), &query.Batch{To: 100}); err != nil {
			t.Fatal(err)
		}
		if err := s.Append(context.Background(), &w.batch); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			q := w.drawReplay()
			want, moved := w.naiveReplay(q)
			got := replayed(t, s, q)
			if !slices.Equal(got, want) {
				t.Fatalf("S1: seed %d, %+v: %d rows, want %d\ngot  %q\nwant %q", seed+1, q, len(got), len(want), got, want)
			}
			rows += len(got)
			mapped += moved
			if len(q.Where) > 0 {
				filtered += len(got)
			}
		}
	}
	t.Logf("%d rows, %d of filtered replays, %d of merged profiles", rows, filtered, mapped)
	if filtered < 40 || mapped < 40 {
		t.Fatal("the replays hit too little to tell anything")
	}
}

func (w *world) drawReplay() query.ReplayQuery {
	a := w.gen.Activity()
	q := query.ReplayQuery{Account: w.account, EventType: a.Event, Properties: w.rng.IntN(2) == 0, Keys: w.rng.IntN(2) == 0,
		Cut: query.Cut{UpTo: w.first + w.rng.Int64N(w.end-w.first+1)}}
	if w.rng.IntN(3) == 0 {
		q.Cut.UpTo = w.end
	}
	if w.rng.IntN(5) == 0 {
		q.EventType = segment.AnyEvent
	}
	if w.rng.IntN(2) == 0 {
		after := w.rows[w.rng.IntN(len(w.rows))].event.TimeMs + w.rng.Int64N(3) - 1
		q.AfterMs = &after
	}
	if a.Aggregate != nil {
		q.Number = a.Aggregate.Property
	}
	for _, p := range a.Where {
		if p.Op != segment.OpInLastDays && p.Op != segment.OpNotInLastDays {
			q.Where = append(q.Where, p)
		}
	}
	return q
}

// naiveReplay is the answer as texts in order, and how many of its rows are of
// profiles that were merged since.
func (w *world) naiveReplay(q query.ReplayQuery) (rows []string, moved int) {
	root := make([]int, len(w.souls))
	for i := range root {
		root[i] = i
	}
	for _, m := range w.merges {
		if m.Offset < q.Cut.UpTo {
			root[m.Ordinal] = int(m.Winner)
		}
	}
	leaf := CountLeaf(q.EventType, 1)
	leaf.Where = q.Where
	matches := &segment.Node{Kind: segment.KindActivity, Activity: leaf}
	for i, r := range w.rows {
		alone := &segment.NaiveProfile{Events: []segment.NaiveEvent{r.event}}
		if r.offset >= q.Cut.UpTo || q.AfterMs != nil && r.event.TimeMs <= *q.AfterMs || !matches.Naive(alone, r.event.TimeMs, nil) {
			continue
		}
		properties := ""
		if q.Properties {
			properties = string(r.event.Properties)
		}
		if q.Keys {
			properties += " " + string(r.storedKey())
		}
		if q.Number != nil {
			properties += fmt.Sprintf(" %d", naiveMicros(r.event.Properties, q.Number))
		}
		rows = append(rows, fmt.Sprintf("%d %d %s", root[r.soul], r.event.TimeMs, properties))
		if w.batch.Ordinal[i] != uint32(root[r.soul]) {
			moved++
		}
	}
	slices.Sort(rows)
	return rows, moved
}

// replayed is the store's answer as texts in order.
func replayed(t *testing.T, s query.History, q query.ReplayQuery) (rows []string) {
	t.Helper()
	err := s.Replay(context.Background(), q, func(b *query.ReplayBlock) error {
		if n := len(b.Ordinal); n == 0 || len(b.TimeMs) != n || q.Properties && len(b.Properties.Ends) != n || !q.Properties && len(b.Properties.Ends) != 0 {
			return fmt.Errorf("a block of %d ordinals, %d times and %d properties", n, len(b.TimeMs), len(b.Properties.Ends))
		}
		if n, keys := len(b.Ordinal), len(b.IdempotencyKey.Ends); q.Keys && keys != n || !q.Keys && keys != 0 {
			return fmt.Errorf("a block of %d ordinals and %d keys", n, keys)
		}
		if n, numbers := len(b.Ordinal), len(b.Micros); q.Number != nil && numbers != n || q.Number == nil && numbers != 0 {
			return fmt.Errorf("a block of %d ordinals and %d numbers", n, numbers)
		}
		for i, o := range b.Ordinal {
			properties := ""
			if q.Properties {
				properties = string(b.Properties.At(i))
			}
			if q.Keys {
				properties += " " + string(b.IdempotencyKey.At(i))
			}
			if q.Number != nil {
				properties += fmt.Sprintf(" %d", b.Micros[i])
			}
			rows = append(rows, fmt.Sprintf("%d %d %s", o, b.TimeMs[i], properties))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(rows)
	return rows
}

// ReplayRefusesFiltersOfTheInstant: a replay has no instant to judge at.
func ReplayRefusesFiltersOfTheInstant(t *testing.T, open Open) {
	s := open(t)
	for _, op := range []segment.Op{segment.OpInLastDays, segment.OpNotInLastDays} {
		err := s.Replay(context.Background(), query.ReplayQuery{EventType: "e", Where: []segment.Predicate{
			{Path: []string{"a"}, Op: segment.OpExists}, {Path: []string{"b"}, Op: op, WindowMs: 1000}}},
			func(*query.ReplayBlock) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "filter 1 is "+string(op)) {
			t.Errorf("%s: got %v", op, err)
		}
	}
}

// naiveMicros is the number behind a path, read by another decoder.
func naiveMicros(properties []byte, path []string) int64 {
	var at any
	d := json.NewDecoder(bytes.NewReader(properties))
	d.UseNumber()
	if len(properties) == 0 || d.Decode(&at) != nil {
		return query.NoMicros
	}
	for _, key := range path {
		object, _ := at.(map[string]any)
		at = object[key]
	}
	n, ok := at.(json.Number)
	if !ok {
		return query.NoMicros
	}
	f, err := n.Float64()
	if err != nil {
		return query.NoMicros
	}
	if m, ok := segment.MicrosOf(f); ok {
		return m
	}
	return query.NoMicros
}
