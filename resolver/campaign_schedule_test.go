package resolver

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// dated is the date of a campaign so many milliseconds from the recorder's time.
func (r *recorder) dated(fromNow int64) string {
	return time.UnixMilli(r.now + fromNow).UTC().Format(time.RFC3339Nano)
}

func (r *recorder) dueNow() (ids []string) {
	r.t.Helper()
	list, err := r.view().DueCampaigns()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, x := range list {
		ids = append(ids, x.ID)
	}
	return ids
}

func (r *recorder) saved(c CampaignSave) Campaign {
	r.t.Helper()
	return answer[Campaign](r.t, r.must(CommandCampaignSave, c))
}

// TestScheduleIsDueByLogTime: a campaign with a date in the future and an audience is due
// at that instant of log time and not before, through checkpoints, and starts once.
func TestScheduleIsDueByLogTime(t *testing.T) {
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	list := r.list("one")
	r.contact(ContactCreate{Email: "a@x.io", ListID: list})
	at := r.now + 60_000
	x := r.saved(CampaignSave{Campaign: Campaign{Name: "n", Channel: 1, Date: r.dated(60_000), ListIDs: []string{list}, Body: "<p>Hi"}})
	if x.ScheduledMs != at || x.Due {
		t.Fatalf("saved: %+v", x)
	}
	if due, has := r.m.NextDue(); !has || due != at {
		t.Errorf("a tick is due at %d, want %d", due, at)
	}
	if users := r.m.accounts[testAccount].audiencesOf(list); len(users) != 1 {
		t.Errorf("the list is used by %v", users)
	}
	r.now = at - 1
	r.tick()
	d.reload()
	if due := r.dueNow(); len(due) != 0 {
		t.Fatalf("due a millisecond early: %v", due)
	}
	r.refuses("no longer scheduled", CommandCampaignStart, CampaignStart{ID: x.ID, ListIDs: []string{list}, BatchSize: 1, Variants: []CampaignContent{content}, ScheduledMs: at})
	r.now = at
	r.tick()
	d.reload()
	if due := r.dueNow(); !slices.Equal(due, []string{x.ID}) {
		t.Fatalf("due: %v", due)
	}
	if due, has := r.m.NextDue(); has && due <= r.now {
		t.Errorf("ticks go on at %d", due)
	}
	if list, err := r.view().DueCampaigns(); err != nil || list[0].Body != "<p>Hi" {
		t.Errorf("%+v %v", list, err)
	}
	start := CampaignStart{ID: x.ID, ListIDs: []string{list}, ScheduledMs: at}
	if run := r.start(start); run.Total != 1 {
		t.Errorf("run: %+v", run)
	}
	start.BatchSize, start.Variants = 1, []CampaignContent{content}
	r.refuses("being sent", CommandCampaignStart, start)
	r.batch(x.ID, 1)
	r.must(CommandCampaignFinish, CampaignFinish{ID: x.ID, Run: 1, Stopped: "enough"})
	r.refuses("no longer scheduled", CommandCampaignStart, start)
	d.reload()
	if due := r.dueNow(); len(due) != 0 {
		t.Errorf("started and still due: %v", due)
	}
	// A change that does not name the date leaves it at that; one that names it does not.
	x.Name, x.Date = "n2", r.dated(5000)
	if x := r.saved(CampaignSave{Campaign: x}); x.ScheduledMs != 0 {
		t.Errorf("sent, changed: %+v", x)
	}
	if x := r.saved(CampaignSave{Campaign: x, SetsDate: true}); x.ScheduledMs != r.now+5000 {
		t.Errorf("dated anew: %+v", x)
	}
}

// TestScheduleIsKeptChangedAndEnded tries what changes a schedule.
func TestScheduleIsKeptChangedAndEnded(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	list := r.list("one")
	base := Campaign{Name: "n", Channel: 1, Date: r.dated(60_000), ListIDs: []string{list}}
	at := r.now + 60_000
	for _, c := range []Campaign{
		{Name: "no audience", Channel: 1, Date: base.Date}, {Name: "no date", Channel: 1, ListIDs: base.ListIDs},
		{Name: "past", Channel: 1, Date: r.dated(-1), ListIDs: base.ListIDs}, {Name: "now", Channel: 1, Date: r.dated(0), ListIDs: base.ListIDs},
		{Name: "no date at all", Channel: 1, Date: "soon", ListIDs: base.ListIDs}, {Name: "one-off", Channel: 1, Date: base.Date, ListIDs: base.ListIDs, OneOff: true},
	} {
		if x := r.saved(CampaignSave{Campaign: c}); x.ScheduledMs != 0 {
			t.Errorf("%s: %+v", c.Name, x)
		}
	}
	x := r.saved(CampaignSave{Campaign: base})
	change := func(want int64, dated bool, fn func(*Campaign)) {
		t.Helper()
		c := x
		fn(&c)
		if x = r.saved(CampaignSave{Campaign: c, SetsDate: dated}); x.ScheduledMs != want {
			t.Errorf("scheduled for %d, want %d", x.ScheduledMs, want)
		}
	}
	change(at, false, func(c *Campaign) { c.Name = "m" })
	change(0, false, func(c *Campaign) { c.ListIDs = nil })
	change(at, false, func(c *Campaign) { c.ListIDs = base.ListIDs })
	change(at+1000, true, func(c *Campaign) { c.Date = r.dated(61_000) })
	change(0, true, func(c *Campaign) { c.Date = r.dated(-1000) })
	change(at, true, func(c *Campaign) { c.Date = base.Date })
	r.must(CommandCampaignUnschedule, CampaignUnschedule{ID: x.ID})
	change(0, false, func(c *Campaign) { c.Name = "cancelled" })
	change(at, true, func(c *Campaign) {})
	r.refuses("no longer scheduled", CommandCampaignUnschedule, CampaignUnschedule{ID: x.ID, ScheduledMs: at + 1, Error: "x"})
	r.refuses("there is no campaign", CommandCampaignUnschedule, CampaignUnschedule{ID: "none"})

	// A send by hand ends the schedule.
	r.start(CampaignStart{ID: x.ID, ListIDs: base.ListIDs})
	if x, _ := r.view().Campaign(x.ID); x.CampaignSchedule != (CampaignSchedule{}) {
		t.Errorf("sent by hand: %+v", x)
	}
	// What is due and changed starts with what it is now.
	y := r.saved(CampaignSave{Campaign: base})
	r.now = at + 5
	r.tick()
	y.Name = "changed at the last moment"
	if y = r.saved(CampaignSave{Campaign: y, SetsDate: true}); !y.Due || y.ScheduledMs != at {
		t.Errorf("due and changed: %+v", y)
	}
	r.must(CommandCampaignUnschedule, CampaignUnschedule{ID: y.ID, ScheduledMs: at, Error: "no sender"})
	if y, _ = r.view().Campaign(y.ID); y.CampaignSchedule != (CampaignSchedule{ScheduleError: "no sender"}) || len(r.dueNow()) != 0 {
		t.Errorf("failed: %+v", y)
	}
	// Deleted campaigns are due no more.
	z := r.saved(CampaignSave{Campaign: Campaign{Name: "gone", Channel: 1, Date: r.dated(1000), ListIDs: base.ListIDs}})
	r.must(CommandCampaignDelete, CampaignID{z.ID})
	r.now += 2000
	r.tick()
	if due := r.dueNow(); len(due) != 0 {
		t.Errorf("due: %v", due)
	}
}

// TestManySchedulesAtOneInstant: one record makes a bounded number due, the ticks after
// it the others.
func TestManySchedulesAtOneInstant(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	list := r.list("one")
	for i := range 2*dueCampaigns + 1 {
		r.saved(CampaignSave{Campaign: Campaign{Name: fmt.Sprint(i), Channel: 1, Date: r.dated(1000), ListIDs: []string{list}}})
	}
	r.now += 1000
	for _, want := range []int{dueCampaigns, 2 * dueCampaigns, 2*dueCampaigns + 1} {
		if due, has := r.m.NextDue(); !has || due > r.now {
			t.Error("no tick is due")
		}
		if r.tick(); len(r.dueNow()) != want {
			t.Errorf("%d are due, want %d", len(r.dueNow()), want)
		}
	}
}

// TestDatesOfOldLogsScheduleNothing: a save of before dates sent anything schedules
// nothing, and neither does a later change that does not name the date.
func TestDatesOfOldLogsScheduleNothing(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	list := r.list("one")
	x := answer[Campaign](t, r.must(commandCampaignSave1, Campaign{Name: "n", Channel: 1, Date: r.dated(1000), ListIDs: []string{list}}))
	if x.CampaignSchedule != (CampaignSchedule{}) {
		t.Errorf("saved: %+v", x)
	}
	x.Name = "m"
	if x := r.saved(CampaignSave{Campaign: x}); x.CampaignSchedule != (CampaignSchedule{}) {
		t.Errorf("changed: %+v", x)
	}
	if x := r.saved(CampaignSave{Campaign: x, SetsDate: true}); x.ScheduledMs == 0 {
		t.Errorf("dated: %+v", x)
	}
}
