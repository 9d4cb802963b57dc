package resolver

import (
	"fmt"
	"testing"
)

// TestF1PendingThroughAMergeEntersAgain merges two profiles of which one was in
// the flow before and one waits for it to be resumed: with after_exit the merged
// one enrols.
func TestF1PendingThroughAMergeEntersAgain(t *testing.T) {
	for _, c := range []struct {
		reentry, was, waits string // e-mail's profile wins
		want                uint64
	}{
		{"after_exit", "email", "external_id", 2},
		{"after_exit", "external_id", "email", 2},
		{"once", "email", "external_id", 1},
		{"once", "external_id", "email", 1},
	} {
		t.Run(c.reentry+" "+c.waits, func(t *testing.T) {
			r := newRecorder(t, DefaultSettings())
			name := map[string]string{"email": "a@x.io", "external_id": "visitor"}
			seg := r.segment(`{"kind":"activity","event":"viewed","window":{"last_days":1}}`)
			flow := r.flow(fmt.Sprintf(`{"name":"x","reentry":%q,"trigger":{"type":"segment_entered","segment_id":%q},"steps":[{"id":"s",%s,"next":null}]}`, c.reentry, seg, tagStep))
			r.events(ev(c.was, name[c.was])) // through the flow at once
			r.now += 2 * dayMs
			r.tick()
			r.must(CommandFlowPause, FlowID{flow})
			r.events(ev(c.waits, name[c.waits]))
			r.expectFlow(flow, FlowPaused, 1, 1)
			r.events(ev("type", "other", "email", name["email"], "external_id", name["external_id"]))
			r.must(CommandFlowResume, FlowID{flow})
			r.rest()
			r.expectFlow(flow, FlowLive, c.want, 0)
		})
	}
}
