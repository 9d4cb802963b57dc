package resolver

import (
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
)

// dated is the date of a campaign so many milliseconds from the recorder's time.
func (r *recorder) dated(fromNow int64) string {
	return time.UnixMilli(r.now + fromNow).UTC().Format(time.RFC3339Nano)
}

func (r *recorder) dueNow() (ids []string) {
	r.t.Helper()
	for _, x := range r.view().Campaigns().Due() {
		ids = append(ids, x.ID)
	}
	return ids
}

func (r *recorder) saved(c campaigns.Save) campaigns.Campaign {
	r.t.Helper()
	return answer[campaigns.Campaign](r.t, r.must(campaigns.CommandSave, c))
}

// TestScheduleIsDueByLogTime: a campaign with a date in the future and an audience is due
// at that instant of log time and not before, through checkpoints, and starts once.
func TestScheduleIsDueByLogTime(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	list := r.list("one")
	r.contact(contacts.Create{Email: "a@x.io", ListID: list})
	at := r.now + 60_000
	x := r.saved(campaigns.Save{Campaign: campaigns.Campaign{Name: "n", Channel: 1, Date: r.dated(60_000), ListIDs: []string{list}, Message: campaigns.Message{Body: "<p>Hi"}}})
	if x.ScheduledMs != at || x.Due {
		t.Fatalf("saved: %+v", x)
	}
	if due, has := r.m.NextDue(); !has || due != at {
		t.Errorf("a tick is due at %d, want %d", due, at)
	}
	if users := r.m.accounts[testAccount].AudiencesOf(list); len(users) != 1 {
		t.Errorf("the list is used by %v", users)
	}
	r.now = at - 1
	r.tick()
	d.reload()
	if due := r.dueNow(); len(due) != 0 {
		t.Fatalf("due a millisecond early: %v", due)
	}
	r.refuses("no longer scheduled", campaigns.CommandStart, campaigns.Start{ID: x.ID, Plan: campaigns.Plan{ListIDs: []string{list}, BatchSize: 1}, Variants: []campaigns.Content{content}, ScheduledMs: at})
	r.now = at
	r.tick()
	d.reload()
	if due := r.dueNow(); !slices.Equal(due, []string{x.ID}) {
		t.Fatalf("due: %v", due)
	}
	if due, has := r.m.NextDue(); has && due <= r.now {
		t.Errorf("ticks continue at %d", due)
	}
	start := campaigns.Start{ID: x.ID, Plan: campaigns.Plan{ListIDs: []string{list}}, ScheduledMs: at}
	if run := r.start(start); run.Total != 1 {
		t.Errorf("run: %+v", run)
	}
	start.BatchSize, start.Variants = 1, []campaigns.Content{content}
	r.refuses("being sent", campaigns.CommandStart, start)
	r.batch(x.ID, 1)
	r.must(campaigns.CommandFinish, campaigns.Finish{ID: x.ID, Run: 1, Stopped: "enough"})
	r.refuses("no longer scheduled", campaigns.CommandStart, start)
	d.reload()
	if due := r.dueNow(); len(due) != 0 {
		t.Errorf("started and still due: %v", due)
	}
	// A change that does not name the date leaves it at that; one that names it does not.
	x.Name, x.Date = "n2", r.dated(5000)
	if x := r.saved(campaigns.Save{Campaign: x}); x.ScheduledMs != 0 {
		t.Errorf("sent, changed: %+v", x)
	}
	if x := r.saved(campaigns.Save{Campaign: x, SetsDate: true}); x.ScheduledMs != r.now+5000 {
		t.Errorf("dated again: %+v", x)
	}
}
