package api

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// memHistory is a history in memory that judges every condition naively. It can
// be told to fail or to wait, and counts.
type memHistory struct {
	mu       sync.Mutex
	rows     []memRow
	aliases  []query.Alias
	moves    []query.Transition
	position int64
	fail     error         // of questions
	hold     chan struct{} // questions wait until it is closed
	replays  chan struct{} // replays wait until it is closed: segments stay building
	asked    int           // activity questions
	read     int           // timelines
	held     int           // replays that wait or have waited
	expected int           // how often questions were expected
}

// ExpectQuestions counts.
func (h *memHistory) ExpectQuestions() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expected++
}

// holdReplays keeps segments on events building until release is called.
func (h *memHistory) holdReplays() (release func()) {
	hold := make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replays = hold
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.replays = nil
		close(hold)
	}
}

// waiting is how many replays were held.
func (h *memHistory) waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// questions is how many were asked since it was last called.
func (h *memHistory) questions() (asked, read int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked, read, h.asked, h.read = h.asked, h.read, 0, 0
	return asked, read
}

// transitions is what is stored of a segment.
func (h *memHistory) transitions(segment string) (out []query.Transition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.moves {
		if t.Segment == segment {
			out = append(out, t)
		}
	}
	return out
}

type memRow struct {
	account uint64
	ordinal uint32
	entry   query.TimelineEntry
}

func (h *memHistory) Position(context.Context, int) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.position, nil
}

func (h *memHistory) Append(_ context.Context, b *query.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.From > h.position {
		return errors.New("rows are missing")
	}
	for i := range b.Rows() {
		if b.Offset[i] >= h.position {
			typ := string(b.EventType.At(i))
			key, sent := query.SentKey(typ, string(b.IdempotencyKey.At(i)))
			h.rows = append(h.rows, memRow{b.Account[i], b.Ordinal[i], query.TimelineEntry{
				Key:       query.TimelineKey{TimeMs: b.TimeMs[i], Offset: b.Offset[i], Index: b.Index[i]},
				EventType: typ, Properties: string(b.Properties.At(i)), IdempotencyKey: key, Sent: sent,
			}})
		}
	}
	for _, a := range b.Aliases {
		if a.Offset >= h.position {
			h.aliases = append(h.aliases, a)
		}
	}
	for _, t := range b.Transitions {
		if t.Key.Offset >= h.position {
			h.moves = append(h.moves, t)
		}
	}
	h.position = max(h.position, b.To)
	return nil
}

func (h *memHistory) ready(ctx context.Context) error {
	h.mu.Lock()
	hold, fail := h.hold, h.fail
	h.mu.Unlock()
	if err := wait(ctx, hold); err != nil {
		return err
	}
	return fail
}

// wait waits for hold to be closed, unless it is nil.
func wait(ctx context.Context, hold chan struct{}) error {
	if hold == nil {
		return nil
	}
	select {
	case <-hold:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *memHistory) set(fail error, hold chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail, h.hold = fail, hold
}

func older(a, b query.TimelineKey) bool {
	if a.TimeMs != b.TimeMs {
		return a.TimeMs < b.TimeMs
	}
	if a.Late != b.Late {
		return b.Late
	}
	if a.Offset != b.Offset {
		return a.Offset < b.Offset
	}
	return a.Index < b.Index
}

func (h *memHistory) Timeline(ctx context.Context, q query.TimelineQuery) ([]query.TimelineEntry, error) {
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read++
	var out []query.TimelineEntry
	for _, r := range h.rows {
		r.entry.Key.Late = slices.Contains(q.Late, r.entry.EventType)
		if r.account == q.Account && r.entry.Key.Offset < q.Cut.UpTo && slices.Contains(q.Ordinals, r.ordinal) && q.Keeps(r.entry.EventType, r.entry.Sent) &&
			(q.Before == nil || older(r.entry.Key, *q.Before)) {
			out = append(out, r.entry)
		}
	}
	slices.SortFunc(out, func(a, b query.TimelineEntry) int {
		if older(b.Key, a.Key) {
			return -1
		}
		return 1
	})
	return out[:min(len(out), q.Limit)], nil
}

func (h *memHistory) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	profiles := map[uint32]*segment.NaiveProfile{}
	for _, r := range h.rows {
		if r.account != q.Account || r.entry.Key.Offset >= q.Cut.UpTo {
			continue
		}
		o := h.winner(r, q.Cut)
		if profiles[o] == nil {
			profiles[o] = &segment.NaiveProfile{}
		}
		profiles[o].Events = append(profiles[o].Events, segment.NaiveEvent{
			TimeMs: r.entry.Key.TimeMs, Type: r.entry.EventType, Sent: r.entry.Sent, Properties: []byte(r.entry.Properties)})
	}
	leaf, any := *q.Leaf, *q.Leaf
	leaf.Did, any.Did = true, true
	any.Aggregate = nil
	any.Count = &segment.Compare{Op: segment.OpGe, Micros: []segment.Int128{segment.Int128{}.Add(one)}}
	out := roaring.New()
	for o, p := range profiles {
		if naive(&any, p, q.AtMs) && naive(&leaf, p, q.AtMs) != q.Negate {
			out.Add(o)
		}
	}
	return out, nil
}

// winner is the ordinal a row's event counts for at the cut.
func (h *memHistory) winner(r memRow, cut query.Cut) uint32 {
	o := r.ordinal
	for _, a := range h.aliases {
		if a.Account == r.account && a.Ordinal == r.ordinal && a.Offset < cut.UpTo {
			o = a.Winner
		}
	}
	return o
}

func naive(a *segment.Activity, p *segment.NaiveProfile, atMs int64) bool {
	return (&segment.Node{Kind: segment.KindActivity, Activity: a}).Naive(p, atMs, nil)
}

// one is the count 1 in millionths.
var one = func() segment.Int128 {
	n, err := segment.Parse([]byte(`{"kind":"activity","event":"x","count":{"op":">=","value":1}}`), segment.Limits{})
	if err != nil {
		panic(err)
	}
	return n.Activity.Count.Micros[0]
}()

// memBlock is the number of events in a block of a replay.
const memBlock = 100

func (h *memHistory) Replay(ctx context.Context, q query.ReplayQuery, fn func(*query.ReplayBlock) error) error {
	if err := h.ready(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	hold := h.replays
	if hold != nil {
		h.held++
	}
	h.mu.Unlock()
	if err := wait(ctx, hold); err != nil {
		return err
	}
	for _, p := range q.Where {
		if p.Op == segment.OpInLastDays || p.Op == segment.OpNotInLastDays {
			return errors.New("a filter of a replay depends on the instant")
		}
	}
	h.mu.Lock()
	blocks := []*query.ReplayBlock{{}}
	for _, r := range h.rows {
		if r.account != q.Account || !segment.OfType(q.EventType, r.entry.EventType, r.entry.Sent) || r.entry.Key.Offset >= q.Cut.UpTo ||
			q.AfterMs != nil && r.entry.Key.TimeMs <= *q.AfterMs {
			continue
		}
		properties := []byte(r.entry.Properties)
		if slices.ContainsFunc(q.Where, func(p segment.Predicate) bool { return !p.Match(properties, 0) }) {
			continue
		}
		b := blocks[len(blocks)-1]
		if len(b.Ordinal) == memBlock {
			b = &query.ReplayBlock{}
			blocks = append(blocks, b)
		}
		b.Ordinal = append(b.Ordinal, h.winner(r, q.Cut))
		b.TimeMs = append(b.TimeMs, r.entry.Key.TimeMs)
		if q.Number != nil {
			b.Micros = append(b.Micros, query.MicrosAt(properties, q.Number))
		}
		if q.Properties {
			b.Properties.Append(properties)
		}
		if q.Keys {
			key := []byte(r.entry.IdempotencyKey)
			if r.entry.Sent {
				key = query.AppendSentKey(nil, []byte(r.entry.EventType), key)
			}
			b.IdempotencyKey.Append(key)
		}
	}
	h.mu.Unlock() // fn may take its time, or ask again
	for _, b := range blocks {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(b.Ordinal) == 0 {
			continue
		}
		if err := fn(b); err != nil {
			return err
		}
	}
	return nil
}

func (h *memHistory) Transitions(ctx context.Context, q query.TransitionsQuery) ([]query.Transition, error) {
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []query.Transition
	for _, t := range h.moves {
		after := t.Key.Offset > q.After.Offset || t.Key.Offset == q.After.Offset && t.Key.Seq > q.After.Seq
		if len(out) < q.Limit && after && t.Account == q.Account && t.Key.Offset < q.Cut.UpTo && (q.Segment == "" || t.Segment == q.Segment) {
			out = append(out, t)
		}
	}
	return out, nil
}

func (h *memHistory) ProfileTransitions(ctx context.Context, q query.ProfileTransitionsQuery) ([]query.Transition, error) {
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	compare := func(a, b query.TransitionPlace) int {
		return cmp.Or(cmp.Compare(a.AtMs, b.AtMs), cmp.Compare(a.Key.Offset, b.Key.Offset), cmp.Compare(a.Key.Seq, b.Key.Seq))
	}
	place := func(t query.Transition) query.TransitionPlace { return query.TransitionPlace{AtMs: t.AtMs, Key: t.Key} }
	var out []query.Transition
	for _, t := range h.moves {
		if t.Account == q.Account && t.Key.Offset < q.Cut.UpTo && slices.Contains(q.Ordinals, t.Ordinal) && (q.Before == nil || compare(place(t), *q.Before) < 0) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b query.Transition) int { return compare(place(b), place(a)) })
	return out[:min(len(out), q.Limit)], nil
}

func (h *memHistory) Series(ctx context.Context, q query.SeriesQuery) ([]query.SeriesRow, error) {
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	return nil, errors.New("series are not told here")
}

func (h *memHistory) Moves(_ context.Context, q query.MovesQuery) (out []query.MovesRow, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.moves {
		if t.Account != q.Account || t.Key.Offset >= q.Cut.UpTo || t.AtMs < q.FromMs || t.AtMs >= q.ToMs || q.Segment != "" && t.Segment != q.Segment {
			continue
		}
		at := q.Granularity.Start(t.AtMs)
		i := slices.IndexFunc(out, func(r query.MovesRow) bool { return r.Segment == t.Segment && r.StartMs == at })
		if i < 0 {
			i, out = len(out), append(out, query.MovesRow{Segment: t.Segment, StartMs: at})
		}
		if t.Entered {
			out[i].Entered++
		} else {
			out[i].Exits++
		}
	}
	slices.SortFunc(out, func(a, b query.MovesRow) int {
		return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.StartMs, b.StartMs))
	})
	return out, nil
}

func (h *memHistory) Deeds(ctx context.Context, q query.DeedsQuery) ([]query.Deed, error) {
	if err := h.ready(ctx); err != nil {
		return nil, err
	}
	return nil, errors.New("deeds are not told here")
}

func (h *memHistory) Erase(ctx context.Context, q query.EraseQuery) error {
	if err := h.ready(ctx); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.position < q.Cut.UpTo {
		return errors.New("rows to be erased are missing")
	}
	gone := func(account uint64, o uint32, offset int64) bool {
		return account == q.Account && offset < q.Cut.UpTo && slices.Contains(q.Ordinals, o)
	}
	h.rows = slices.DeleteFunc(h.rows, func(r memRow) bool { return gone(r.account, r.ordinal, r.entry.Key.Offset) })
	h.aliases = slices.DeleteFunc(h.aliases, func(a query.Alias) bool { return gone(a.Account, a.Ordinal, a.Offset) })
	h.moves = slices.DeleteFunc(h.moves, func(t query.Transition) bool { return gone(t.Account, t.Ordinal, t.Key.Offset) })
	return nil
}

func (h *memHistory) Usage(context.Context) (query.Usage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return query.Usage{Rows: int64(len(h.rows)), Bytes: int64(len(h.rows)) * 100}, nil
}

func (h *memHistory) Close() error { return nil }
