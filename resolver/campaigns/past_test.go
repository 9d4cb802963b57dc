package campaigns

import (
	"reflect"
	"strings"
	"testing"
)

// TestEachRunKeepsItsRecord: a campaign that is sent again keeps what is known of the send
// before, and what its recipients do later counts for the run that reached them.
func TestEachRunKeepsItsRecord(t *testing.T) {
	w := newWorld(t)
	first, second := w.list("first", 0, 1), w.list("second", 2)
	c := w.campaign()
	send := func(run int, list string, results ...string) {
		w.now += 1000
		w.start(Start{ID: c.ID, Plan: Plan{ListIDs: []string{list}, BatchSize: 10}})
		b := w.batch(c.ID, run)
		if len(b.Recipients) != len(results) {
			t.Fatalf("run %d goes to %d people", run, len(b.Recipients))
		}
		for i, x := range b.Recipients {
			w.do(CommandResult, Result{ID: c.ID, Run: run, Ordinal: x.Ordinal, Result: results[i], Reason: "no such user"}, nil)
		}
		w.do(CommandFinish, Finish{ID: c.ID, Run: run}, nil)
	}
	send(1, first, ResultSent, ResultBounced)
	send(2, second, ResultSent)
	open := func(ordinal uint32) { w.state.CountEngagement(c.ID, ordinal, "email", 0, Opened, 0) }
	open(0)
	check := func(want ...RunNumbers) {
		t.Helper()
		got := w.state.Runs(c)
		for i := range got {
			got[i].ListIDs, got[i].SegmentIDs, got[i].StartedMs, got[i].FinishedMs, got[i].Skipped, got[i].Errors = nil, nil, 0, 0, nil, nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
	one := RunNumbers{PastRun: PastRun{Run: 1, Status: RunDone, RunCounts: RunCounts{Total: 2, Sent: 1, Failed: 1}, Bounced: 1}, Opened: 1}
	two := RunNumbers{PastRun: PastRun{Run: 2, Status: RunDone, RunCounts: RunCounts{Total: 1, Sent: 1}}}
	check(one, two)
	open(2)
	two.Opened = 1
	check(one, two)
	if run, _ := w.state.Run(c.ID); len(run.Past) != 1 || run.Past[0].StartedMs >= run.StartedMs || run.Past[0].Errors[0] != "no such user" || run.Past[0].ListIDs[0] != first {
		t.Fatalf("%+v", run.Past)
	}
	// More runs than are kept: the first stays.
	for n := 3; n <= maxPastRuns+10; n++ {
		send(n, second)
	}
	run, _ := w.state.Run(c.ID)
	if len(run.Past) != maxPastRuns || run.Past[0].Run != 1 || run.Past[1].Run != 11 {
		t.Fatalf("%d runs, %+v", len(run.Past), run.Past[:2])
	}
	if all := w.state.Runs(c); all[0].Opened != 1 || all[len(all)-1].Opened != 0 {
		t.Fatalf("%+v", all)
	}
	// A log of before runs were kept leads to the state that it led to.
	w.do(CommandStart1, Start{ID: w.campaign().ID, Plan: Plan{ListIDs: []string{first}, BatchSize: 1}, Variants: []Content{{}}}, nil)
	w.now += keptSentMs
	w.do(CommandDelete, Ref{ID: c.ID}, nil)
	for name := range w.host.sets.All() {
		if strings.HasPrefix(name, setName(c.Number, "")) {
			t.Errorf("the set %s is left", name)
		}
	}
	w.checked()
}
