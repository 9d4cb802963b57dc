package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"

	"github.com/musterhq/muster/query"
)

// Backend is a history that also returns the events behind its answers.
type Backend interface {
	query.History
	// Matches calls fn with events in blocks that are valid during the call only.
	Matches(ctx context.Context, q query.MatchQuery, fn func(*query.MatchBlock) error) error
}

// quick is a back end that answers some questions so fast that the events behind them
// are not worth keeping.
type quick interface {
	Quick(ctx context.Context, q query.MatchQuery) bool
}

// Options bound a cache.
type Options struct {
	// Bytes bounds what is kept; 0 keeps nothing.
	Bytes int64
	// Now is the wall clock. It decides what is worth keeping, never an answer.
	Now    func() time.Time
	Logger *slog.Logger // nil is silent
}

const (
	// entryShare of the memory is what one entry may take.
	entryShare = 2
	// counters is how many keys the admission of entries remembers.
	counters = 100_000
)

// History is a [query.History] that answers activity conditions and series from
// memory where it can. It is safe for concurrent use.
type History struct {
	Backend
	opts    Options
	entries *ristretto.Cache[string, *entry] // nil without a cache
	recent  *recent                          // has half of the memory
	tracker tracker
	ids     atomic.Uint64 // of summaries
	stats   struct{ hits, extended, misses, bypassed atomic.Uint64 }
}

// Stats are a cache's counters since the start, but Bytes and Limit.
type Stats struct {
	// Hits were answered from memory alone; Extended after asking for events that
	// came since; Misses after asking for all; Bypassed were asked of the back end.
	Hits, Extended, Misses, Bypassed uint64
	// Bytes is what the entries take, of at most Limit.
	Bytes, Limit int64
}

// New puts a cache in front of a back end, which it closes.
func New(b Backend, o Options) (*History, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &History{Backend: b, opts: o}
	if o.Bytes <= 0 {
		return h, nil
	}
	var err error
	h.recent = newRecent(o.Bytes / 2)
	h.entries, err = ristretto.NewCache(&ristretto.Config[string, *entry]{
		NumCounters: counters, MaxCost: o.Bytes - o.Bytes/2, BufferItems: 64, IgnoreInternalCost: true,
	})
	if err != nil {
		return nil, fmt.Errorf("query cache of %d bytes: %w", o.Bytes, err)
	}
	return h, nil
}

// Stats reports what the cache did.
func (h *History) Stats() Stats {
	s := Stats{Hits: h.stats.hits.Load(), Extended: h.stats.extended.Load(), Misses: h.stats.misses.Load(),
		Bypassed: h.stats.bypassed.Load(), Limit: h.opts.Bytes}
	if h.entries != nil {
		s.Bytes = h.entries.MaxCost() - h.entries.RemainingCost() + h.recent.size()
	}
	return s
}

// OnLoss passes on the function to call when the back end has lost rows.
func (h *History) OnLoss(fn func()) {
	if b, ok := h.Backend.(interface{ OnLoss(fn func()) }); ok {
		b.OnLoss(fn)
	}
}

// ExpectQuestions tells a back end that can prepare for questions that some will come
// soon. It does not wait.
func (h *History) ExpectQuestions() {
	if b, ok := h.Backend.(interface{ ExpectQuestions() }); ok {
		b.ExpectQuestions()
	}
}

// Append implements [query.History].
func (h *History) Append(ctx context.Context, b *query.Batch) error {
	if h.entries == nil {
		return h.Backend.Append(ctx, b)
	}
	h.tracker.appending(b)
	err := h.Backend.Append(ctx, b)
	if err == nil {
		h.tracker.appended(b)
	}
	return err
}

// Erase implements [query.History]. What is asked meanwhile is not kept.
func (h *History) Erase(ctx context.Context, q query.EraseQuery) error {
	h.tracker.forget(q.Cut.Partition, q.Account)
	defer h.tracker.forget(q.Cut.Partition, q.Account)
	return h.Backend.Erase(ctx, q)
}

// Close implements [query.History].
func (h *History) Close() error {
	err := h.Backend.Close()
	if h.entries != nil {
		h.entries.Close()
	}
	return err
}

// entry is the answer under a key. It is never changed.
type entry struct {
	key   string
	epoch uint64
	bytes int64
	// One of these.
	rows     *matches
	summary  *summary
	answer   *answer
	tooLarge *tooLarge
}

// tooLarge reports that what a key stands for does not fit, from events after that
// time on.
type tooLarge struct{ afterMs int64 }

var errTooLarge = errors.New("too large to be kept")

// get finds the entry of a key that was made in the account's present epoch.
func (h *History) get(key string, epoch uint64) *entry {
	if e := h.recent.get(key); e != nil {
		if e.epoch == epoch {
			return e
		}
		return nil
	}
	if e, ok := h.entries.Get(key); ok && e.key == key && e.epoch == epoch {
		return e
	}
	return nil
}

// put keeps an entry among the recent ones, and for longer if ristretto takes it, a moment
// later. What is in both counts twice.
func (h *History) put(e *entry) {
	e.bytes = cmp.Or(e.bytes, 128) + int64(len(e.key)) + 128
	h.recent.put(e)
	h.entries.Set(e.key, e, e.bytes)
}

func (h *History) entryLimit() int64 { return h.opts.Bytes / entryShare }

// bypass reports whether a question is to be asked of the back end after err.
func (h *History) bypass(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if !errors.Is(err, errTooLarge) && !errors.Is(err, errNotKept) && !errors.Is(err, query.ErrUnavailable) {
		h.opts.Logger.Warn("the query cache could not be filled; history is asked instead", "error", err)
	}
	h.stats.bypassed.Add(1)
	return true
}

// errNotKept means that a question is not one that the cache answers.
var errNotKept = errors.New("not kept")
