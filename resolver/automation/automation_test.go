package automation

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/state"
)

const (
	onViewed = `"trigger":{"type":"event","event":"viewed"}`
	mailed   = `{"name":"mail",` + onViewed + `,"steps":[{"id":"m","type":"email","subject":"s","body":"b","next":null}]}`
)

// TestF1StepsHaveTheirEffectsInOrder takes a profile through a flow, over a wait and a call,
// with a reload at each stop.
func TestF1StepsHaveTheirEffectsInOrder(t *testing.T) {
	w := newWorld(t, 1)
	id := w.live(`{"name":"x",` + onViewed + `,"steps":[
		{"id":"t","type":"tag","add":["new"],"next":"w"},
		{"id":"w","type":"wait","seconds":60,"next":"c"},
		{"id":"c","type":"webhook","url":"https://example.com/","method":"POST","body":"{}","next":"m"},
		{"id":"m","type":"email","subject":"s","body":"b","next":null}]}`)
	w.event("other", 0)
	w.expect()
	w.event("viewed", 0)
	w.expect("flow_entered 0", `update 0: {"tags":["new"]}`)
	w.reload()
	if due, ok := w.flows.NextDueMs(); !ok || due > w.now {
		t.Fatalf("a state just loaded looks for what is due first, not at %d", due)
	}
	w.now += 59_999
	w.event("other", 0)
	w.expect()
	if due, ok := w.flows.NextDueMs(); !ok || due != w.now+1 {
		t.Fatalf("the wait is due at %d, not %d", due, w.now+1)
	}
	w.now++
	w.event("other", 0)
	w.expect(`call https://example.com/ for 0 with {"a":1}`)
	w.reload()
	w.answer(id, 99)
	w.expect()
	w.answer(id, w.calls)
	w.expect("mail s to 0", "flow_completed 0")
	w.event("viewed", 0)
	w.expect()
	if c := w.state(id).Counts; c.Entered != 1 || c.Completed != 1 || c.Steps[2].Results[flows.Delivered] != 1 {
		t.Fatalf("%+v", c)
	}
}

// TestL3DeferredEnrolmentsKeepTheirOrder has more triggers than a record has room for: all
// are enrolled once, the first first, whatever is loaded again in between.
func TestL3DeferredEnrolmentsKeepTheirOrder(t *testing.T) {
	const people = 10
	for _, reload := range []bool{false, true} {
		w := newWorld(t, people+1)
		w.run.Bounds.Enrolments = 3
		id := w.live(mailed)
		var want []string
		for o := range uint32(people) {
			want = append(want, fmt.Sprintf("flow_entered %d", o), fmt.Sprintf("mail s to %d", o), fmt.Sprintf("flow_completed %d", o))
		}
		w.event("viewed", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
		behind := w.run.Position()
		if n := w.flows.Deferred(); n != people-3 || w.flows.Passed(behind) {
			t.Fatalf("%d triggers are deferred", n)
		}
		w.event("viewed", people) // later profiles wait behind
		want = append(want, "flow_entered 10", "mail s to 10", "flow_completed 10")
		for n := 0; w.flows.Busy(w.now); n++ {
			if reload {
				before := w.hash()
				w.reload()
				if !bytes.Equal(w.hash(), before) {
					t.Fatal("R1: a state that is loaded differs")
				}
			}
			w.drainOnce()
			if n > people {
				t.Fatal("work without an end")
			}
		}
		w.expect(want...)
		if !reload && !w.flows.Passed(behind) {
			t.Fatal("the queue is worked off, but not behind the record")
		}
		if c := w.state(id).Counts; c.Entered != people+1 || c.Completed != people+1 {
			t.Fatalf("%+v", c)
		}
	}
}

// TestF1TheLastCreditPauses: a flow without credits pauses, keeps its enrolments, and goes
// on with them.
func TestF1TheLastCreditPauses(t *testing.T) {
	w := newWorld(t, 2)
	w.credits = 1
	id := w.live(strings.Replace(mailed, `"next":null}`, `"next":"n"},{"id":"n","type":"email","subject":"t","body":"b","next":null}`, 1))
	w.event("viewed", 0, 1)
	w.expect("flow_entered 0", "mail s to 0")
	if f := w.state(id); f.Status != Paused || f.PausedFor != PausedForCredits || f.InProgress != 1 {
		t.Fatalf("%+v", f)
	}
	if _, refusal := w.do(CommandResume, ID{ID: id}); refusal == nil {
		t.Fatal("a flow went live without credits")
	}
	w.credits = 5
	w.flows.ResumeForCredits()
	w.rest()
	w.expect("mail t to 0", "flow_completed 0")
	if f := w.state(id); f.Status != Live || f.Counts.Entered != 1 || f.Counts.Completed != 1 {
		t.Fatalf("%+v", f)
	}
}

// TestF1AFullOutboxHoldsStepsUp: a step that finds no room waits, and is carried out once.
func TestF1AFullOutboxHoldsStepsUp(t *testing.T) {
	w := newWorld(t, 1)
	w.live(mailed)
	w.full = true
	w.event("viewed", 0)
	w.expect("flow_entered 0")
	w.full = false
	w.now += 24 * 3_600_000
	w.event("other", 0)
	w.expect("mail s to 0", "flow_completed 0")
}

// TestF1LoopsEnd: two flows that start each other at one instant stop.
func TestF1LoopsEnd(t *testing.T) {
	w := newWorld(t, 1)
	loop := func(name, event string) string {
		return w.live(`{"name":"` + name + `","reentry":"after_exit","trigger":{"type":"event","event":"` + event + `"},"steps":[{"id":"e","type":"exit"}]}`)
	}
	first, second := loop("a", "viewed"), loop("b", EventExited)
	third := loop("c", EventExited)
	w.event("viewed", 0)
	cut := uint64(0)
	for _, id := range []string{first, second, third} {
		cut += w.state(id).Counts.LoopsCut
	}
	if cut == 0 || cut != w.run.Loops {
		t.Fatalf("%d loops are cut, %d counted", cut, w.run.Loops)
	}
}

// TestCallsEnrolOncePerKey: a repeat of a call does not enrol again, and says so.
func TestCallsEnrolOncePerKey(t *testing.T) {
	w := newWorld(t, 2)
	id := w.live(`{"name":"x","reentry":"after_exit","trigger":{"type":"api"},"steps":[{"id":"e","type":"exit"}]}`)
	call := Trigger{ID: id, Email: "u1@x.io", Key: "k"}
	for _, enrolled := range []bool{true, false} {
		if r := w.must(CommandTrigger, call).(Triggered); r.Enrolled != enrolled || r.Profile != w.ProfileID(1).String() {
			t.Fatalf("%+v", r)
		}
	}
	call.Email = "u0@x.io"
	for _, c := range []Trigger{call, {ID: "flw_0", Email: "u0@x.io"}, {ID: id, Email: "nobody@x.io"}, {ID: id, Email: "u0@x.io", Key: strings.Repeat("k", maxKeyBytes+1)}} {
		if _, refusal := w.do(CommandTrigger, c); refusal == nil {
			t.Fatalf("%+v was carried out", c)
		}
	}
	if n := w.state(id).Counts.Entered; n != 1 {
		t.Fatalf("%d entered", n)
	}
}

// TestF1MergedAndErasedProfilesLeaveNothing: of two enrolments in progress the further one
// continues for the winner of a merge; of an erased profile the numbers stay.
func TestF1MergedAndErasedProfilesLeaveNothing(t *testing.T) {
	w := newWorld(t, 3)
	id := w.live(`{"name":"x",` + onViewed + `,"steps":[
		{"id":"a","type":"wait","seconds":60,"next":"b"},
		{"id":"b","type":"wait","seconds":3600,"next":"m"},
		{"id":"m","type":"email","subject":"s","body":"b","next":null}]}`)
	w.event("viewed", 0)
	w.now += 60_000
	w.event("viewed", 1, 2)
	w.record(func(tx *feature.Tx) { w.flows.Merge(tx, 1, 0) })
	if enrolments, err := w.flows.EnrolmentsOf(id, 1); err != nil || len(enrolments) != 2 || enrolments[0].Reason != flows.ByMerge || enrolments[1].Step != 1 {
		t.Fatalf("%+v, %v", enrolments, err)
	}
	var keys []string
	w.record(func(*feature.Tx) { keys = w.flows.Erase(2) })
	if len(keys) != 1 || keys[0] != state.EnrolmentKey(testAccount, 0, 2) {
		t.Fatalf("%q", keys)
	}
	for _, o := range []uint32{0, 2} {
		if ids := w.flows.IDsOf(o); len(ids) != 0 {
			t.Fatalf("profile %d is in %q", o, ids)
		}
	}
	w.reload()
	if in := w.flows.ProfilesIn(id, true, 0, 9); len(in) != 1 || in[0] != 1 {
		t.Fatalf("profiles %d are in the flow", in)
	}
	w.effects = nil
	w.now += 3_600_000
	w.event("other", 0)
	w.expect("mail s to 1", "flow_completed 1")
	if c := w.state(id).Counts; c.Entered != 3 || c.Completed != 1 || c.Exited != 2 {
		t.Fatalf("%+v", c)
	}
}

// TestDeletedFlowsGoBitByBit: what is stored of a deleted flow is removed by later records.
func TestDeletedFlowsGoBitByBit(t *testing.T) {
	w := newWorld(t, 5)
	w.run.Bounds.Scan = 2
	id := w.live(strings.Replace(mailed, `"type":"email","subject":"s","body":"b"`, `"type":"wait","seconds":60`, 1))
	w.event("viewed", 0, 1, 2, 3, 4)
	if _, refusal := w.do(CommandDelete, ID{ID: id}); refusal == nil {
		t.Fatal("a live flow was deleted")
	}
	w.must(CommandPause, ID{ID: id})
	w.must(CommandDelete, ID{ID: id})
	if w.flows.Has(id) || !w.flows.Busy(w.now) {
		t.Fatal("a deleted flow is there, or leaves nothing to do")
	}
	w.rest()
	w.reload()
	for o := range uint32(5) {
		if b, err := w.store.Entity(state.EnrolmentKey(testAccount, 0, o)); b != nil || err != nil {
			t.Fatalf("%q is left of profile %d, %v", b, o, err)
		}
	}
	if next := w.live(mailed); w.state(next).Number != 1 {
		t.Fatal("the number of a deleted flow was used again")
	}
}
