package engine

import (
	"testing"

	"github.com/musterhq/muster/segment"
)

// TestS2MergeSaysWhatIsPending: a profile that a new definition turned out of a
// segment, and that becomes part of another before that was said, has left by
// the time of the merge. Nothing is said of it afterwards, when the winner may
// have been erased with all that history has of both.
func TestS2MergeSaysWhatIsPending(t *testing.T) {
	e := New()
	e.Advance(1000, 1)
	finish := func(budget int) {
		for range 10 {
			if c := nextChunk(t, e); c != nil {
				if err := e.Load(c, func(o uint32) uint32 { return o }); err != nil {
					t.Fatal(err)
				}
			}
			e.Continue(budget)
		}
	}
	defined(t, e, "s", `{"kind":"list","list_id":"vip","member":false}`, 1)
	finish(100)
	for o := range uint32(2) {
		e.Create(o)
		e.Profile(o, &segment.Facts{}, AllFields)
		e.Evaluate(o)
	}
	if n := len(e.Transitions()); n != 2 {
		t.Fatalf("%d entered, not 2", n)
	}
	defined(t, e, "s", `{"kind":"list","list_id":"vip"}`, 2)
	finish(0) // its transition is not emitted yet
	if n := len(e.Transitions()); n != 0 || !e.hasPending {
		t.Fatalf("%d were told at once; pending: %v", n, e.hasPending)
	}
	e.Touch(0)
	e.Touch(1)
	e.Merge(0, 1)
	e.Profile(0, &segment.Facts{}, AllFields)
	e.Evaluate(0)
	said := e.Transitions()
	if len(said) != 1 || said[0].Ordinal != 1 || said[0].Entered || said[0].Cause != segment.CauseDefinition {
		t.Fatalf("with the merge %+v was said", said)
	}
	e.Touch(0)
	e.Erase(0)
	if said := e.Transitions(); len(said) != 1 || said[0].Ordinal != 0 || said[0].Entered {
		t.Fatalf("with the erasure %+v was said", said)
	}
	finish(100)
	if said := e.Transitions(); len(said) != 0 {
		t.Fatalf("after the erasure %+v was said", said)
	}
}
