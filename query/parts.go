package query

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
)

// MaxParts is up to how many groups and conditions a definition has its parts counted:
// each takes the combination of all others once.
const MaxParts = 64

// Part describes a group or condition below the root of a definition.
type Part struct {
	Path  string // from the root, as errors have it, such as conditions[0]
	Count uint64 // profiles that it holds for, whatever else is asked
	// Without is how many members the definition had without it. A group of which
	// nothing is left is left out, too.
	Without uint64
}

// EvaluateParts is [Evaluate], and counts the parts of the definition by the same
// answers: no condition is asked for twice. Of a definition with more than [MaxParts]
// there are none.
func EvaluateParts(ctx context.Context, h History, e Evaluation) (*roaring.Bitmap, []Part, error) {
	places := placesOf(e.Root)
	switch {
	case len(places) > MaxParts:
		members, err := Evaluate(ctx, h, e)
		return members, nil, err
	case denseFits(e.Profiles.Universe(), len(places)+1):
		return evaluateDense(ctx, h, e, places)
	}
	return evaluateSparse(ctx, h, e, places)
}

// place is a group or condition below the root of a definition.
type place struct {
	path string
	node *segment.Node
}

func placesOf(root *segment.Node) (places []place) {
	root.Walk(func(path string, n *segment.Node) {
		if n != root {
			places = append(places, place{path, n})
		}
	})
	return places
}

// evaluateDense is [EvaluateParts] over plain bits.
func evaluateDense(ctx context.Context, h History, e Evaluation, places []place) (*roaring.Bitmap, []Part, error) {
	v := newEvaluator(ctx, h, e)
	if err := v.prepare(); err != nil {
		return nil, nil, err
	}
	d, err := newDense(v, e.Root)
	if err != nil {
		return nil, nil, err
	}
	defer d.release()
	members, err := d.run(ctx)
	if err != nil {
		return nil, nil, err
	}
	parts := make([]Part, len(places))
	for i, p := range places {
		parts[i] = Part{p.path, d.parts[i].count, d.parts[i].without}
	}
	return members, parts, nil
}

// evaluateSparse is [EvaluateParts] over compressed sets, which few profiles of very many
// take less memory in.
func evaluateSparse(ctx context.Context, h History, e Evaluation, places []place) (*roaring.Bitmap, []Part, error) {
	v, members, err := evaluate(ctx, h, e)
	if err != nil {
		return nil, nil, err
	}
	universe := v.admitted
	parts := make([]Part, len(places))
	for i, p := range places {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		own, err := v.eval(p.node, 0)
		if err != nil {
			return nil, nil, err
		}
		rest, err := v.without(e.Root, p.node)
		if err != nil {
			return nil, nil, err
		}
		if rest == nil { // nothing is asked any more
			rest = universe
		}
		parts[i] = Part{p.path, own.AndCardinality(universe), rest.AndCardinality(universe)}
	}
	return members, parts, nil
}

// without is eval of a definition without one of its nodes; nil if nothing is left.
func (v *evaluator) without(n, left *segment.Node) (*roaring.Bitmap, error) {
	switch {
	case n == left:
		return nil, nil
	case n.Kind != segment.KindGroup:
		return v.eval(n, 0)
	}
	var out *roaring.Bitmap
	for _, c := range n.Conditions {
		b, err := v.without(c, left)
		switch {
		case err != nil:
			return nil, err
		case b == nil:
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
