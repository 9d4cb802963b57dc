package resolver

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/automation"
)

// mailOn is a flow on a segment whose only step sends an e-mail.
func mailOn(trigger, segment string) string {
	return fmt.Sprintf(`{"name":"x","trigger":{"type":%q,"segment_id":%q},"steps":[{"id":"s",%s,"next":null}]}`, trigger, segment, mailStep)
}

// topUp adds credits and lets what continues then continue.
func (r *recorder) topUp(n int64) {
	r.t.Helper()
	r.must(CommandCreditsAdd, CreditsAdd{Amount: n})
	r.rest()
}

func (r *recorder) expectFlow(id, status string, entered, pending uint64) {
	r.t.Helper()
	if f := r.flowState(id); f.Status != status || f.Counts.Entered != entered || f.Pending != pending {
		r.t.Fatalf("F1: the flow is %s, %d entered, %d are to be enrolled; want %s, %d and %d", f.Status, f.Counts.Entered, f.Pending, status, entered, pending)
	}
}

const proPlan = `{"kind":"attribute","field":"attributes.plan","op":"=","value":"pro"}`

// TestF1WhoEntersWithTheLastCreditEnrolsAtTheTopUp has two flows on one segment
// and a credit for one of them: what the same record triggers behind the e-mail
// that takes it is not lost, whether it comes of an entry, of an exit, or of a
// flow that catches up.
func TestF1WhoEntersWithTheLastCreditEnrolsAtTheTopUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ trigger, attributes string }{
		{"segment_entered", `{"plan":"pro"}`},
		{"segment_exited", `{"plan":"free"}`},
	} {
		for _, most := range []int{bounds.Enrolments, 1} { // enrolments of a record
			t.Run(fmt.Sprint(c.trigger, most), func(t *testing.T) {
				r := newRecorder(t, withoutOptIn())
				r.m.flows.Bounds.Enrolments = most
				seg := r.segment(proPlan)
				if c.trigger == "segment_exited" {
					r.events(ev("email", "a@x.io", "attributes", `{"plan":"pro"}`))
				}
				first, second := r.flow(mailOn(c.trigger, seg)), r.flow(mailOn(c.trigger, seg))
				r.m.accounts[testAccount].EmailCredits = 1
				ada := r.events(ev("email", "a@x.io", "attributes", c.attributes)).Events[0].Profile
				r.rest()
				r.expectFlow(first, automation.Paused, 1, 0)
				r.expectFlow(second, automation.Paused, 0, 1)
				r.topUp(5)
				r.expectFlow(first, automation.Live, 1, 0)
				r.expectFlow(second, automation.Live, 1, 0)
				r.expectEnrolment(second, ada, "#1 s:queued completed")
			})
		}
	}
}

// TestF1WhoLeavesBeforeTheTopUpDoesNotEnrol: a profile that entered with the last
// credit is like who entered during the pause.
func TestF1WhoLeavesBeforeTheTopUpDoesNotEnrol(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, withoutOptIn())
	seg := r.segment(proPlan)
	r.flow(mailOn("segment_entered", seg))
	second := r.flow(mailOn("segment_entered", seg))
	r.m.accounts[testAccount].EmailCredits = 1
	r.events(ev("email", "a@x.io", "attributes", `{"plan":"pro"}`))
	r.expectFlow(second, automation.Paused, 0, 1)
	r.events(ev("email", "a@x.io", "attributes", `{"plan":"free"}`))
	r.expectFlow(second, automation.Paused, 0, 0)
	r.topUp(5)
	r.expectFlow(second, automation.Live, 0, 0)
}

// TestF1EditedSegmentEnrolsAllWhomCreditsStopped lets ten into a segment by its
// definition, with credits for five.
func TestF1EditedSegmentEnrolsAllWhomCreditsStopped(t *testing.T) {
	t.Parallel()
	for _, most := range []int{bounds.Enrolments, 3} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			n := newFlowNode(t, withoutOptIn(), 5, bounds.Steps, bounds.Scan)
			defer n.close()
			n.budget, n.m.flows.Bounds.Enrolments = most, most
			command := func(name string, args, reply any) {
				t.Helper()
				out := n.record(eventlog.KindCommand, eventlog.AppendCommand(nil, name, must.JSON(args)))
				if out.Refusal != nil {
					t.Fatal(out.Refusal)
				}
				if reply != nil {
					n.must(json.Unmarshal(out.Reply, reply))
				}
			}
			rest := func() {
				for n.m.Pending() > 0 {
					n.record(eventlog.KindContinue, nil)
				}
			}
			var seg struct{ ID string }
			command(CommandSegmentCreate, SegmentSave{Name: "s", Definition: json.RawMessage(`{"kind":"attribute","field":"attributes.plan","op":"=","value":"max"}`)}, &seg)
			var flow automation.Reply
			command(automation.CommandCreate, automation.Save{Definition: json.RawMessage(mailOn("segment_entered", seg.ID))}, &flow)
			command(automation.CommandPublish, automation.ID{ID: flow.ID}, nil)
			var evs []eventlog.Event
			for i := range 10 {
				evs = append(evs, ev("email", fmt.Sprintf("u%d@x.io", i), "attributes", `{"plan":"pro"}`))
			}
			n.record(eventlog.KindEvents, appendEvents(nil, evs))
			command(CommandSegmentUpdate, SegmentSave{ID: seg.ID, Name: "s", Definition: json.RawMessage(proPlan)}, nil)
			for chunk := n.work(); chunk != nil; chunk = n.work() {
				n.record(eventlog.KindChunk, chunk)
			}
			rest()
			if f, _ := n.view().Flows().Find(flow.ID); f.Status != automation.Paused || f.Counts.Entered != 5 || f.Pending != 5 {
				t.Fatalf("F1: the flow is %s, %d entered, %d are to be enrolled; want 5 and 5", f.Status, f.Counts.Entered, f.Pending)
			}
			n.crash() // R1
			command(CommandCreditsAdd, CreditsAdd{Amount: 100}, nil)
			rest()
			if f, _ := n.view().Flows().Find(flow.ID); f.Status != automation.Live || f.Counts.Entered != 10 || f.Pending != 0 {
				t.Fatalf("F1: the flow is %s, %d of 10 entered, %d are to be enrolled", f.Status, f.Counts.Entered, f.Pending)
			}
		})
	}
}

// TestF1EventsMissedWithTheLastCreditStayMissed: an event behind the e-mail that
// takes the last credit finds its flow paused, in the same record too.
func TestF1EventsMissedWithTheLastCreditStayMissed(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, withoutOptIn())
	flow := r.flow(loopFlow("x", "viewed", mailStep))
	r.m.accounts[testAccount].EmailCredits = 2
	r.events(eventlog.Event{Type: []byte("viewed"), Email: []byte("a@x.io")}, eventlog.Event{Type: []byte("viewed"), Email: []byte("b@x.io")}, eventlog.Event{Type: []byte("viewed"), Email: []byte("c@x.io")})
	r.rest()
	r.expectFlow(flow, automation.Paused, 2, 0)
	r.topUp(5)
	r.expectFlow(flow, automation.Live, 2, 0)
}
