package api

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// question is one state of an account, to be asked who belongs to what: the
// profiles, the definitions and the cut belong together.
type question struct {
	api     *API
	ctx     context.Context
	account uint64
	cut     query.Cut
	atMs    int64
	defs    map[string]*segment.Node
	saved   []resolver.Segment // the oldest first
	snap    *resolver.Snapshot // nil unless all profiles were asked for
	history *sharedHistory
	finish  func()
}

// beginQuestion waits for its turn to ask history. done must follow; the
// context ends with the time a question may take.
func (a *API) beginQuestion() (ctx context.Context, done func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), a.opts.EvaluationTimeout)
	release, err := a.evaluations.acquire(ctx)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return ctx, func() {
		release()
		cancel()
	}, nil
}

// ask takes one state of the call's account. also runs on the same state; it
// may be nil. close must follow.
func (a *API) ask(c *call, also func(*resolver.View) error) (*question, error) {
	return a.askWith(c, (*question).take, also)
}

// askAll is ask with a snapshot of all profiles, for those who call who.
func (a *API) askAll(c *call, also func(*resolver.View) error) (*question, error) {
	return a.askWith(c, (*question).takeAll, also)
}

func (a *API) askWith(c *call, take func(*question, func(*resolver.View) error) error, also func(*resolver.View) error) (*question, error) {
	ctx, done, err := a.beginQuestion()
	if err != nil {
		return nil, err
	}
	q := &question{api: a, ctx: ctx, account: c.account, finish: done}
	if err := take(q, also); err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

// take makes the present state of the account the one that is asked.
func (q *question) take(also func(*resolver.View) error) error {
	err := q.api.opts.Node.Read(q.ctx, q.account, func(v *resolver.View) error {
		if also != nil {
			if err := also(v); err != nil {
				return err
			}
		}
		q.cut = v.Cut()
		// Every event of this state has happened by then, whatever the clock says.
		q.atMs = max(q.api.opts.Now().UnixMilli(), v.LogTimeMs())
		q.saved = v.Segments()
		return nil
	})
	q.defs = make(map[string]*segment.Node, len(q.saved))
	for _, s := range q.saved {
		q.defs[s.ID] = s.Root
	}
	q.history = &sharedHistory{History: q.api.opts.History}
	return err
}

// takeAll is take with a snapshot of all profiles.
func (q *question) takeAll(also func(*resolver.View) error) error {
	return q.take(func(v *resolver.View) error {
		if also != nil {
			if err := also(v); err != nil {
				return err
			}
		}
		snap := v.Snapshot()
		if q.snap != nil {
			q.snap.Close() //nolint:errcheck // it only gives memory back
		}
		q.snap = snap
		return nil
	})
}

func (q *question) close() {
	if q.snap != nil {
		if err := q.snap.Close(); err != nil {
			q.api.opts.Logger.Error("a snapshot could not be closed", "error", err)
		}
	}
	q.finish()
}

func (q *question) lookup(id string) (*segment.Node, bool) {
	n, ok := q.defs[id]
	return n, ok
}

// who finds the ordinals for which the definition holds.
func (q *question) who(ctx context.Context, root *segment.Node) (*roaring.Bitmap, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	began := time.Now() // for the metric only
	defer func() { q.api.evaluationTime.UpdateDuration(began) }()
	if len(q.activities(root)) > 0 {
		if err := q.api.opts.Node.WaitHistory(ctx, q.cut); err != nil {
			return nil, historyError(err)
		}
	}
	b, err := query.Evaluate(ctx, q.history, query.Evaluation{
		Account: q.account, Cut: q.cut, AtMs: q.atMs, Root: root, Profiles: q.snap, Segments: q.lookup,
	})
	if err != nil {
		return nil, historyError(err)
	}
	return b, nil
}

// activities lists the activity conditions the definition asks for, through the
// segments it refers to.
func (q *question) activities(root *segment.Node) []*segment.Activity {
	out := root.Activities()
	for _, n := range q.closure(root) {
		out = append(out, n.Activities()...)
	}
	return out
}

// closure lists the definitions that root refers to, directly or through
// others, each once.
func (q *question) closure(root *segment.Node) []*segment.Node {
	var out []*segment.Node
	seen := map[string]bool{}
	var visit func(n *segment.Node)
	visit = func(n *segment.Node) {
		for _, id := range n.SegmentIDs() {
			if d := q.defs[id]; d != nil && !seen[id] {
				seen[id] = true
				out = append(out, d)
				visit(d)
			}
		}
	}
	visit(root)
	return out
}

// count is the number of members, with null and a reason when it could not be
// found in time.
func (q *question) count(ctx context.Context, root *segment.Node) (*uint64, error) {
	b, err := q.who(ctx, root)
	if err != nil {
		return nil, err
	}
	n := b.GetCardinality()
	return &n, nil
}

// historyError marks what history failed at: it may come back.
func historyError(err error) error {
	if p, _ := classify(err); p.status != http.StatusInternalServerError {
		return err
	}
	return fmt.Errorf("%w: history: %w", resolver.ErrUnavailable, err)
}

// sharedHistory remembers the answers to activity conditions within one
// question, so that a condition that many segments share is asked once.
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
