package query

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
)

// Evaluation asks for the members of a definition.
type Evaluation struct {
	Account uint64
	// Cut is the state that is asked; Profiles are those of the same cut.
	Cut Cut
	// AtMs is the instant, in Unix milliseconds. No event of the cut may be
	// later unless it is not to count.
	AtMs     int64
	Root     *segment.Node
	Profiles Profiles
	// Segments finds the definitions that others refer to. A segment that is not
	// there has no members.
	Segments func(id string) (*segment.Node, bool)
	// Known, if not nil, returns what is known already at this cut and instant: of
	// a condition, who satisfies its positive form ([segment.Node.Key]); of a
	// condition on a segment, the segment's members. Answers are not changed. What
	// is not known is asked of history or found by a scan.
	Known func(leaf *segment.Node) (*roaring.Bitmap, bool)
}

// maxSegmentDepth bounds how far references are followed. Saved definitions
// have no cycles; the bound protects from a caller's mistake.
const maxSegmentDepth = 1000

// maxAtOnce is how many conditions of a definition history is asked at once.
const maxAtOnce = 4

// Evaluate finds the ordinals for which the definition holds. Of the conditions
// that are not known, those on activity become one query of history each, several at once, all
// others are answered in a single scan of the profiles; the tree is combined as
// bitmaps. Without conditions to scan for, [Profiles.Scan] is not called. The
// answer is the caller's to keep.
func Evaluate(ctx context.Context, h History, e Evaluation) (*roaring.Bitmap, error) {
	_, members, err := evaluate(ctx, h, e)
	return members, err
}

// evaluate is [Evaluate]; the evaluator has the answers to all conditions then.
func evaluate(ctx context.Context, h History, e Evaluation) (*evaluator, *roaring.Bitmap, error) {
	v := newEvaluator(ctx, h, e)
	if err := v.prepare(); err != nil {
		return nil, nil, err
	}
	b, err := v.eval(e.Root, 0)
	if err != nil {
		return nil, nil, err
	}
	// History keeps the events of profiles that are gone.
	b.And(v.admitted)
	return v, b, nil
}

func newEvaluator(ctx context.Context, h History, e Evaluation) *evaluator {
	v := &evaluator{Evaluation: e, ctx: ctx, history: h, leaves: map[string]*roaring.Bitmap{}, segments: map[string]*roaring.Bitmap{}}
	v.admitted = v.admits(e.Root, e.Profiles.Universe())
	return v
}

// admits is those of a set who may be members of a definition, whatever its conditions. The
// set is not changed.
func (v *evaluator) admits(root *segment.Node, set *roaring.Bitmap) *roaring.Bitmap {
	anonymous := v.Profiles.Anonymous()
	if root.Admits(true) || anonymous == nil || anonymous.IsEmpty() {
		return set
	}
	return roaring.AndNot(set, anonymous)
}

type evaluator struct {
	Evaluation
	ctx     context.Context
	history History
	// leaves holds the positive answer to each leaf by its key, segments the
	// members of each segment referred to.
	leaves   map[string]*roaring.Bitmap
	segments map[string]*roaring.Bitmap
	// admitted is who may be a member of the definition asked for. It must not be changed.
	admitted *roaring.Bitmap
}

// unscanned is a condition to be judged in the scan.
type unscanned struct {
	node *segment.Node
	bits *roaring.Bitmap
}

// prepare takes what is known, and answers in one scan all other attribute,
// consent and list conditions of the definition and of those it refers to. The
// definitions of segments whose members are known are not looked at.
func (v *evaluator) prepare() error {
	var list []unscanned
	var ask []*segment.Activity
	seen := map[string]bool{}
	var collect func(n *segment.Node)
	collect = func(n *segment.Node) {
		n.Walk(func(_ string, leaf *segment.Node) {
			if leaf.Kind == segment.KindGroup {
				return
			}
			key := leaf.Key()
			if seen[key] {
				return
			}
			seen[key] = true
			if b, ok := v.known(leaf); ok {
				if leaf.Kind == segment.KindSegment {
					v.segments[leaf.Segment.SegmentID] = b
				} else {
					v.leaves[key] = b
				}
				return
			}
			switch leaf.Kind {
			case segment.KindAttribute, segment.KindConsent, segment.KindList:
				v.leaves[key] = roaring.New()
				list = append(list, unscanned{leaf, v.leaves[key]})
			case segment.KindActivity:
				ask = append(ask, leaf.Activity)
			case segment.KindSegment:
				if d, ok := v.Segments(leaf.Segment.SegmentID); ok {
					collect(d)
				}
			}
		})
	}
	collect(v.Root)
	if err := v.askAll(ask); err != nil {
		return err
	}
	if len(list) == 0 {
		return nil
	}
	return v.Profiles.Scan(v.ctx, func(ordinal uint32, f *segment.Facts) error {
		for i := range list {
			if f.Holds(list[i].node, v.AtMs) {
				list[i].bits.Add(ordinal)
			}
		}
		return nil
	})
}

var errFault = errors.New("a question to history panicked")

// askAll asks history for conditions, each once and several at once.
func (v *evaluator) askAll(leaves []*segment.Activity) error {
	ctx, end := context.WithCancelCause(v.ctx)
	defer end(nil)
	answers := make([]*roaring.Bitmap, len(leaves))
	next := make(chan int)
	var work sync.WaitGroup
	var fault atomic.Value // of a panic, which is the caller's to meet
	for range min(len(leaves), maxAtOnce) {
		work.Go(func() {
			defer func() {
				if r := recover(); r != nil {
					fault.Store(&r)
					end(errFault)
					for range next { // the sender must not wait for ever
					}
				}
			}()
			for i := range next {
				if ctx.Err() != nil {
					continue
				}
				var err error
				if answers[i], err = v.ask(ctx, leaves[i]); err != nil {
					end(err)
				}
			}
		})
	}
	for i := range leaves {
		next <- i
	}
	close(next)
	work.Wait()
	if r, ok := fault.Load().(*any); ok {
		panic(*r)
	}
	if err := v.ctx.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, a := range leaves {
		v.leaves[a.Key()] = answers[i]
	}
	return nil
}

func (v *evaluator) known(leaf *segment.Node) (*roaring.Bitmap, bool) {
	if v.Known == nil {
		return nil, false
	}
	return v.Known(leaf)
}

func (v *evaluator) eval(n *segment.Node, depth int) (*roaring.Bitmap, error) {
	if n.Kind == segment.KindGroup {
		return v.group(n, depth)
	}
	b, negate, err := v.leaf(n, depth)
	if b == nil || err != nil {
		return nil, err
	}
	if negate {
		return roaring.AndNot(v.Profiles.Universe(), b), nil
	}
	return b.Clone(), nil
}

// leaf is the answer to the positive form of a condition, which the evaluator keeps, and
// whether the condition is its opposite.
func (v *evaluator) leaf(n *segment.Node, depth int) (b *roaring.Bitmap, negate bool, err error) {
	switch n.Kind {
	case segment.KindActivity:
		b, err = v.activity(n.Activity)
		return b, !n.Activity.Did, err
	case segment.KindSegment:
		b, err = v.segment(n.Segment.SegmentID, depth)
		return b, !n.Segment.Member, err
	case segment.KindList:
		return v.leaves[n.Key()], !n.List.Member, nil
	case segment.KindAttribute, segment.KindConsent:
		return v.leaves[n.Key()], false, nil
	}
	return nil, false, fmt.Errorf("segment node of kind %q", n.Kind)
}

func (v *evaluator) group(n *segment.Node, depth int) (*roaring.Bitmap, error) {
	var out *roaring.Bitmap
	for _, c := range n.Conditions {
		b, err := v.eval(c, depth)
		if err != nil {
			return nil, err
		}
		switch {
		case out == nil:
			out = b
		case n.Match == segment.MatchAll:
			out.And(b)
		default:
			out.Or(b)
		}
	}
	return out, nil
}

// activity answers the condition with did = true. Where the comparison holds
// for no events, it holds for all but those whose events fail it.
func (v *evaluator) activity(a *segment.Activity) (*roaring.Bitmap, error) {
	key := a.Key()
	if b := v.leaves[key]; b != nil {
		return b, nil
	}
	b, err := v.ask(v.ctx, a)
	if err != nil {
		return nil, err
	}
	v.leaves[key] = b
	return b, nil
}

// ask asks history for a condition.
func (v *evaluator) ask(ctx context.Context, a *segment.Activity) (*roaring.Bitmap, error) {
	negate := a.HoldsForNone()
	b, err := v.history.Activity(ctx, ActivityQuery{Cut: v.Cut, Account: v.Account, Leaf: a, AtMs: v.AtMs, Negate: negate})
	if err != nil {
		return nil, err
	}
	if negate {
		b = roaring.AndNot(v.Profiles.Universe(), b)
	}
	return b, nil
}

func (v *evaluator) segment(id string, depth int) (*roaring.Bitmap, error) {
	if b := v.segments[id]; b != nil {
		return b, nil
	}
	d, ok := v.Segments(id)
	if !ok {
		return roaring.New(), nil
	}
	if depth >= maxSegmentDepth {
		return nil, fmt.Errorf("segments refer to each other more than %d deep", maxSegmentDepth)
	}
	b, err := v.eval(d, depth+1)
	if err != nil {
		return nil, err
	}
	b = v.admits(d, b)
	v.segments[id] = b
	return b, nil
}
