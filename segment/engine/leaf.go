package engine

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
	"github.com/musterhq/muster/segment/engine/internal/wheel"
)

// never is an instant that does not come.
const never = int64(math.MaxInt64)

// leaf is one condition, shared by all segments that use it, in its positive
// form. Most profiles answer as one of whom nothing is known does; the leaf
// keeps those who do not.
type leaf struct {
	// What the condition is, set once as the leaf is made. id names the leaf in files, key
	// finds it for another definition with the same condition.
	id   uint32
	key  string
	node *segment.Node // positive: the negation is the segment's affair

	// The answers. Most profiles answer as base says, so diff stays small. The
	// goroutine that applies records alone changes diff.
	base bool            // the answer for a profile of whom nothing is known
	diff *roaring.Bitmap // profiles with the other answer

	// What the answers depend on. A change of other fields or events passes the leaf over.
	fields        Fields // that conditions on profiles look at
	state         *state // of activities and timed attributes; nil for other leaves
	fold.Question        // what the condition asks of a value of the state

	// When time alone changes an answer: profiles by the instant, in Unix milliseconds, and
	// the leaf's place among all that have such profiles.
	wheel  wheel.Wheel
	inHeap int // position in the engine's timers, −1 when not there

	// Who needs the leaf: it is dropped when uses is 0, and segs are marked when an answer
	// changes.
	uses int    // by definitions, live or waiting
	segs []*seg // whose live definition has it

	// How far the backfill is, which judges all profiles in chunks after the leaf was made.
	ready  bool            // every profile is judged
	cursor uint32          // the ordinal at which judging continues, while it is not ready
	seen   *roaring.Bitmap // profiles judged by a change since: a chunk must not judge them by older data; nil when ready, and for activities

	pub publishedLeaf // what counts that are read without a lock need

	// Scratch of rewriteBig: the answer and the due instant (Unix milliseconds) before the
	// change.
	wasHeld bool
	wasDue  int64
}

// newLeaf makes the leaf of a condition; its state is not set yet.
func newLeaf(id uint32, key string, n *segment.Node) *leaf {
	l := &leaf{id: id, key: key, node: n, diff: roaring.New(), inHeap: -1}
	switch n.Kind {
	case segment.KindActivity:
		l.base, l.Question = n.Activity.HoldsForNone(), fold.QuestionOf(n.Activity)
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
	return l.state != nil && (l.WindowMs > 0 || l.state.spec.Kind == fold.KindSpans)
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

// holds judges a value of the state at t.
func (l *leaf) holds(v []byte, t int64) bool {
	if v == nil {
		return l.base
	}
	if l.node.Kind == segment.KindAttribute {
		// The base of a timed attribute is the answer outside of all spans.
		return fold.InSpan(v, t) != l.base
	}
	return l.state.fold.Holds(&l.Question, v, t)
}

func (l *leaf) due(v []byte, t int64) int64 {
	if v == nil || !l.timed() {
		return never
	}
	return l.state.fold.Due(&l.Question, v, t)
}

// sourceKey names the events that an activity counts.
func sourceKey(a *segment.Activity) string {
	one := segment.Compare{Op: segment.OpGe, Micros: []segment.Int128{segment.Micros(segment.MicrosPerUnit)}}
	return (&segment.Activity{Event: a.Event, Did: true, Where: a.Where, Count: &one}).Key()
}
