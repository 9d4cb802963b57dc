package segments

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// Preview is how long it takes to count an unsaved definition.
type Preview struct {
	// Known is when live segments have all its conditions, Unknown when one has
	// to be asked from history. SQL is Known's definition from history alone.
	KnownMillis   float64 `json:"known_ms"`
	UnknownMillis float64 `json:"unknown_ms"`
	SQLMillis     float64 `json:"sql_ms"`
	// UnknownConditions is how many conditions of the second are asked from
	// history; it must be one.
	UnknownConditions int `json:"unknown_conditions"`
}

// previews times previews, the median of three each.
func (s *step) previews(ctx context.Context) error {
	p := &Preview{}
	var err error
	var unknown int
	if p.KnownMillis, unknown, err = s.preview(ctx, knownPreview(), true); err != nil {
		return err
	}
	if unknown != 0 {
		return fmt.Errorf("%d conditions of a preview are unknown to the engine, want none", unknown)
	}
	if p.UnknownMillis, p.UnknownConditions, err = s.preview(ctx, unknownPreview(), true); err != nil {
		return err
	}
	if p.SQLMillis, _, err = s.preview(ctx, knownPreview(), false); err != nil {
		return err
	}
	s.out.Preview = p
	return nil
}

func (s *step) preview(ctx context.Context, text string, leaves bool) (millis float64, unknown int, err error) {
	root, err := segment.Parse(json.RawMessage(text), segment.Limits{})
	if err != nil {
		return 0, 0, err
	}
	var times []float64
	var counted [3]uint64
	for i := range counted {
		begun := time.Now()
		if counted[i], unknown, err = s.a.countUnsaved(ctx, root, leaves); err != nil {
			return 0, 0, err
		}
		times = append(times, float64(time.Since(begun))/1e6)
	}
	return report.Median(times), unknown, nil
}

// countUnsaved counts the people for whom a definition holds: from the engine's conditions
// where it has them, if leaves is set, and from history for the rest.
func (a *account) countUnsaved(ctx context.Context, root *segment.Node, leaves bool) (n uint64, unknown int, err error) {
	known := &knownLeaves{History: a.history, leaves: map[string]*roaring.Bitmap{}}
	var st state
	err = a.read(ctx, func(v *resolver.View) error {
		st.cut, st.atMs = v.Cut(), max(time.Now().UnixMilli(), v.LogTimeMs())
		whole := true
		for _, leaf := range root.Leaves() {
			m, ok := v.Segments().LeafMembers(leaf.Key(), st.atMs)
			if !ok || !leaves {
				unknown++
				continue
			}
			known.leaves[leaf.Key()] = m
			whole = whole && !leaf.Negated()
		}
		if unknown > 0 || !whole {
			st.snap = v.Snapshot()
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	if st.snap != nil {
		defer st.close()
	}
	if unknown == 0 {
		return combine(root, known.leaves, st.snap).GetCardinality(), 0, nil
	}
	if err := a.node.WaitHistory(ctx, st.cut); err != nil {
		return 0, 0, err
	}
	known.universe = st.snap.Universe()
	b, err := st.evaluate(ctx, known, root)
	if err != nil {
		return 0, 0, err
	}
	return b.GetCardinality(), unknown, nil
}

// combine evaluates the tree over the answers to all its leaves. Complements are
// taken in the snapshot's universe; without any it is not used.
func combine(n *segment.Node, leaves map[string]*roaring.Bitmap, snap *view.Snapshot) *roaring.Bitmap {
	if n.Kind != segment.KindGroup {
		b := leaves[n.Key()]
		if n.Negated() {
			return roaring.AndNot(snap.Universe(), b)
		}
		return b
	}
	var out *roaring.Bitmap
	for _, c := range n.Conditions {
		b := combine(c, leaves, snap)
		switch {
		case out == nil:
			out = b.Clone()
		case n.Match == segment.MatchAll:
			out.And(b)
		default:
			out.Or(b)
		}
	}
	return out
}

// knownLeaves answers activity conditions that the engine knows without asking
// history.
type knownLeaves struct {
	query.History
	leaves   map[string]*roaring.Bitmap
	universe *roaring.Bitmap
}

func (h *knownLeaves) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	b := h.leaves[q.Leaf.Key()]
	switch {
	case b == nil:
		return h.History.Activity(ctx, q)
	case q.Negate:
		return roaring.AndNot(h.universe, b), nil
	}
	return b.Clone(), nil
}
