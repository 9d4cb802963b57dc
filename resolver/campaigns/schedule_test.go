package campaigns

import (
	"fmt"
	"testing"
	"time"
)

// dated is the date of a campaign so many milliseconds from now.
func (w *world) dated(fromNow int64) string {
	return time.UnixMilli(w.now + fromNow).UTC().Format(time.RFC3339Nano)
}

func (w *world) dueNow() (ids []string) {
	w.t.Helper()
	list, err := w.state.Due()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, x := range list {
		ids = append(ids, x.ID)
	}
	return ids
}

// TestScheduleIsKeptChangedAndEnded tries what changes a schedule.
func TestScheduleIsKeptChangedAndEnded(t *testing.T) {
	w := newWorld(t)
	list := w.list("one", 0)
	base := Campaign{Name: "n", Channel: 1, Date: w.dated(60_000), ListIDs: []string{list}}
	at := w.now + 60_000
	for _, c := range []Campaign{
		{Name: "no audience", Channel: 1, Date: base.Date}, {Name: "no date", Channel: 1, ListIDs: base.ListIDs},
		{Name: "past", Channel: 1, Date: w.dated(-1), ListIDs: base.ListIDs}, {Name: "now", Channel: 1, Date: w.dated(0), ListIDs: base.ListIDs},
		{Name: "no date at all", Channel: 1, Date: "soon", ListIDs: base.ListIDs}, {Name: "one-off", Channel: 1, Date: base.Date, ListIDs: base.ListIDs, OneOff: true},
	} {
		if x := w.saved(Save{Campaign: c}); x.ScheduledMs != 0 {
			t.Errorf("%s: %+v", c.Name, x)
		}
	}
	x := w.saved(Save{Campaign: base})
	change := func(want int64, dated bool, fn func(*Campaign)) {
		t.Helper()
		c := x
		fn(&c)
		if x = w.saved(Save{Campaign: c, SetsDate: dated}); x.ScheduledMs != want {
			t.Errorf("scheduled for %d, want %d", x.ScheduledMs, want)
		}
	}
	change(at, false, func(c *Campaign) { c.Name = "m" })
	change(0, false, func(c *Campaign) { c.ListIDs = nil })
	change(at, false, func(c *Campaign) { c.ListIDs = base.ListIDs })
	change(at+1000, true, func(c *Campaign) { c.Date = w.dated(61_000) })
	change(0, true, func(c *Campaign) { c.Date = w.dated(-1000) })
	change(at, true, func(c *Campaign) { c.Date = base.Date })
	w.do(CommandUnschedule, Unschedule{ID: x.ID}, nil)
	change(0, false, func(c *Campaign) { c.Name = "cancelled" })
	change(at, true, func(c *Campaign) {})
	w.refuses("no longer scheduled", CommandUnschedule, Unschedule{ID: x.ID, ScheduledMs: at + 1, Error: "x"})
	w.refuses("there is no campaign", CommandUnschedule, Unschedule{ID: "none"})

	// A send by hand ends the schedule.
	w.start(Start{ID: x.ID, Plan: Plan{ListIDs: base.ListIDs}})
	if x, _ := w.state.Campaign(x.ID); x.Schedule != (Schedule{}) {
		t.Errorf("sent by hand: %+v", x)
	}
	// What is due and changed starts with what it is now.
	y := w.saved(Save{Campaign: base})
	w.now = at + 5
	w.state.Advance(w.tx())
	y.Name = "changed at the last moment"
	if y = w.saved(Save{Campaign: y, SetsDate: true}); !y.Due || y.ScheduledMs != at {
		t.Errorf("due and changed: %+v", y)
	}
	w.do(CommandUnschedule, Unschedule{ID: y.ID, ScheduledMs: at, Error: "no sender"}, nil)
	if y, _ = w.state.Campaign(y.ID); y.Schedule != (Schedule{ScheduleError: "no sender"}) || len(w.dueNow()) != 0 {
		t.Errorf("failed: %+v", y)
	}
	// Deleted campaigns are due no more.
	z := w.saved(Save{Campaign: Campaign{Name: "gone", Channel: 1, Date: w.dated(1000), ListIDs: base.ListIDs}})
	w.do(CommandDelete, Ref{ID: z.ID}, nil)
	w.now += 2000
	w.state.Advance(w.tx())
	if due := w.dueNow(); len(due) != 0 {
		t.Errorf("due: %v", due)
	}
	w.checked()
}

// TestManySchedulesAtOneInstant: one record makes a bounded number due, the ticks after
// it the others.
func TestManySchedulesAtOneInstant(t *testing.T) {
	w := newWorld(t)
	list := w.list("one", 0)
	for i := range 2*maxDueAtOnce + 1 {
		w.saved(Save{Campaign: Campaign{Name: fmt.Sprint(i), Channel: 1, Date: w.dated(1000), ListIDs: []string{list}}})
	}
	w.now += 1000
	for _, want := range []int{maxDueAtOnce, 2 * maxDueAtOnce, 2*maxDueAtOnce + 1} {
		if due, has := w.state.NextDue(); !has || due > w.now {
			t.Error("no tick is due")
		}
		if w.state.Advance(w.tx()); len(w.dueNow()) != want {
			t.Errorf("%d are due, want %d", len(w.dueNow()), want)
		}
		w.checked()
	}
}

// TestDatesOfOldLogsScheduleNothing: a save of before dates sent anything schedules
// nothing, and neither does a later change that does not name the date.
func TestDatesOfOldLogsScheduleNothing(t *testing.T) {
	w := newWorld(t)
	list := w.list("one", 0)
	var x Campaign
	w.do(CommandSave1, Campaign{Name: "n", Channel: 1, Date: w.dated(1000), ListIDs: []string{list}}, &x)
	if x.Schedule != (Schedule{}) {
		t.Errorf("saved: %+v", x)
	}
	x.Name = "m"
	if x := w.saved(Save{Campaign: x}); x.Schedule != (Schedule{}) {
		t.Errorf("changed: %+v", x)
	}
	if x := w.saved(Save{Campaign: x, SetsDate: true}); x.ScheduledMs == 0 {
		t.Errorf("dated: %+v", x)
	}
}
