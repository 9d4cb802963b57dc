package historytest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// seriesWorld is random events, merges, entries and exits, stored and as they
// were made.
type seriesWorld struct {
	s       query.History
	rows    []seriesEvent
	aliases []query.Alias
	moves   []query.Transition
	next    int64
}

type seriesEvent struct {
	account    uint64
	offset     int64
	ordinal    uint32
	timeMs     int64
	typ        string
	properties string
}

const seriesPartition = 3

func newSeriesWorld(t *testing.T, open Open, rng *rand.Rand) *seriesWorld {
	w := &seriesWorld{s: open(t)}
	for range 4 {
		w.add(t, rng, 250)
	}
	return w
}

// add stores that many records in one batch.
func (w *seriesWorld) add(t *testing.T, rng *rand.Rand, records int) {
	t.Helper()
	b := &query.Batch{Partition: seriesPartition, From: w.next, To: w.next + int64(records)}
	base := time.Date(2024, 12, 20, 0, 0, 0, 0, time.UTC).UnixMilli()
	for o := w.next; o < b.To; o++ {
		account := uint64(1 + rng.IntN(2))
		for i := range rng.IntN(4) {
			// About half of them at the edge of a span.
			at := base + rng.Int64N(90*86_400_000)
			if rng.IntN(2) == 0 {
				at = query.Granularity([]query.Granularity{query.Hour, query.Day, query.Week, query.Month}[rng.IntN(4)]).Start(at) - int64(rng.IntN(2))
			}
			if rng.IntN(20) == 0 {
				at = -rng.Int64N(40 * 86_400_000)
			}
			e := seriesEvent{account, o, uint32(rng.IntN(12)), at, fmt.Sprintf("t%d", rng.IntN(3)),
				[]string{"", `{"campaign_id":"a"}`, `{"campaign_id":"b","url":"u"}`, `{"campaign_id":1}`, `{"x":{"y":"a"}}`}[rng.IntN(5)]}
			w.rows = append(w.rows, e)
			b.Account, b.Offset, b.Index = append(b.Account, account), append(b.Offset, o), append(b.Index, uint32(i))
			b.Ordinal, b.TimeMs = append(b.Ordinal, e.ordinal), append(b.TimeMs, at)
			b.EventType.Append([]byte(e.typ))
			b.Properties.Append([]byte(e.properties))
			b.IdempotencyKey.Append([]byte("key"))
		}
		if rng.IntN(25) == 0 {
			b.Aliases = append(b.Aliases, query.Alias{Account: account, Offset: o, Ordinal: uint32(rng.IntN(12)), Winner: uint32(rng.IntN(12))})
		}
		if rng.IntN(3) == 0 {
			b.Transitions = append(b.Transitions, query.Transition{Account: account, Key: query.TransitionKey{Offset: o, Seq: 1}, Segment: "s",
				Ordinal: uint32(rng.IntN(12)), Entered: rng.IntN(2) == 0, Cause: segment.CauseEvent, AtMs: o})
		}
	}
	w.aliases, w.moves, w.next = append(w.aliases, b.Aliases...), append(w.moves, b.Transitions...), b.To
	if err := w.s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	// What comes twice is there once.
	if err := w.s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

// winner is whom an ordinal's events count for.
func (w *seriesWorld) winner(account uint64, o uint32, upTo int64) uint32 {
	out := o
	for _, a := range w.aliases {
		if a.Account == account && a.Ordinal == o && a.Offset < upTo {
			out = a.Winner
		}
	}
	return out
}

func propertyText(properties string, path []string) string {
	var v any
	if properties == "" || json.Unmarshal([]byte(properties), &v) != nil {
		return ""
	}
	for _, k := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		v = m[k]
	}
	s, _ := v.(string)
	return s
}

// matching are the events that a question asks for.
func (w *seriesWorld) matching(account uint64, upTo int64, types []string, where []segment.Predicate) (out []seriesEvent) {
	for _, e := range w.rows {
		if e.account != account || e.offset >= upTo || len(types) > 0 && !slices.Contains(types, e.typ) ||
			slices.ContainsFunc(where, func(p segment.Predicate) bool { return !p.Match([]byte(e.properties), 0) }) {
			continue
		}
		e.ordinal = w.winner(account, e.ordinal, upTo)
		out = append(out, e)
	}
	return out
}

func campaignIs(id string) []segment.Predicate {
	return []segment.Predicate{{Path: []string{"campaign_id"}, Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueString, Str: id}}}}
}

// draw draws a question's common parts.
func draw(rng *rand.Rand, next int64) (cut query.Cut, account uint64, types []string, where []segment.Predicate, by []string) {
	cut = query.Cut{Partition: seriesPartition, UpTo: []int64{next, rng.Int64N(next)}[rng.IntN(2)]}
	account = uint64(1 + rng.IntN(2))
	for i := range rng.IntN(3) {
		types = append(types, fmt.Sprintf("t%d", i))
	}
	if rng.IntN(2) == 0 {
		where = campaignIs([]string{"a", "b", "none"}[rng.IntN(3)])
	}
	by = [][]string{nil, {"campaign_id"}, {"x", "y"}}[rng.IntN(3)]
	return
}

// SeriesEqualsScan compares series and deeds of random questions with a
// plain look at all events (S1): through aliases, at any cut, apart by account,
// to the millisecond at the edges of spans.
func SeriesEqualsScan(t *testing.T, open Open, questions int) {
	rng := rand.New(rand.NewPCG(41, 1))
	w := newSeriesWorld(t, open, rng)
	found := 0
	for range questions {
		cut, account, types, where, by := draw(rng, w.next)
		g := []query.Granularity{query.Whole, query.Hour, query.Day, query.Week, query.Month}[rng.IntN(5)]
		from := w.rows[rng.IntN(len(w.rows))].timeMs
		q := query.SeriesQuery{Cut: cut, Account: account, Types: types, FromMs: from, ToMs: from + rng.Int64N(60*86_400_000), Granularity: g, Where: where, By: by}
		type key struct {
			typ, value string
			start      int64
		}
		events, profiles := map[key]uint64{}, map[key]map[uint32]bool{}
		for _, e := range w.matching(account, cut.UpTo, types, where) {
			if e.timeMs < q.FromMs || e.timeMs >= q.ToMs {
				continue
			}
			k := key{e.typ, propertyText(e.properties, by), g.Start(e.timeMs)}
			events[k]++
			if profiles[k] == nil {
				profiles[k] = map[uint32]bool{}
			}
			profiles[k][e.ordinal] = true
		}
		var want []query.SeriesRow
		for k, n := range events {
			want = append(want, query.SeriesRow{Type: k.typ, Value: k.value, StartMs: k.start, Events: n, Profiles: uint64(len(profiles[k]))})
		}
		slices.SortFunc(want, func(a, b query.SeriesRow) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Value, b.Value), cmp.Compare(a.StartMs, b.StartMs))
		})
		got, err := w.s.Series(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("S1: %+v:\nhistory %v\nscan    %v", q, got, want)
		}
		found += len(want)

		d := query.DeedsQuery{Cut: cut, Account: account, Types: append([]string{"t0"}, types...), Where: where, By: by, Ordinals: []uint32{1, 5, uint32(rng.IntN(12))}}
		deeds, err := w.s.Deeds(context.Background(), d)
		if err != nil {
			t.Fatal(err)
		}
		if wantDeeds := w.deeds(d); !slices.Equal(deeds, wantDeeds) {
			t.Fatalf("S1: %+v:\nhistory %v\nscan    %v", d, deeds, wantDeeds)
		}
	}
	if found < 3*questions {
		t.Errorf("only %d rows were compared", found)
	}
	if _, err := w.s.Deeds(context.Background(), query.DeedsQuery{Cut: query.Cut{UpTo: 1}, Ordinals: []uint32{1}}); err == nil {
		t.Error("deeds of no type are answered")
	}
}

func (w *seriesWorld) deeds(q query.DeedsQuery) []query.Deed {
	var out []query.Deed
	for _, e := range w.matching(q.Account, q.Cut.UpTo, q.Types, q.Where) {
		if !slices.Contains(q.Ordinals, e.ordinal) {
			continue
		}
		v := propertyText(e.properties, q.By)
		i := slices.IndexFunc(out, func(d query.Deed) bool { return d.Ordinal == e.ordinal && d.Type == e.typ && d.Value == v })
		if i < 0 {
			i = len(out)
			out = append(out, query.Deed{Ordinal: e.ordinal, Type: e.typ, Value: v, FirstMs: e.timeMs, LastMs: e.timeMs})
		}
		d := &out[i]
		d.Events++
		d.FirstMs, d.LastMs = min(d.FirstMs, e.timeMs), max(d.LastMs, e.timeMs)
	}
	slices.SortFunc(out, func(a, b query.Deed) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Value, b.Value))
	})
	return out
}

// SeriesIsBounded (Q1): an answer with too many rows is an error.
func SeriesIsBounded(t *testing.T, open Open) {
	s := open(t)
	b := &query.Batch{To: query.MaxSeriesRows + 1}
	for o := range b.To {
		b.Account, b.Offset, b.Index = append(b.Account, 1), append(b.Offset, o), append(b.Index, 0)
		b.Ordinal, b.TimeMs = append(b.Ordinal, 1), append(b.TimeMs, o*3_600_000)
		b.EventType.Append([]byte("e"))
		b.Properties.Append(nil)
		b.IdempotencyKey.Append(nil)
	}
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	q := query.SeriesQuery{Cut: query.Cut{UpTo: b.To}, Account: 1, ToMs: 1 << 60, Granularity: query.Hour}
	if _, err := s.Series(context.Background(), q); !errors.Is(err, query.ErrSeriesTooLarge) {
		t.Errorf("%d rows: %v", b.To, err)
	}
	q.Granularity = query.Day
	if got, err := s.Series(context.Background(), q); err != nil || len(got) != (query.MaxSeriesRows+24)/24 {
		t.Errorf("by day: %d rows, %v", len(got), err)
	}
}
