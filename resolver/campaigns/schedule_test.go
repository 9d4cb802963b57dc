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
	for _, x := range w.state.Due() {
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

// TestCommandsOfAnEarlierVersion: a start, and the end of a schedule that failed, are refused where
// the campaign or its template has changed since they were made. Commands that name no version are
// applied, as in old logs.
func TestCommandsOfAnEarlierVersion(t *testing.T) {
	w := newWorld(t)
	var template Template
	w.do(CommandTemplateSave, Template{Name: "t", Source: TemplateList, Subject: "s", HTML: "one"}, &template)
	list := w.list("one", 0)
	x := w.saved(Save{Campaign: Campaign{Name: "n", Channel: 1, Date: w.dated(1000), ListIDs: []string{list}, Message: Message{TemplateID: template.ID}}})
	version := func() string {
		t.Helper()
		whole, _, err := w.state.WholeCampaign(x.ID)
		if err != nil {
			t.Fatal(err)
		}
		v, err := w.state.StartVersion(&whole, "")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	stale := func(seen string) {
		t.Helper()
		w.refuses("was changed meanwhile", CommandStart, Start{ID: x.ID, Plan: Plan{ListIDs: x.ListIDs, BatchSize: 9}, Variants: []Content{{}}, IfVersion: seen})
		w.refuses("was changed meanwhile", CommandUnschedule, Unschedule{ID: x.ID, Error: "why", IfVersion: seen})
	}
	first := version()
	w.now += 1000
	w.state.Advance(w.tx())
	if x = w.saved(Save{Campaign: x}); !x.Due || version() != first {
		t.Errorf("saved as it was, and due: %+v", x)
	}
	template.HTML = "two"
	w.do(CommandTemplateSave, template, nil)
	stale(first)
	second := version()
	x.Body = "three"
	x = w.saved(Save{Campaign: x})
	stale(second)
	third := version()
	template.HTML = "four"
	w.do(CommandTemplateSave, template, nil)
	if version() != third {
		t.Error("the template stands in for no body any more")
	}
	w.do(CommandUnschedule, Unschedule{ID: x.ID, Error: "why", IfVersion: third}, nil)
	if r := w.start(Start{ID: x.ID, Plan: Plan{ListIDs: x.ListIDs}, IfVersion: third}); r.Run != 1 {
		t.Errorf("%+v", r)
	}
	w.do(CommandFinish, Finish{ID: x.ID, Run: 1, Stopped: "enough"}, nil)
	if r := w.start(Start{ID: x.ID, Plan: Plan{ListIDs: x.ListIDs}}); r.Run != 2 {
		t.Errorf("%+v", r)
	}
	w.checked()
}

// TestStartVersionIsKept: later builds must come to the same version, or a replay of a log would
// refuse its starts.
func TestStartVersionIsKept(t *testing.T) {
	w := newWorld(t)
	for want, x := range map[string]Campaign{
		"b1b0bc3b3b47bd47": {ID: "c1", Number: 7, Name: "n", Channel: ChannelSingle, Date: "2026-01-01", CreatedMs: 1, UpdatedMs: 2, Schedule: Schedule{Dated: true, ScheduledMs: 3}},
		"4dbd08504dd7eba6": {ID: "c2", Name: "n", Channel: ChannelOmni, Message: Message{Subject: "s", Body: "<p>b", Sender: "a@x.io", SenderName: "A", ReplyTo: "r@x.io"}, ListIDs: []string{"l"}, SegmentIDs: []string{"g"}, BodyBytes: 4, OneOff: true, ChannelOptions: ChannelOptions{Link: "https://x.io", TrackLinks: true}, Channels: []ChannelMessage{{}}},
	} {
		if got, err := w.state.StartVersion(&x, ""); err != nil || got != want {
			t.Errorf("%s: %s, want %s, %v", x.ID, got, want, err)
		}
	}
}
