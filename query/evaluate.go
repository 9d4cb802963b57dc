package query

import (
	"context"
	"fmt"

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
	// Segments finds the definitions that others refer to. Nobody is a member
	// of a segment that is not there.
	Segments func(id string) (*segment.Node, bool)
}

// maxSegmentDepth bounds how far references are followed. Saved definitions
// have no cycles; the bound protects from a caller's mistake.
const maxSegmentDepth = 1000

// Evaluate finds the ordinals for which the definition holds. Activity
// conditions become one query of history each, all others are answered in a
// single scan of the profiles; the tree is combined as bitmaps. The answer is
// the caller's to keep.
func Evaluate(ctx context.Context, h History, e Evaluation) (*roaring.Bitmap, error) {
	v := evaluator{Evaluation: e, ctx: ctx, history: h,
		leaves: map[string]*roaring.Bitmap{}, segments: map[string]*roaring.Bitmap{}}
	if err := v.scan(); err != nil {
		return nil, err
	}
	b, err := v.eval(e.Root, 0)
	if err != nil {
		return nil, err
	}
	// History keeps the events of profiles that are gone.
	b.And(e.Profiles.Universe())
	return b, nil
}

type evaluator struct {
	Evaluation
	ctx     context.Context
	history History
	// leaves holds the positive answer to each leaf by its key, segments the
	// members of each segment referred to.
	leaves   map[string]*roaring.Bitmap
	segments map[string]*roaring.Bitmap
}

// scan answers all attribute, consent and list conditions of the definition and
// of those it refers to.
func (v *evaluator) scan() error {
	type scanned struct {
		node *segment.Node
		bits *roaring.Bitmap
	}
	var list []scanned
	seen := map[string]bool{}
	var collect func(n *segment.Node)
	collect = func(n *segment.Node) {
		n.Walk(func(_ string, leaf *segment.Node) {
			switch leaf.Kind {
			case segment.KindAttribute, segment.KindConsent, segment.KindList:
				key := leaf.Key()
				if v.leaves[key] == nil {
					v.leaves[key] = roaring.New()
					list = append(list, scanned{leaf, v.leaves[key]})
				}
			case segment.KindSegment:
				id := leaf.Segment.SegmentID
				if d, ok := v.Segments(id); ok && !seen[id] {
					seen[id] = true
					collect(d)
				}
			}
		})
	}
	collect(v.Root)
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

func (v *evaluator) eval(n *segment.Node, depth int) (*roaring.Bitmap, error) {
	switch n.Kind {
	case segment.KindGroup:
		return v.group(n, depth)
	case segment.KindActivity:
		b, err := v.activity(n.Activity)
		return v.complementIf(!n.Activity.Did, b), err
	case segment.KindSegment:
		b, err := v.segment(n.Segment.SegmentID, depth)
		return v.complementIf(!n.Segment.Member, b), err
	case segment.KindList:
		return v.complementIf(!n.List.Member, v.leaves[n.Key()]), nil
	case segment.KindAttribute, segment.KindConsent:
		return v.leaves[n.Key()].Clone(), nil
	}
	return nil, fmt.Errorf("segment node of kind %q", n.Kind)
}

func (v *evaluator) complementIf(yes bool, b *roaring.Bitmap) *roaring.Bitmap {
	if b == nil {
		return nil
	}
	if !yes {
		return b.Clone()
	}
	return roaring.AndNot(v.Profiles.Universe(), b)
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
	negate := a.HoldsForNone()
	b, err := v.history.Activity(v.ctx, ActivityQuery{Cut: v.Cut, Account: v.Account, Leaf: a, AtMs: v.AtMs, Negate: negate})
	if err != nil {
		return nil, err
	}
	if negate {
		b = roaring.AndNot(v.Profiles.Universe(), b)
	}
	v.leaves[key] = b
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
	v.segments[id] = b
	return b, nil
}
