package campaigns

import (
	"strings"
	"testing"
)

// TestC3ACrashedRunGivesBackItsCredits: a run left unfinished, as after a crash, gives
// back what its pending messages cost when the campaign is started again, and no credit
// twice (C3).
func TestC3ACrashedRunGivesBackItsCredits(t *testing.T) {
	w := newWorld(t)
	list := w.list("one", 0, 1, 2, 3)
	c := w.campaign()
	w.start(Start{ID: c.ID, Plan: Plan{ListIDs: []string{list}}})
	b := w.batch(c.ID, 1)
	w.do(CommandResult, Result{ID: c.ID, Run: 1, Ordinal: b.Recipients[0].Ordinal, Result: ResultSent}, nil)
	if w.host.credits != 996 {
		t.Fatalf("%d credits", w.host.credits)
	}
	w.state.runs[c.ID].stop(w.now, "the service crashed", false)
	if again := w.start(Start{ID: c.ID, Plan: Plan{ListIDs: []string{list}}}); again.Total != 3 || w.host.credits != 999 {
		t.Fatalf("%+v, %d credits", again, w.host.credits)
	}
	w.batch(c.ID, 2)
	w.do(CommandFinish, Finish{ID: c.ID, Run: 2, Stopped: "enough"}, nil)
	w.start(Start{ID: c.ID, Plan: Plan{ListIDs: []string{list}}})
	if w.host.credits != 999 {
		t.Fatalf("%d credits", w.host.credits)
	}
	w.checked()
}

// TestResultsReachTheProfileOnce: what became of a message is recorded on the profile by
// the first report of it, under an old epoch only that it was sent, and webhooks are told
// of the end of the run.
func TestResultsReachTheProfileOnce(t *testing.T) {
	w := newWorld(t)
	w.host.epoch = 2
	list := w.list("one", 4, 5)
	c := w.campaign()
	w.start(Start{ID: c.ID, Plan: Plan{ListIDs: []string{list}}})
	w.refuses("another epoch", CommandBatch, Batch{ID: c.ID, Run: 1, Epoch: 1})
	w.do(CommandBatch, Batch{ID: c.ID, Run: 1, Epoch: 2}, nil)
	w.refuses("somebody is still to be sent to", CommandFinish, Finish{ID: c.ID, Run: 1, Epoch: 2})
	for range 2 {
		w.do(CommandResult, Result{ID: c.ID, Run: 1, Ordinal: 4, Result: ResultSent, Epoch: 1}, nil)
	}
	w.refuses("another epoch", CommandResult, Result{ID: c.ID, Run: 1, Ordinal: 5, Result: ResultBounced, Epoch: 1})
	w.do(CommandResult, Result{ID: c.ID, Run: 1, Ordinal: 5, Result: ResultBounced, Reason: "550", Epoch: 2}, nil)
	w.do(CommandFinish, Finish{ID: c.ID, Run: 1, Epoch: 2}, nil)
	if len(w.host.recorded) != 2 || w.host.recorded[0].Ordinal != 4 || w.host.recorded[1].Reason != "550" || w.host.recorded[1].Properties["campaign_id"] != c.ID {
		t.Fatalf("recorded: %+v", w.host.recorded)
	}
	if len(w.host.told) != 1 || w.host.told[0]["sent"] != uint64(1) || w.host.told[0]["failed"] != uint64(1) {
		t.Fatalf("told: %v", w.host.told)
	}
	n, became := w.state.Numbers(c), w.state.Recipients(c, 0, 10)
	if n.Sent != 1 || n.Failed != 1 || n.Bounced != 1 || n.Pending != 0 || len(became) != 2 || !became[0].Sent || !became[1].Bounced {
		t.Fatalf("%+v, %+v", n, became)
	}
}

// TestSegmentsThatAreBeingBuiltAreNoAudience: their members are not known yet.
func TestSegmentsThatAreBeingBuiltAreNoAudience(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	start := Start{ID: c.ID, Plan: Plan{SegmentIDs: []string{"seg_1"}, BatchSize: 1}, Variants: []Content{{Subject: "s"}}}
	w.refuses(`there is no segment with the id "seg_1"`, CommandStart, start)
	w.host.building = "seg_1"
	w.refuses("segment_ids: seg_1 is still being built", CommandStart, start)
	if _, _, err := w.state.Audience(&start); err == nil || !strings.Contains(err.Error(), "being built") {
		t.Errorf("%v", err)
	}
}
