package resolver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
)

// at is an event with a time of its own.
func at(ms int64, fields ...string) eventlog.Event {
	e := ev(fields...)
	e.HasTime, e.TimeMs = true, ms
	return e
}

// TestS1LateEventCountsInWindowsByItsOwnTime: an event that comes late is in a window
// only as long as its own time is, and enters none that is over (S1, S2).
func TestS1LateEventCountsInWindowsByItsOwnTime(t *testing.T) {
	t.Parallel()
	const day = 86_400_000
	r := newRecorder(t, DefaultSettings())
	twoDays := r.segment(`{"kind":"activity","event":"viewed","window":{"last_days":2}}`)
	twice := r.segment(`{"kind":"activity","event":"viewed","window":{"last_days":2},"count":{"op":">=","value":2}}`)
	r.events(at(r.now-3*day, "email", "ada@x.io"))
	if n := r.countIn(twoDays); n != 0 {
		t.Fatalf("%d in a window that was over", n)
	}
	// The later one comes first: the window must end with it.
	r.events(at(r.now-day/2, "email", "ada@x.io"), at(r.now-day, "email", "ada@x.io"))
	for _, c := range []struct {
		after       int64
		once, twice int
	}{{0, 1, 1}, {day - 1, 1, 1}, {day, 1, 0}, {3*day/2 - 1, 1, 0}, {3 * day / 2, 0, 0}} {
		from := r.now
		r.now += c.after
		if a, b := r.countIn(twoDays), r.countIn(twice); a != c.once || b != c.twice {
			t.Errorf("after %d ms: %d and %d members, expected %d and %d", c.after, a, b, c.once, c.twice)
		}
		r.now = from
	}
}

// TestAgeOfAnEvent: what is too old is refused, and what is older than a day triggers no
// flow; records of older rules have no such limits, nor have imports.
func TestAgeOfAnEvent(t *testing.T) {
	t.Parallel()
	const hour = 3_600_000
	for _, c := range []struct {
		age, maxAge, flowAge int
		accepted, enrols     bool
	}{
		{0, 0, 0, true, true}, {23, 0, 0, true, true}, {24, 0, 0, true, false}, {720, 0, 0, true, false}, {721, 0, 0, false, false},
		{48, 100, 72, true, true}, {101, 100, 72, false, false},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			s := DefaultSettings()
			s.MaxEventAgeHours, s.FlowEventAgeHours = c.maxAge, c.flowAge
			r := newRecorder(t, s)
			flow := r.flow(`{"name":"x","trigger":{"type":"event","event":"viewed"},"steps":[{"id":"t","type":"tag","add":["x"],"next":null}]}`)
			e := at(r.now-int64(c.age)*hour, "email", "ada@x.io")
			o := r.events(e).Events[0]
			if (o.Status == EventAccepted) != c.accepted || !c.accepted && !strings.HasPrefix(o.Refusal.Message, "timestamp is more than ") {
				t.Errorf("status %d, %v", o.Status, o.Refusal)
			}
			if n := r.flowState(flow).Counts.Entered; (n == 1) != c.enrols {
				t.Errorf("%d entered the flow", n)
			}
			e.Email = []byte("grace@x.io")
			before := r.flowState(flow).Counts.Entered
			if o := r.eventsUnder(0, e).Events[0]; o.Status != EventAccepted || r.flowState(flow).Counts.Entered != before+1 {
				t.Errorf("under the old rules: status %d, %v", o.Status, o.Refusal)
			}
		})
	}
}
