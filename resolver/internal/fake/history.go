package fake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// History is a history that survives every crash and fails at times,
// before or after it stored a batch.
type History struct {
	// Mu guards all else once a node uses the history.
	Mu sync.Mutex
	// Rand decides what fails: Failures per cent of the calls.
	Rand     *rand.Rand
	Failures int
	// Stored is its position: it has what the records below led to.
	Stored  int64
	Rows    []Row
	Aliases []query.Alias
	Moved   []query.Transition
}

// Row is one event.
type Row struct {
	Offset     int64
	Index      uint32
	Ordinal    uint32
	Key        string
	TimeMs     int64
	Type       string
	Properties []byte
	Sent       bool // see query.SentKey
}

// ErrHistory is what a failure answers, and what asks for more than tests need.
var ErrHistory = errors.New("model history fails")

func (h *History) Position(context.Context, int) (int64, error) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return h.Stored, nil
}

func (h *History) Append(_ context.Context, b *query.Batch) error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.Rand.IntN(100) < h.Failures {
		return ErrHistory
	}
	if b.From > h.Stored {
		return fmt.Errorf("%w: batch from %d, position is %d", query.ErrGap, b.From, h.Stored)
	}
	for i := range b.Rows() {
		if b.Offset[i] >= h.Stored {
			typ := string(b.EventType.At(i))
			key, sent := query.SentKey(typ, string(b.IdempotencyKey.At(i)))
			h.Rows = append(h.Rows, Row{b.Offset[i], b.Index[i], b.Ordinal[i], key, b.TimeMs[i], typ, bytes.Clone(b.Properties.At(i)), sent})
		}
	}
	for _, a := range b.Aliases {
		if a.Offset >= h.Stored {
			h.Aliases = append(h.Aliases, a)
		}
	}
	for _, m := range b.Transitions {
		if m.Key.Offset >= h.Stored {
			h.Moved = append(h.Moved, m)
		}
	}
	h.Stored = max(h.Stored, b.To)
	if h.Rand.IntN(100) < h.Failures {
		return ErrHistory
	}
	return nil
}

// Lose takes everything out of the history, or what came last.
func (h *History) Lose(rng *rand.Rand) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.Stored = Pick(rng, 0, h.Stored/2)
	h.Rows = slices.DeleteFunc(h.Rows, func(r Row) bool { return r.Offset >= h.Stored })
	h.Aliases = slices.DeleteFunc(h.Aliases, func(a query.Alias) bool { return a.Offset >= h.Stored })
	h.Moved = slices.DeleteFunc(h.Moved, func(m query.Transition) bool { return m.Key.Offset >= h.Stored })
}

func (h *History) Timeline(context.Context, query.TimelineQuery) ([]query.TimelineEntry, error) {
	return nil, ErrHistory
}

func (h *History) Activity(context.Context, query.ActivityQuery) (*roaring.Bitmap, error) {
	return nil, ErrHistory
}

func (h *History) Replay(_ context.Context, q query.ReplayQuery, fn func(*query.ReplayBlock) error) error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.Rand.IntN(100) < h.Failures {
		return ErrHistory
	}
	roots := h.Roots(q.Cut)
	var b query.ReplayBlock
	for _, r := range h.Rows {
		if r.Offset >= q.Cut.UpTo || !segment.OfType(q.EventType, r.Type, r.Sent) || q.AfterMs != nil && r.TimeMs <= *q.AfterMs {
			continue
		}
		if slices.ContainsFunc(q.Where, func(p segment.Predicate) bool { return !p.Match(r.Properties, 0) }) {
			continue
		}
		b.Ordinal, b.TimeMs = append(b.Ordinal, roots(r.Ordinal)), append(b.TimeMs, r.TimeMs)
		b.Properties.Append(r.Properties)
		if q.Number != nil {
			b.Micros = append(b.Micros, query.MicrosAt(r.Properties, q.Number))
		}
	}
	return fn(&b)
}

// Clone is the history at one moment. The lock is held.
func (h *History) Clone() *History {
	return &History{Rand: h.Rand, Failures: h.Failures, Stored: h.Stored,
		Rows: slices.Clone(h.Rows), Aliases: slices.Clone(h.Aliases), Moved: slices.Clone(h.Moved)}
}

// Roots returns which profile an ordinal's events belong to at a cut.
func (h *History) Roots(cut query.Cut) func(uint32) uint32 {
	winners := map[uint32]uint32{}
	for _, a := range h.Aliases {
		if a.Offset < cut.UpTo {
			winners[a.Ordinal] = a.Winner
		}
	}
	return func(o uint32) uint32 {
		if w, ok := winners[o]; ok {
			return w
		}
		return o
	}
}

func (h *History) Transitions(context.Context, query.TransitionsQuery) ([]query.Transition, error) {
	return nil, ErrHistory
}

func (h *History) ProfileTransitions(context.Context, query.ProfileTransitionsQuery) ([]query.Transition, error) {
	return nil, ErrHistory
}

func (h *History) Series(context.Context, query.SeriesQuery) ([]query.SeriesRow, error) {
	return nil, ErrHistory
}

func (h *History) Moves(context.Context, query.MovesQuery) ([]query.MovesRow, error) {
	return nil, nil
}

func (h *History) Deeds(context.Context, query.DeedsQuery) ([]query.Deed, error) {
	return nil, ErrHistory
}

func (h *History) Erase(_ context.Context, q query.EraseQuery) error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if h.Rand.IntN(100) < h.Failures {
		return ErrHistory
	}
	if h.Stored < q.Cut.UpTo {
		return fmt.Errorf("%w: erase below %d, position is %d", query.ErrGap, q.Cut.UpTo, h.Stored)
	}
	gone := func(o uint32, offset int64) bool { return offset < q.Cut.UpTo && slices.Contains(q.Ordinals, o) }
	// The slices may be shared with a clone.
	h.Rows = slices.DeleteFunc(slices.Clone(h.Rows), func(r Row) bool { return gone(r.Ordinal, r.Offset) })
	h.Aliases = slices.DeleteFunc(slices.Clone(h.Aliases), func(a query.Alias) bool { return gone(a.Ordinal, a.Offset) || gone(a.Winner, a.Offset) })
	h.Moved = slices.DeleteFunc(slices.Clone(h.Moved), func(m query.Transition) bool { return gone(m.Ordinal, m.Key.Offset) })
	if h.Rand.IntN(100) < h.Failures {
		return ErrHistory
	}
	return nil
}

func (h *History) Usage(context.Context) (query.Usage, error) { return query.Usage{}, nil }

func (h *History) Close() error { return nil }

// Same compares what two histories hold.
func (h *History) Same(o *History) error {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	switch {
	case fmt.Sprint(h.Rows) != fmt.Sprint(o.Rows):
		return fmt.Errorf("history has %d rows, had %d", len(h.Rows), len(o.Rows))
	case fmt.Sprint(h.Aliases) != fmt.Sprint(o.Aliases):
		return errors.New("history has other aliases")
	case fmt.Sprint(h.Moved) != fmt.Sprint(o.Moved):
		return fmt.Errorf("history has %d entries and exits, had %d", len(h.Moved), len(o.Moved))
	}
	return nil
}
