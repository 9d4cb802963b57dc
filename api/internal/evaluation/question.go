package evaluation

import (
	"context"
	"errors"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// Question is one state of an account, to be asked who belongs to what: what
// the engine knows, the profiles, the definitions and the cut belong together.
type Question struct {
	ev     *Evaluator
	within context.Context // of the caller
	// Ctx ends with the question's turn, and with the caller.
	Ctx     context.Context
	account uint64
	cut     query.Cut
	// AtMs is the instant that the question is about. Callers read it.
	AtMs int64
	defs map[string]*segment.Node
	// Saved are the account's segments, the oldest first. Callers read them.
	Saved []resolver.Segment
	// known are the engine's answers that were gathered, people the profiles to
	// find out the rest with; lacks says that there is such a rest.
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
	column    *view.FieldColumn
}

// AlsoRead is what else is read from the state that a question takes.
type AlsoRead func(*Question, *resolver.View) error

// Ask takes one state of the call's account, to ask history about it. also runs on the
// same state. [Question.Close] must follow.
func (e *Evaluator) Ask(c *handler.Call, also AlsoRead) (*Question, error) {
	return e.AskWithin(c.UntilGone(), c, also)
}

// AskWithin is [Evaluator.Ask] that also ends with ctx.
func (e *Evaluator) AskWithin(ctx context.Context, c *handler.Call, also AlsoRead) (*Question, error) {
	q := &Question{ev: e, within: ctx, account: c.Account, finish: func() {}}
	if err := q.toHistory(); err != nil {
		return nil, err
	}
	if err := q.take(also); err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

// AskEngine is [Evaluator.Ask] for questions that the engine can probably answer: while
// it can, they do not wait for questions that ask history.
func (e *Evaluator) AskEngine(c *handler.Call, also AlsoRead) (*Question, error) {
	q := &Question{ev: e, within: c.UntilGone(), account: c.Account}
	var err error
	if q.Ctx, q.finish, err = e.opts.Combinations.AcquireFor(q.within, e.opts.Timeout); err != nil {
		return nil, err
	}
	q.held = e.opts.Combinations
	err = q.take(also)
	if err == nil && q.lacks {
		if err = q.toHistory(); err == nil {
			err = q.take(also)
		}
	}
	if err != nil {
		q.Close()
		return nil, err
	}
	return q, nil
}

// toHistory waits for the question's turn to ask history, unless it has it. What
// was gathered is let go: a new state must be taken.
func (q *Question) toHistory() error {
	if q.mayAsk() {
		return nil
	}
	q.drop()
	q.finish()
	q.finish, q.held = func() {}, nil
	ctx, done, err := q.ev.opts.Evaluations.AcquireFor(q.within, q.ev.opts.Timeout)
	if err != nil {
		return err
	}
	q.Ctx, q.finish, q.held = ctx, done, q.ev.opts.Evaluations
	return nil
}

// mayAsk reports whether it is the question's turn to ask history.
func (q *Question) mayAsk() bool { return q.held == q.ev.opts.Evaluations }

// take makes the present state of the account the one that is asked.
func (q *Question) take(also AlsoRead) error {
	q.drop()
	if err := q.ev.opts.Node.RefreshColumns(q.Ctx, q.account); err != nil {
		return err
	}
	err := q.ev.opts.Node.Read(q.Ctx, q.account, func(v *resolver.View) error {
		q.cut, q.AtMs, q.Saved = v.Cut(), q.ev.opts.Chain.Instant(v), v.Segments().All()
		q.defs = make(map[string]*segment.Node, len(q.Saved))
		for _, s := range q.Saved {
			q.defs[s.ID] = s.Root
		}
		q.history = &sharedHistory{History: q.ev.opts.History}
		return also(q, v)
	})
	if err != nil {
		return err
	}
	for _, c := range q.columns {
		b := c.column.Members(func(value []byte) bool { return c.condition.MatchValue(value, q.AtMs) })
		b.And(q.people.universe)
		q.known[c.key] = b
	}
	return nil
}

// How much is gathered of the engine's answers, so that reading them holds the lock
// only briefly and they do not fill the memory. History is asked for what is
// beyond.
const (
	gatherBytes  = 64 << 20
	gatherLeaves = 5000
)

// Gather takes the engine's answers to definitions, and of the profiles what finding out
// the rest needs. It belongs into an [AlsoRead]. It stops at the first condition that is
// not known if history may not be asked.
func (q *Question) Gather(v *resolver.View, roots ...*segment.Node) {
	q.known, q.people.universe = map[string]*roaring.Bitmap{}, v.Profiles().All()
	q.people.anonymous = v.Profiles().Anonymous()
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
					if b, ok := fromEngine(v, leaf, key, q.AtMs); ok {
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
				if column, ok := v.Columns().Of(field); ok && leaves <= gatherLeaves {
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
		q.ev.snapshots.Inc()
	}
}

// fromEngine is the answer to the positive form of a condition that the state has, the
// engine's first.
func fromEngine(v *resolver.View, leaf *segment.Node, key string, atMs int64) (*roaring.Bitmap, bool) {
	if leaf.Kind == segment.KindSegment {
		return v.Segments().Members(leaf.Segment.SegmentID, atMs)
	}
	if b, ok := v.Segments().LeafMembers(key, atMs); ok {
		return b, true
	}
	return v.Segments().KeptMembers(leaf)
}

// isKnown is a condition's answer among those gathered.
func (q *Question) isKnown(leaf *segment.Node) (*roaring.Bitmap, bool) {
	if len(q.known) == 0 {
		return nil, false
	}
	b, ok := q.known[leaf.Key()]
	return b, ok
}

// drop gives back what was taken.
func (q *Question) drop() {
	if q.people.snap != nil {
		if err := q.people.snap.Close(); err != nil {
			q.ev.opts.Logger.Error("a snapshot could not be closed", "error", err)
		}
	}
	q.known, q.columns, q.people, q.lacks = nil, nil, people{}, false
}

// Close gives back what the question took, and its turn.
func (q *Question) Close() {
	q.drop()
	q.finish()
}

// people are the profiles of a question. They implement [query.Profiles].
type people struct {
	universe  *roaring.Bitmap
	anonymous *roaring.Bitmap // nil for none
	snap      *view.Snapshot  // nil when no condition needs it
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

// Profiles are those of the state.
func (q *Question) Profiles() query.Profiles { return &q.people }

// Lookup finds the definition of a saved segment.
func (q *Question) Lookup(id string) (*segment.Node, bool) {
	n, ok := q.defs[id]
	return n, ok
}

// Who finds the ordinals of the profiles for which a definition holds that was gathered.
func (q *Question) Who(ctx context.Context, root *segment.Node) (*roaring.Bitmap, error) {
	b, _, err := q.evaluate(ctx, root, func(ctx context.Context, h query.History, e query.Evaluation) (*roaring.Bitmap, []query.Part, error) {
		b, err := query.Evaluate(ctx, h, e)
		return b, nil, err
	})
	return b, err
}

// WhoByPart is [Question.Who], with the counts of the definition's parts.
func (q *Question) WhoByPart(ctx context.Context, root *segment.Node) (*roaring.Bitmap, []query.Part, error) {
	return q.evaluate(ctx, root, query.EvaluateParts)
}

// evaluate asks for a definition that was gathered by one of the ways to do so.
func (q *Question) evaluate(ctx context.Context, root *segment.Node, by func(context.Context, query.History, query.Evaluation) (*roaring.Bitmap, []query.Part, error)) (*roaring.Bitmap, []query.Part, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	began := time.Now() // for the metric only
	defer func() { q.ev.durations.Observe(time.Since(began)) }()
	if q.needsEvents(root, func(leaf *segment.Node) bool { _, ok := q.isKnown(leaf); return ok }) {
		if err := q.ev.opts.Node.WaitHistory(ctx, q.cut); err != nil {
			return nil, nil, HistoryError(err)
		}
	}
	b, parts, err := by(ctx, q.history, query.Evaluation{
		Account: q.account, Cut: q.cut, AtMs: q.AtMs, Root: root, Profiles: &q.people, Segments: q.Lookup, Known: q.isKnown,
	})
	if err != nil {
		return nil, nil, HistoryError(err)
	}
	return b, parts, nil
}

// needsEvents reports whether a definition, beside conditions that are known,
// depends on what profiles have done.
func (q *Question) needsEvents(root *segment.Node, known func(leaf *segment.Node) bool) bool {
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
func (q *Question) activities(root *segment.Node) []*segment.Activity {
	out := root.Activities()
	for _, n := range q.Closure(root) {
		out = append(out, n.Activities()...)
	}
	return out
}

// Closure is [Closure] among the saved segments.
func (q *Question) Closure(root *segment.Node) []*segment.Node { return Closure(root, q.Lookup) }

// Closure lists the definitions that root refers to, directly or through
// others, each once.
func Closure(root *segment.Node, lookup func(id string) (*segment.Node, bool)) []*segment.Node {
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

// Count is the number of profiles for which a definition holds that was gathered.
func (q *Question) Count(ctx context.Context, root *segment.Node) (*uint64, error) {
	b, err := q.Who(ctx, root)
	if err != nil {
		return nil, err
	}
	n := b.GetCardinality()
	return &n, nil
}
