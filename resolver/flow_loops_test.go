package resolver

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// loopFlow is a flow that starts again whenever an event happens.
func loopFlow(name, event, step string) string {
	return fmt.Sprintf(`{"name":%q,"reentry":"after_exit","trigger":{"type":"event","event":%q},"steps":[{"id":"s",%s,"next":null}]}`, name, event, step)
}

const (
	mailStep = `"type":"email","subject":"s","body":"b"`
	callStep = `"type":"webhook","url":"https://example.com/x"`
	tagStep  = `"type":"tag","add":["x"]`
)

// pump reports all items of a kind as sent, and what follows of that, until
// nothing is left or so many were sent. A millisecond passes with each.
func (r *recorder) pump(kind string, most int) (sent int) {
	r.t.Helper()
	for sent < most {
		list := r.due(kind)
		if len(list) == 0 {
			break
		}
		for _, it := range list {
			r.now++
			r.must(messages.CommandOutboxDone, outbox.Done{Seq: it.Seq, Result: outbox.ResultSent})
			sent++
		}
	}
	return sent
}

func (r *recorder) expectCut(entered, cut uint64, flows ...string) {
	r.t.Helper()
	var n, c uint64
	for _, id := range flows {
		f := r.flowState(id)
		n, c = n+f.Counts.Entered, c+f.Counts.LoopsCut
	}
	if n != entered || c != cut {
		r.t.Fatalf("F1: %d enrolments and %d cut, want %d and %d", n, c, entered, cut)
	}
}

func TestF1LoopThroughSentMailIsCut(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, withoutOptIn())
	first := r.flow(loopFlow("first", "viewed", mailStep))
	loop := r.flow(loopFlow("loop", "email_sent", mailStep))
	r.events(ev("email", "a@x.io"))
	if n := r.pump(outbox.KindEmail, 1000); n != profile.MaxCaused+1 {
		t.Fatalf("F1: %d e-mails for one event", n)
	}
	r.expectCut(1, 0, first)
	r.expectCut(profile.MaxCaused, 1, loop)
	if n := r.m.flows.Loops; n != 1 {
		t.Fatalf("the metric tells of %d", n)
	}
	// Another minute, another person: both are counted by themselves.
	r.events(ev("email", "b@x.io"))
	r.pump(outbox.KindEmail, 1000)
	r.expectCut(2*profile.MaxCaused, 2, loop)
	r.now += 60_000
	r.events(ev("email", "a@x.io"))
	r.pump(outbox.KindEmail, 1000)
	r.expectCut(3*profile.MaxCaused, 3, loop)
}

func TestF1LoopThroughAnsweredCallsIsCut(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.flow(loopFlow("first", "viewed", tagStep))
	loop := r.flow(loopFlow("loop", automation.EventCompleted, callStep))
	r.events(ev("email", "a@x.io"))
	if n := r.pump(outbox.KindCall, 1000); n != profile.MaxCaused {
		t.Fatalf("F1: %d calls for one event", n)
	}
	r.expectCut(profile.MaxCaused, 1, loop)
}

func TestF1LoopsDoNotBreed(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, withoutOptIn())
	r.flow(loopFlow("first", "viewed", tagStep))
	a := r.flow(loopFlow("a", automation.EventCompleted, mailStep))
	b := r.flow(loopFlow("b", automation.EventCompleted, mailStep))
	r.events(ev("email", "a@x.io"))
	f, g := r.flowState(a).Counts, r.flowState(b).Counts
	if n := f.Entered + g.Entered; n != profile.MaxCaused || f.LoopsCut+g.LoopsCut == 0 {
		t.Fatalf("F1: one event began %d enrolments, %d were cut", n, f.LoopsCut+g.LoopsCut)
	}
	if n := len(r.due(outbox.KindEmail)); n != profile.MaxCaused {
		t.Fatalf("F1: %d e-mails for one event", n)
	}
}

// TestF1LoopsThatTakeTheirTimeGoOn has a loop of a minute, whose rounds fall due
// one record each or all with one.
func TestF1LoopsThatTakeTheirTimeGoOn(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.flow(loopFlow("first", "viewed", tagStep))
	loop := r.flow(loopFlow("loop", automation.EventCompleted, `"type":"wait","seconds":60`))
	r.events(ev("email", "a@x.io"))
	for range 100 {
		r.now += 60_000
		r.tick()
	}
	r.expectCut(101, 0, loop)
	r.now += 200 * 60_000
	r.tick()
	r.rest()
	r.expectCut(301, 0, loop)
}

// TestF1WhatOthersCauseIsNotCut has events, calls, dates and segments from
// outside begin more enrolments in a minute than the service itself may.
func TestF1WhatOthersCauseIsNotCut(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	on := r.flow(loopFlow("on", "viewed", tagStep))
	seg := r.segment(`{"kind":"attribute","field":"attributes.plan","op":"=","value":"pro"}`)
	in := r.flow(`{"name":"in","reentry":"after_exit","trigger":{"type":"segment_entered","segment_id":"` + seg + `"},"steps":[{"id":"s",` + tagStep + `,"next":null}]}`)
	call := r.flow(`{"name":"call","reentry":"after_exit","trigger":{"type":"api"},"steps":[{"id":"s",` + tagStep + `,"next":null}]}`)
	const n = 2 * profile.MaxCaused
	for i := range n {
		r.events(ev("email", "a@x.io", "attributes", fmt.Sprintf(`{"plan":%q}`, []string{"pro", "free"}[i%2])))
		r.must(automation.CommandTrigger, automation.Trigger{ID: call, Email: "a@x.io"})
	}
	r.expectCut(n+n/2+n, 0, on, in, call)
}

// TestF1CausedCountsThroughMerge merges one profile into another: of the two
// remaining allowances, the smaller is left.
func TestF1CausedCountsThroughMerge(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.flow(loopFlow("first", "viewed", tagStep))
	second := r.flow(`{"name":"second","reentry":"after_exit","trigger":{"type":"event","event":"flow_completed","where":[{"property":"flow_name","op":"=","value":"first"}]},"steps":[{"id":"s",` + tagStep + `,"next":null}]}`)
	for range 40 {
		r.events(ev("external_id", "b"))
	}
	r.events(ev("email", "a@x.io"))
	r.expectCut(41, 0, second)
	r.events(eventlog.Event{Type: []byte("other"), ExternalID: []byte("b"), Email: []byte("a@x.io")})
	for range 30 {
		r.events(ev("email", "a@x.io"))
	}
	r.expectCut(1+profile.MaxCaused, 40+30-profile.MaxCaused, second)
}
