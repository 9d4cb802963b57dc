package engine

import (
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/wheel"
)

// leaf is one condition, shared by all segments that use it, in its positive
// form. Most profiles answer as one of whom nothing is known does; the leaf
// keeps those who do not.
type leaf struct {
	id   uint32
	key  string
	node *segment.Node // positive: the negation is the segment's affair

	base bool            // the answer for a profile of whom nothing is known
	diff *roaring.Bitmap // profiles with the other answer

	fields Fields // that conditions on profiles look at

	// What an activity asks of its state.
	state     *state // also that of timed attributes; nil for other leaves
	windowMs  int64
	count     *segment.Compare // counts and distinct
	small     uint64           // the answers for counts below smallCounts, a bit each
	aggregate *segment.Aggregate
	distinct  bool

	wheel  wheel.Wheel
	inHeap int    // position in the engine's timers, −1 when not there
	uses   int    // by definitions, live or waiting
	segs   []*seg // whose live definition has it
	ready  bool   // every profile is judged
	cursor uint32 // where judging goes on, while it is not ready
	seen   *roaring.Bitmap
	pub    publishedLeaf

	// Scratch of rewriteBig: before the change.
	wasHeld bool
	wasDue  int64
}

// newLeaf makes the leaf of a condition; its state is not set yet.
func newLeaf(id uint32, key string, n *segment.Node) *leaf {
	l := &leaf{id: id, key: key, node: n, diff: roaring.New(), inHeap: -1}
	switch n.Kind {
	case segment.KindActivity:
		a := n.Activity
		l.base, l.windowMs, l.count, l.aggregate = a.HoldsForNone(), a.WindowMs, a.Count, a.Aggregate
		if a.Aggregate != nil && a.Aggregate.Fn == segment.FnDistinct {
			l.distinct, l.count = true, &a.Aggregate.Compare
		}
		for n := uint64(0); l.count != nil && n < smallCounts; n++ {
			if holdsCount(l.count, n) {
				l.small |= 1 << n
			}
		}
	default:
		l.base, l.fields = blankHolds(n), fieldsOf(n)
	}
	return l
}

// blankHolds is the answer for a profile of which no field is known.
func blankHolds(n *segment.Node) bool {
	if n.Kind == segment.KindAttribute && n.Attribute.Predicate.Timed() {
		return n.Attribute.Predicate.Op == segment.OpNotInLastDays
	}
	return (&segment.Facts{}).Holds(n, 0)
}

// timedAttribute reports whether time alone can change the answer.
func timedAttribute(n *segment.Node) bool {
	return n.Kind == segment.KindAttribute && n.Attribute.Timed()
}

func (l *leaf) timed() bool {
	return l.state != nil && (l.windowMs > 0 || l.state.spec.Kind == foldSpans)
}

// bit is the answer as of the engine's time.
func (l *leaf) bit(o uint32) bool { return l.base != l.diff.Contains(o) }

func (l *leaf) set(o uint32, holds bool) {
	if holds != l.base {
		l.diff.Add(o)
	} else {
		l.diff.Remove(o)
	}
}

// smallCounts is for how many counts the answers are kept: nearly all that are
// asked.
const smallCounts = 64

// holdsFor judges a count.
func (l *leaf) holdsFor(n uint64) bool {
	if n < smallCounts {
		return l.small>>n&1 == 1
	}
	return holdsCount(l.count, n)
}

// holds judges a value of the state at t.
func (l *leaf) holds(v []byte, t int64) bool {
	if v == nil {
		return l.base
	}
	if l.node.Kind == segment.KindAttribute {
		// The base of a timed attribute is the answer outside of all spans.
		return l.spanned(v, t) != l.base
	}
	return l.state.fold.holds(l, v, t)
}

func (l *leaf) spanned(v []byte, t int64) bool {
	for i := 0; i < len(v); i += spansEntry {
		if getInt(v[i:]) <= t && t < getInt(v[i+8:]) {
			return true
		}
	}
	return false
}

func (l *leaf) due(v []byte, t int64) int64 {
	if v == nil || !l.timed() {
		return never
	}
	return l.state.fold.due(l, v, t)
}

func joinPath(path []string) string { return strings.Join(path, ".") }

func splitPath(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, ".")
}

// sourceKey names the events that an activity counts.
func sourceKey(a *segment.Activity) string {
	one := segment.Compare{Op: segment.OpGe, Micros: []segment.Int128{segment.Micros(segment.MicrosPerUnit)}}
	return (&segment.Activity{Event: a.Event, Did: true, Where: a.Where, Count: &one}).Key()
}
