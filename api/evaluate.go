package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// question is one state of an account, to be asked who belongs to what: what
// the engine knows, the profiles, the definitions and the cut belong together.
type question struct {
	api     *API
	within  context.Context // of the caller
	ctx     context.Context // of the turn, within that
	account uint64
	cut     query.Cut
	atMs    int64
	defs    map[string]*segment.Node
	saved   []resolver.Segment // the oldest first
	// known are the engine's answers that were gathered, people the profiles to
	// find out the rest with; lacks tells that there is such a rest.
	known   map[string]*roaring.Bitmap // by key
	columns []columnLeaf
	people  people
	lacks   bool

	history *sharedHistory
	held    *handler.Semaphore // whose slot it has
	finish  func()
}

// columnLeaf is a condition on a field of which a column was gathered.
type columnLeaf struct {
	key       string
	condition *segment.Attribute
	column    *resolver.FieldColumn
}

// beginQuestion waits for its turn to ask history for a call, and until history has the
// records below the cut. The context ends when the caller is gone, too. After an error
// there is nothing to call done for.
func (a *API) beginQuestion(c *handler.Call, cut query.Cut) (ctx context.Context, done func(), err error) {
	ctx, done, err = a.evaluations.AcquireFor(c.UntilGone(), a.opts.EvaluationTimeout)
	if err != nil {
		return nil, nil, err
	}
	if err := a.opts.Node.WaitHistory(ctx, cut); err != nil {
		done()
		return nil, nil, historyError(err)
	}
	return ctx, done, nil
}

// alsoRead is what else is read from the state that a question takes.
type alsoRead func(*question, *resolver.View) error

// ask takes one state of the call's account, to ask history about it. also runs
// on the same state. close must follow.
func (a *API) ask(c *handler.Call, also alsoRead) (*question, error) {
	return a.askWithin(c.UntilGone(), c, also)
}

// askWithin is ask that also ends with ctx.
func (a *API) askWithin(ctx context.Context, c *handler.Call, also alsoRead) (*question, error) {
	q := &question{api: a, within: ctx, account: c.Account, finish: func() {}}
	if err := q.toHistory(); err != nil {
		return nil, err
	}
	if err := q.take(also); err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

// askEngine is ask for what the engine may well know: while it does, nobody
// waits for those who ask history.
func (a *API) askEngine(c *handler.Call, also alsoRead) (*question, error) {
	q := &question{api: a, within: c.UntilGone(), account: c.Account}
	var err error
	if q.ctx, q.finish, err = a.combinations.AcquireFor(q.within, a.opts.EvaluationTimeout); err != nil {
		return nil, err
	}
	q.held = a.combinations
	err = q.take(also)
	if err == nil && q.lacks {
		if err = q.toHistory(); err == nil {
			err = q.take(also)
		}
	}
	if err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

// toHistory waits for the question's turn to ask history, unless it has it. What
// was gathered is let go: a new state must be taken.
func (q *question) toHistory() error {
	if q.mayAsk() {
		return nil
	}
	q.drop()
	q.finish()
	q.finish, q.held = func() {}, nil
	ctx, done, err := q.api.evaluations.AcquireFor(q.within, q.api.opts.EvaluationTimeout)
	if err != nil {
		return err
	}
	q.ctx, q.finish, q.held = ctx, done, q.api.evaluations
	return nil
}

// mayAsk reports whether it is the question's turn to ask history.
func (q *question) mayAsk() bool { return q.held == q.api.evaluations }

// take makes the present state of the account the one that is asked.
func (q *question) take(also alsoRead) error {
	q.drop()
	if err := q.api.opts.Node.RefreshColumns(q.ctx, q.account); err != nil {
		return err
	}
	err := q.api.opts.Node.Read(q.ctx, q.account, func(v *resolver.View) error {
		q.cut, q.atMs, q.saved = v.Cut(), q.api.chain.Instant(v), v.Segments()
		q.defs = make(map[string]*segment.Node, len(q.saved))
		for _, s := range q.saved {
			q.defs[s.ID] = s.Root
		}
		q.history = &sharedHistory{History: q.api.opts.History}
		return also(q, v)
	})
	if err != nil {
		return err
	}
	for _, c := range q.columns {
		b := c.column.Members(func(value []byte) bool { return c.condition.MatchValue(value, q.atMs) })
		b.And(q.people.universe)
		q.known[c.key] = b
	}
	return nil
}

// What is gathered of the engine's answers, so that reading them holds up
// nobody for long and they do not fill the memory. History is asked for what is
// beyond.
const (
	gatherBytes  = 64 << 20
	gatherLeaves = 5000
)

// gather takes what the engine knows of definitions, and of the profiles what
// finding out the rest needs. It belongs into take. It stops at the first
// condition that is not known if history may not be asked.
func (q *question) gather(v *resolver.View, roots ...*segment.Node) {
	q.known, q.people.universe = map[string]*roaring.Bitmap{}, v.Universe()
	q.people.anonymous = v.Anonymous()
	seen := map[string]bool{}
	leaves, bytes := 0, uint64(0)
	scan := false
	var fields []string // that the scan looks at and there may be columns of
	visited := map[string]bool{}
	var visit func(n *segment.Node)
	visit = func(n *segment.Node) {
		n.Walk(func(_ string, leaf *segment.Node) {
			if leaf.Kind == segment.KindGroup || q.lacks && !q.mayAsk() {
				return
			}
			if leaves++; leaves <= gatherLeaves {
				key := leaf.Key()
				if seen[key] {
					return
				}
				seen[key] = true
				if bytes < gatherBytes {
					if b, ok := fromEngine(v, leaf, key, q.atMs); ok {
						bytes += b.GetSizeInBytes()
						q.known[key] = b
						return
					}
				}
			}
			switch leaf.Kind {
			case segment.KindActivity:
				q.lacks = true
			case segment.KindSegment:
				id := leaf.Segment.SegmentID
				if d := q.defs[id]; d != nil && !visited[id] {
					visited[id] = true
					visit(d)
				}
			case segment.KindAttribute:
				field := leaf.Attribute.Field
				if column, ok := v.FieldColumn(field); ok && leaves <= gatherLeaves {
					q.columns = append(q.columns, columnLeaf{leaf.Key(), leaf.Attribute, column})
					return
				}
				scan, q.lacks, fields = true, true, append(fields, field)
			default:
				scan, q.lacks = true, true
			}
		})
	}
	for _, root := range roots {
		visit(root)
	}
	if scan && q.mayAsk() {
		q.people.snap = v.Snapshot(fields...)
		q.api.snapshots.Inc()
	}
}

// fromEngine is the answer to the positive form of a condition that the state has, the
// engine's first.
func fromEngine(v *resolver.View, leaf *segment.Node, key string, atMs int64) (*roaring.Bitmap, bool) {
	if leaf.Kind == segment.KindSegment {
		return v.Members(leaf.Segment.SegmentID, atMs)
	}
	if b, ok := v.LeafMembers(key, atMs); ok {
		return b, true
	}
	return v.KeptMembers(leaf)
}

// isKnown is a condition's answer among those gathered.
func (q *question) isKnown(leaf *segment.Node) (*roaring.Bitmap, bool) {
	if len(q.known) == 0 {
		return nil, false
	}
	b, ok := q.known[leaf.Key()]
	return b, ok
}

// drop gives back what was taken.
func (q *question) drop() {
	if q.people.snap != nil {
		if err := q.people.snap.Close(); err != nil {
			q.api.opts.Logger.Error("a snapshot could not be closed", "error", err)
		}
	}
	q.known, q.columns, q.people, q.lacks = nil, nil, people{}, false
}

func (q *question) close() {
	q.drop()
	q.finish()
}

// people are the profiles of a question. They implement [query.Profiles].
type people struct {
	universe  *roaring.Bitmap
	anonymous *roaring.Bitmap    // nil for none
	snap      *resolver.Snapshot // nil when no condition needs it
}

// Universe implements [query.Profiles].
func (p *people) Universe() *roaring.Bitmap { return p.universe }

// Anonymous implements [query.Profiles].
func (p *people) Anonymous() *roaring.Bitmap { return p.anonymous }

// Scan implements [query.Profiles].
func (p *people) Scan(ctx context.Context, fn func(uint32, *segment.Facts) error) error {
	if p.snap == nil {
		return errors.New("profiles are looked at that no condition was gathered for")
	}
	return p.snap.Scan(ctx, fn)
}

func (q *question) lookup(id string) (*segment.Node, bool) {
	n, ok := q.defs[id]
	return n, ok
}

// who finds the ordinals for which a definition holds that was gathered.
func (q *question) who(ctx context.Context, root *segment.Node) (*roaring.Bitmap, error) {
	b, _, err := q.evaluate(ctx, root, func(ctx context.Context, h query.History, e query.Evaluation) (*roaring.Bitmap, []query.Part, error) {
		b, err := query.Evaluate(ctx, h, e)
		return b, nil, err
	})
	return b, err
}

// whoByPart is who, with the counts of the definition's parts.
func (q *question) whoByPart(ctx context.Context, root *segment.Node) (*roaring.Bitmap, []query.Part, error) {
	return q.evaluate(ctx, root, query.EvaluateParts)
}

// evaluate asks for a definition that was gathered by one of the ways to do so.
func (q *question) evaluate(ctx context.Context, root *segment.Node, by func(context.Context, query.History, query.Evaluation) (*roaring.Bitmap, []query.Part, error)) (*roaring.Bitmap, []query.Part, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	began := time.Now() // for the metric only
	defer func() { q.api.evaluationTime.Observe(time.Since(began)) }()
	if q.needsEvents(root, func(leaf *segment.Node) bool { _, ok := q.isKnown(leaf); return ok }) {
		if err := q.api.opts.Node.WaitHistory(ctx, q.cut); err != nil {
			return nil, nil, historyError(err)
		}
	}
	b, parts, err := by(ctx, q.history, query.Evaluation{
		Account: q.account, Cut: q.cut, AtMs: q.atMs, Root: root, Profiles: &q.people, Segments: q.lookup, Known: q.isKnown,
	})
	if err != nil {
		return nil, nil, historyError(err)
	}
	return b, parts, nil
}

// needsEvents reports whether a definition, beside conditions that are known,
// depends on what profiles have done.
func (q *question) needsEvents(root *segment.Node, known func(leaf *segment.Node) bool) bool {
	needs := false
	seen := map[string]bool{}
	var visit func(n *segment.Node)
	visit = func(n *segment.Node) {
		n.Walk(func(_ string, leaf *segment.Node) {
			if needs || leaf.Kind != segment.KindActivity && leaf.Kind != segment.KindSegment {
				return
			}
			if known(leaf) {
				return
			}
			if leaf.Kind == segment.KindActivity {
				needs = true
			} else if d := q.defs[leaf.Segment.SegmentID]; d != nil && !seen[leaf.Segment.SegmentID] {
				seen[leaf.Segment.SegmentID] = true
				visit(d)
			}
		})
	}
	visit(root)
	return needs
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

// closure lists the definitions that root refers to.
func (q *question) closure(root *segment.Node) []*segment.Node { return closure(root, q.lookup) }

// closure lists the definitions that root refers to, directly or through
// others, each once.
func closure(root *segment.Node, lookup func(id string) (*segment.Node, bool)) []*segment.Node {
	var out []*segment.Node
	seen := map[string]bool{}
	var visit func(n *segment.Node)
	visit = func(n *segment.Node) {
		for _, id := range n.SegmentIDs() {
			if seen[id] {
				continue
			}
			if d, ok := lookup(id); ok {
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
	if p, _ := handler.Classify(err); p.Status != http.StatusInternalServerError {
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
