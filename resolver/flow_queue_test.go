package resolver

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// manyFlows takes flows live that an event triggers.
func (r *recorder) manyFlows(n int) (ids []string) {
	r.t.Helper()
	for i := range n {
		ids = append(ids, r.flow(loopFlow(fmt.Sprint("f", i), "viewed", `"type":"wait","seconds":3600`)))
	}
	return ids
}

func people(n int, from int) (list []eventlog.Event) {
	for i := range n {
		list = append(list, eventlog.Event{Type: []byte("viewed"), Email: fmt.Appendf(nil, "u%d@x.io", from+i), Properties: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	return list
}

// TestL3ARecordEnrolsSoMany has a batch of events trigger many flows: each record
// begins no more enrolments than it may, what waits costs little memory, and in the
// end everybody is in each flow once, with the event that triggered it.
func TestL3ARecordEnrolsSoMany(t *testing.T) {
	t.Parallel()
	const flows, size = 50, 200
	r := newRecorder(t, DefaultSettings())
	ids := r.manyFlows(flows)
	last, records := r.m.flows.Enrolments, 0
	check := func() {
		n := r.m.flows.Enrolments - last
		last, records = last+n, records+1
		if n > uint64(bounds.Enrolments)+profile.MaxCaused {
			t.Fatalf("L3: a record began %d enrolments", n)
		}
	}
	rows := r.rows.Rows()
	out := r.events(people(size, 0)...)
	ada := out.Events[size-1].Profile
	position := out.enrolments
	check()
	if n := r.rows.Rows() - rows; n > size+bounds.Enrolments {
		t.Fatalf("L3: a record recorded %d events", n)
	}
	q := r.m.accounts[testAccount].Flows
	if n := q.Deferred(); n == 0 || n > size || q.Passed(position) || position == (automation.Position{}) {
		t.Fatalf("%d entries wait for %d events", n, size)
	}
	r.hashedEntry(state.WaitingKey(testAccount, 0))
	// Later profiles wait behind.
	r.events(people(1, size)...)
	check()
	r.expectEnrolment(ids[0], r.out.Events[0].Profile, "none")
	for r.m.Pending() > 0 {
		r.continueOnce()
		check()
	}
	if !q.Passed(position) || q.Deferred() > 0 {
		t.Fatal("the queue is not worked off")
	}
	for _, id := range ids {
		if f := r.flowState(id); f.Counts.Entered != size+1 {
			t.Fatalf("F1: %d of %d are in a flow, after %d records", f.Counts.Entered, size+1, records)
		}
		enrolments, err := r.view().Flows().EnrolmentsOf(id, ada.Ordinal())
		if err != nil || len(enrolments) != 1 || string(enrolments[0].Event) != fmt.Sprintf(`{"n":%d}`, size-1) {
			t.Fatalf("F1: the last one's enrolments are %+v, %v", enrolments, err)
		}
	}
	if records < flows*size/bounds.Enrolments {
		t.Fatalf("it took %d records", records)
	}
}

// TestF1WhoWaitsIsJudgedWhenEnrolled does to people what may happen while they
// wait.
func TestF1WhoWaitsIsJudgedWhenEnrolled(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	seg := r.segment(`{"kind":"activity","event":"viewed"}`)
	in := r.flow(`{"name":"in","trigger":{"type":"segment_entered","segment_id":"` + seg + `"},"steps":[{"id":"s",` + tagStep + `,"next":null}]}`)
	on := r.manyFlows(2)
	call := r.flow(`{"name":"call","reentry":"after_exit","trigger":{"type":"api"},"steps":[{"id":"s",` + tagStep + `,"next":null}]}`)
	r.m.flows.Bounds.Enrolments = 1
	var ids []ProfileID
	for _, e := range r.events(people(5, 0)...).Events {
		ids = append(ids, e.Profile)
	}
	// One calls, and need not wait.
	r.must(automation.CommandTrigger, automation.Trigger{ID: call, Email: "u4@x.io"})
	r.expectEnrolment(call, ids[4], "#1 s:done completed")
	r.must(CommandContactErase, ContactErase{ID: ids[2].String()})
	r.events(eventlog.Event{Type: []byte("other"), Email: []byte("u3@x.io"), ExternalID: []byte("b")}, eventlog.Event{Type: []byte("other"), Email: []byte("u9@x.io")})
	r.must(automation.CommandPause, automation.ID{ID: in})
	r.must(automation.CommandPause, automation.ID{ID: on[0]})
	r.must(automation.CommandDelete, automation.ID{ID: on[0]})
	r.rest()
	r.expectEnrolment(on[1], ids[4], "#1 s:pending in_progress")
	if n := r.flowState(on[1]).Counts.Entered; n != 4 {
		t.Fatalf("F1: %d were enrolled of 4 who are left", n)
	}
	if f := r.flowState(in); f.Counts.Entered+f.Pending != 4 || f.Pending == 0 {
		t.Fatalf("F1: a paused flow has enrolled %d, %d wait for it", f.Counts.Entered, f.Pending)
	}
	r.must(automation.CommandResume, automation.ID{ID: in})
	r.rest()
	if n := r.flowState(in).Counts.Completed; n != 4 {
		t.Fatalf("F1: %d of 4 completed the flow after it was resumed", n)
	}
}

// TestR1F1WhoWaitsSurvivesCrashes crashes while people wait, with and without a
// checkpoint, and compares with a machine whose records have room for all.
func TestR1F1WhoWaitsSurvivesCrashes(t *testing.T) {
	t.Parallel()
	run := func(budget int, crash bool) string {
		n := newFlowNode(t, withoutOptIn(), 0, bounds.Steps, bounds.Scan)
		defer func() { n.close() }()
		n.budget = budget
		n.m.flows.Bounds.Enrolments = budget
		var ids []string
		for i := range 7 {
			def := loopFlow(fmt.Sprint("f", i), "viewed", tagStep)
			out := n.record(eventlog.KindCommand, eventlog.AppendCommand(nil, automation.CommandCreate, must.JSON(automation.Save{Definition: []byte(def)})))
			var x automation.Reply
			n.must(json.Unmarshal(out.Reply, &x))
			n.record(eventlog.KindCommand, eventlog.AppendCommand(nil, automation.CommandPublish, must.JSON(automation.ID{ID: x.ID})))
			ids = append(ids, x.ID)
		}
		for i := range 3 {
			n.record(eventlog.KindEvents, appendEvents(nil, people(20, 10*i)))
			if crash {
				n.checkpoint()
				n.record(eventlog.KindContinue, nil)
				n.crash()
			}
		}
		for k := 0; n.m.Pending() > 0; k++ {
			n.record(eventlog.KindContinue, nil)
			if crash && k%5 == 0 {
				n.crash()
			}
			if k > 2000 {
				t.Fatal("work without an end")
			}
		}
		sum, err := n.m.Hash()
		n.must(err)
		if n.replayed() != sum {
			t.Fatal("R1: the state differs from that of a machine that never crashed")
		}
		text := ""
		for _, id := range ids {
			f, _ := n.account().Flows.Find(id)
			for o := range n.account().Profiles.Headers.Count {
				enrolments, err := n.view().Flows().EnrolmentsOf(id, o)
				n.must(err)
				text += fmt.Sprint(o, ":")
				for _, w := range enrolments {
					text += fmt.Sprint(w.Number, w.Status, string(w.Event), " ")
				}
			}
			text += fmt.Sprint(f.Counts.Entered, f.Counts.Completed, "\n")
		}
		return text
	}
	want := run(bounds.Enrolments, false)
	for _, budget := range []int{1, 5, 13} {
		if got := run(budget, true); got != want {
			t.Fatalf("F1: with %d in a record the enrolments are\n%s, with room for all\n%s", budget, got, want)
		}
	}
}

// hashedEntry checks that an entity is part of the state's hash.
func (r *recorder) hashedEntry(key string) {
	r.t.Helper()
	hash := func() string {
		sum, err := r.m.Hash()
		if err != nil {
			r.t.Fatal(err)
		}
		return sum
	}
	before, value := hash(), r.m.store.Entities[key]
	r.m.store.Entities[key] = append([]byte{}, value[:len(value)-1]...)
	if hash() == before {
		r.t.Fatal("R1: an entry that differs gives the same hash")
	}
	r.m.store.Entities[key] = value
}
