package evaluation

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node/live"
)

// Begin waits for its turn to ask history for a call, and until history has the
// records below the cut. The context ends when the caller is gone, too. After an error
// there is nothing to call done for.
func (e *Evaluator) Begin(c *handler.Call, cut query.Cut) (ctx context.Context, done func(), err error) {
	ctx, done, err = e.opts.Evaluations.AcquireFor(c.UntilGone(), e.opts.Timeout)
	if err != nil {
		return nil, nil, err
	}
	if err := e.opts.Node.WaitHistory(ctx, cut); err != nil {
		done()
		return nil, nil, HistoryError(err)
	}
	return ctx, done, nil
}

// PastTransitions asks history for transitions, when its turn has come.
func (e *Evaluator) PastTransitions(ctx context.Context, q query.TransitionsQuery) ([]live.Transition, error) {
	ctx, done, err := e.opts.Evaluations.AcquireFor(ctx, e.opts.Timeout)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := e.opts.Node.WaitHistory(ctx, q.Cut); err != nil {
		return nil, HistoryError(err)
	}
	list, err := e.opts.History.Transitions(ctx, q)
	if err != nil {
		return nil, HistoryError(err)
	}
	out := make([]live.Transition, len(list))
	return out, e.opts.Node.Read(ctx, q.Account, func(v *resolver.View) error {
		for i := range list {
			id, _, err := v.Profiles().HistoryID(list[i].Ordinal)
			if err != nil {
				return err
			}
			out[i] = live.Transition{Transition: list[i], Profile: id}
		}
		return nil
	})
}

// HistoryError marks what history failed at: it may come back.
func HistoryError(err error) error {
	if p, _ := handler.Classify(err); p.Status != http.StatusInternalServerError {
		return err
	}
	return fmt.Errorf("%w: history: %w", resolver.ErrUnavailable, err)
}

// sharedHistory remembers the answers to activity conditions within one
// Question, so that a condition that many segments share is asked once.
type sharedHistory struct {
	query.History
	mu struct {
		sync.Mutex // guards what follows
		answers    map[sharedKey]*roaring.Bitmap
		bytes      uint64
	}
}

// sharedBytes bounds the answers that one question remembers.
const sharedBytes = 64 << 20

type sharedKey struct {
	leaf   string
	negate bool
}

// Activity implements [query.History]. The answer is the caller's.
func (s *sharedHistory) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	key := sharedKey{q.Leaf.Key(), q.Negate}
	s.mu.Lock()
	b := s.mu.answers[key]
	s.mu.Unlock()
	if b != nil {
		return b.Clone(), nil
	}
	b, err := s.History.Activity(ctx, q)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.answers == nil {
		s.mu.answers = map[sharedKey]*roaring.Bitmap{}
	}
	if size := b.GetSizeInBytes(); s.mu.bytes+size <= sharedBytes {
		s.mu.bytes += size
		s.mu.answers[key] = b.Clone()
	}
	return b, nil
}
