package resolver

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/resolver/automation"
)

// born makes people whose date is a day of January 2030.
func (r *recorder) born(name string, n, day int) (ids []ProfileID) {
	r.t.Helper()
	for i := range n {
		ids = append(ids, r.events(ev("type", "other", "email", fmt.Sprintf("%s%d@x.io", name, i), "attributes", fmt.Sprintf(`{"day":"2030-01-%02d"}`, day))).Events[0].Profile)
	}
	return ids
}

// at lets it be an hour of a day of January 2030.
func (r *recorder) at(day, hour int64) {
	r.now = 1_893_456_000_000 + (day-1)*dayMs + hour*3_600_000
}

// expectIn checks how many of a group are or were in a flow.
func (r *recorder) expectIn(flow, group string, ids []ProfileID, want int) {
	r.t.Helper()
	n := 0
	for _, p := range ids {
		if r.newestEnrolment(flow, p) != "none" {
			n++
		}
	}
	if n != want {
		r.t.Fatalf("F1: of those %s %d enrolled, want %d", group, n, want)
	}
}

const dayFlow = `{"name":"x","reentry":"after_exit","trigger":{"type":"date","field":"attributes.day","at":"09:00","repeat":%q},"steps":[{"id":"t","type":"tag","add":["b"],"next":null}]}`

// TestF1DatesMissedInAnyPauseStayMissed pauses a flow again and again, faster
// than its records can work off what is due: what was due while it was live
// enrols, what was due during whichever pause does not.
func TestF1DatesMissedInAnyPauseStayMissed(t *testing.T) {
	t.Parallel()
	for _, repeat := range []string{"once", "yearly"} {
		t.Run(repeat, func(t *testing.T) {
			r := newRecorder(t, DefaultSettings())
			r.m.flows.Bounds.Steps = 5
			r.at(1, 0)
			flow := r.flow(fmt.Sprintf(dayFlow, repeat))
			live, missed, between, missedToo, later := r.born("a", 40, 2), r.born("b", 10, 3), r.born("c", 10, 5), r.born("d", 10, 6), r.born("e", 10, 7)
			r.rest()
			r.at(2, 9)
			r.tick() // 5 of the first
			r.must(automation.CommandPause, automation.ID{ID: flow})
			r.at(4, 0)
			r.must(automation.CommandResume, automation.ID{ID: flow})
			r.must(automation.CommandPause, automation.ID{ID: flow}) // 5 more
			r.must(automation.CommandResume, automation.ID{ID: flow})
			r.at(5, 10)
			r.must(automation.CommandPause, automation.ID{ID: flow}) // 5 more
			r.at(6, 10)
			r.must(automation.CommandResume, automation.ID{ID: flow})
			r.must(automation.CommandPause, automation.ID{ID: flow}) // 5 more
			r.must(automation.CommandResume, automation.ID{ID: flow})
			if n := r.flowState(flow).Counts.Entered; n == 0 || n >= uint64(len(live)) {
				t.Fatalf("%d of %d were enrolled by now, so nothing is tested", n, len(live))
			}
			r.rest()
			r.at(7, 9)
			r.tick()
			r.rest()
			r.expectIn(flow, "due while the flow was live", live, len(live))
			r.expectIn(flow, "due during the first pause", missed, 0)
			r.expectIn(flow, "due between pauses", between, len(between))
			r.expectIn(flow, "due during a later pause", missedToo, 0)
			r.expectIn(flow, "due since", later, len(later))
			// Nothing is kept of pauses that are over for everybody.
			r.must(automation.CommandPause, automation.ID{ID: flow})
			if f := r.flowState(flow); len(f.Pauses) != 0 {
				t.Fatalf("L3: %d pauses are kept without an enrolment", len(f.Pauses))
			}
		})
	}
}

// TestF1DatesFoundLateWereMissedInTheirPause pauses a flow while it still looks
// for the dates of those who were there before it.
func TestF1DatesFoundLateWereMissedInTheirPause(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.m.flows.Bounds.Scan = 1
	r.at(1, 0)
	missed, live := r.born("b", 5, 3), r.born("c", 5, 5)
	flow := r.draft(fmt.Sprintf(dayFlow, "once"))
	r.must(automation.CommandPublish, automation.ID{ID: flow})
	r.at(2, 0)
	r.must(automation.CommandPause, automation.ID{ID: flow})
	r.at(4, 0)
	r.must(automation.CommandResume, automation.ID{ID: flow})
	r.at(6, 0)
	r.must(automation.CommandPause, automation.ID{ID: flow})
	r.must(automation.CommandResume, automation.ID{ID: flow})
	if !r.flowState(flow).Scanning {
		t.Fatal("everybody was looked at already, so nothing is tested")
	}
	r.rest()
	r.expectIn(flow, "due during the first pause", missed, 0)
	r.expectIn(flow, "due between pauses", live, len(live))
}

// TestL3PausesAreBounded pauses a flow more often than it remembers. Pauses with
// nothing due between them are one, so that nothing is lost by that.
func TestL3PausesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.m.flows.Bounds.Steps = 1
	r.at(1, 0)
	flow := r.flow(fmt.Sprintf(dayFlow, "once"))
	live, missed, between := r.born("a", 4*automation.MaxPauses, 2), r.born("b", 10, 3), append(r.born("c", 5, 4), r.born("d", 5, 5)...)
	r.rest()
	r.at(2, 9)
	r.tick()
	pause := func(ms int64) {
		r.must(automation.CommandPause, automation.ID{ID: flow})
		r.now += ms
		r.must(automation.CommandResume, automation.ID{ID: flow})
	}
	pause(47 * 3_600_000) // to 8:00 on the fourth
	r.now += 2 * 3_600_000
	for range 3 * automation.MaxPauses {
		pause(1)
		r.now++
		if n := len(r.flowState(flow).Pauses); n > automation.MaxPauses {
			t.Fatalf("L3: a flow remembers %d pauses", n)
		}
	}
	r.at(5, 10)
	for range 3 {
		pause(1)
	}
	if n := r.flowState(flow).Counts.Entered; n >= uint64(len(live)) {
		t.Fatal("all were enrolled by now, so nothing is tested")
	}
	r.rest()
	r.expectIn(flow, "due while the flow was live", live, len(live))
	r.expectIn(flow, "due during the first pause", missed, 0)
	r.expectIn(flow, "due between pauses", between, len(between))
}
