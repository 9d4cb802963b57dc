package resolver

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/pacing"
)

// paced is an account with limits, and people with zones of their own.
type paced struct {
	*durable
	list  string
	ids   map[string]string
	names map[uint32]string
}

func utcMs(t testing.TB, text string) int64 {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

// newPaced makes people with their zones, at an instant; the account's zone is Europe/Berlin.
func newPaced(t *testing.T, at string, people ...[2]string) *paced {
	t.Helper()
	p := &paced{durable: newDurable(t, withoutOptIn()), ids: map[string]string{}, names: map[uint32]string{}}
	p.now = utcMs(t, at)
	p.list = p.recorder.list("all")
	for _, x := range people {
		email := x[0] + "@x.io"
		p.ids[x[0]] = p.contact(contacts.Create{Email: email, ListID: p.list})
		where := ev("email", email)
		where.Geo = fmt.Appendf(nil, `{"timezone":%q}`, x[1])
		p.events(where)
		o, _ := p.view().Profiles().ResolveText(p.ids[x[0]])
		p.names[o] = x[0]
	}
	return p
}

func (p *paced) limit(l pacing.Limits) {
	p.t.Helper()
	s := p.view().Settings()
	s.SendingLimits = &l
	p.must(CommandSettingsSet, s)
}

// at lets time pass until an instant.
func (p *paced) at(text string) {
	p.t.Helper()
	p.now = utcMs(p.t, text)
	p.tick()
}

// campaign makes a campaign by e-mail.
func (p *paced) campaign(name string, more func(*campaigns.Campaign)) campaigns.Campaign {
	p.t.Helper()
	c := campaigns.Campaign{Name: name, Channel: campaigns.ChannelSingle, Type: campaigns.TypeEmail, Date: "2026-01-01", ListIDs: []string{p.list}}
	if more != nil {
		more(&c)
	}
	return p.saved(campaigns.Save{Campaign: c})
}

// begin sends a campaign to all.
func (p *paced) begin(id string) {
	p.start(campaigns.Start{ID: id, Plan: campaigns.Plan{ListIDs: []string{p.list}, BatchSize: 9}})
}

// claims has the next batch claimed, of whom it expects these.
func (p *paced) claims(id string, want ...string) campaigns.BatchReply {
	p.t.Helper()
	b := p.batch(id, p.run(id).Run)
	var got []string
	for _, x := range b.Recipients {
		got = append(got, p.names[x.Ordinal])
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		p.t.Fatalf("at %s %q are claimed, expected %q; %+v", time.UnixMilli(p.now).UTC(), got, want, p.run(id))
	}
	return b
}

func (p *paced) result(id, result string, names ...string) {
	p.t.Helper()
	for _, name := range names {
		o, _ := p.view().Profiles().ResolveText(p.ids[name])
		p.must(campaigns.CommandResult, campaigns.Result{ID: id, Run: p.run(id).Run, Ordinal: o, Result: result, Reason: "why"})
	}
}

func (p *paced) skipped(id, reason string, want int) {
	p.t.Helper()
	if n := p.run(id).Skipped[reason]; n != want {
		p.t.Fatalf("%d were skipped for %s, expected %d: %+v", n, reason, want, p.run(id).Skipped)
	}
}

// TestQuietHoursAndCapsStory sends campaigns and a flow to people in several zones: people in
// their quiet hours get theirs when these end, no person gets more than the caps allow, and
// messages that were not sent do not count. All of it survives starts from checkpoints.
func TestQuietHoursAndCapsStory(t *testing.T) {
	t.Parallel()
	p := newPaced(t, "2026-06-10 18:00", [2]string{"berlin"}, [2]string{"mars", "Mars/Olympus"}, [2]string{"paris", "Europe/Paris"}, [2]string{"tokyo", "Asia/Tokyo"}, [2]string{"york", "America/New_York"})
	p.limit(pacing.Limits{Timezone: "Europe/Berlin", QuietHours: &pacing.QuietHours{From: "22:00", To: "08:00"}, Caps: []pacing.Cap{{Messages: 2, Hours: 24}, {Channel: "email", Messages: 1, Hours: 12}}})
	one, two := p.campaign("one", nil), p.campaign("two", nil)

	// 18:00 UTC is 20:00 in Berlin and 03:00 in Tokyo.
	p.begin(one.ID)
	p.claims(one.ID, "berlin", "mars", "paris", "york")
	p.result(one.ID, campaigns.ResultSent, "berlin", "mars", "york")
	p.result(one.ID, "failed", "paris") // it does not count
	if b := p.claims(one.ID); !b.Waiting || b.Left != 1 {
		t.Fatalf("%+v", b)
	}
	if n := p.view().Campaigns().Numbers(one); n.Held != 1 || n.Audience != 1 {
		t.Fatalf("%+v", n)
	}
	p.refuses("being sent", campaigns.CommandSave, campaigns.Save{Campaign: one})
	p.reload()
	tokyo := utcMs(t, "2026-06-10 23:00")
	if due, ok := p.m.NextDue(); !ok || due != tokyo {
		t.Fatalf("a tick is due at %s", time.UnixMilli(due).UTC())
	}
	if len(p.view().Campaigns().Busy()) != 0 || p.m.AccountsSending() != nil {
		t.Fatal("a run that waits is to be sent")
	}
	p.at("2026-06-10 19:00")
	p.begin(two.ID)
	p.claims(two.ID, "paris")
	p.skipped(two.ID, pacing.ReasonFrequencyCap, 3)
	p.result(two.ID, campaigns.ResultSent, "paris")
	if b := p.claims(two.ID); !b.Waiting {
		t.Fatalf("%+v", b)
	}
	p.now = tokyo - 1
	p.tick()
	if run := p.run(one.ID); run.Status != campaigns.RunWaiting {
		t.Fatalf("%+v", run)
	}
	p.at("2026-06-10 23:00")
	if run := p.run(one.ID); run.Status != campaigns.RunSending || !run.Woken || len(p.view().Campaigns().Busy()) != 2 {
		t.Fatalf("%+v", run)
	}
	p.reload()
	p.claims(one.ID, "tokyo")
	p.claims(two.ID)
	p.skipped(two.ID, pacing.ReasonFrequencyCap, 4)
	p.result(one.ID, campaigns.ResultSent, "tokyo")

	// A message of a flow counts as well, and waits as well: it is 01:00 in Berlin.
	flow := p.flow(loopFlow("x", "viewed", mailStep))
	exempt := p.flow(loopFlow("y", "viewed", mailStep+`,"ignore_sending_limits":true`))
	view := func(name string) ProfileID {
		return p.events(ev("email", name+"@x.io", "event_type", "viewed")).Events[0].Profile
	}
	berlin, york := view("berlin"), view("york")
	p.expectEnrolment(flow, berlin, "#1 s:pending in_progress")
	p.expectEnrolment(flow, york, "#1 s:skipped_frequency_cap completed")
	p.expectEnrolment(exempt, berlin, "#1 s:queued completed")
	for _, w := range p.due(outbox.KindEmail) {
		p.done(w, outbox.ResultSent)
	}
	p.reload()
	p.at("2026-06-11 05:59")
	p.expectEnrolment(flow, berlin, "#1 s:pending in_progress")
	p.at("2026-06-11 06:00") // twelve hours after the first message less 1 ms
	p.rest()
	p.expectEnrolment(flow, berlin, "#1 s:queued completed")
	if counts := p.flowState(flow).Counts.Steps[0]; counts.Arrived != 2 || counts.At != 0 {
		t.Errorf("%+v", counts)
	}
	// Berlin has two messages in 24 hours.
	p.must(CommandContactErase, ContactErase{ID: p.ids["paris"]})
	p.reload()
	three := p.campaign("three", func(c *campaigns.Campaign) { c.ListIDs = nil })
	p.at("2026-06-11 12:00")
	p.begin(three.ID)
	p.claims(three.ID, "mars", "tokyo", "york")
	p.skipped(three.ID, pacing.ReasonFrequencyCap, 1) // Berlin, by both caps
	p.result(three.ID, "failed", "mars", "tokyo", "york")
	// It continues when the window is over.
	p.at("2026-06-12 08:00")
	free := p.campaign("free", func(c *campaigns.Campaign) { c.IgnoresLimits = true })
	p.begin(free.ID)
	p.claims(free.ID, "berlin", "mars", "tokyo", "york")
	four := p.campaign("four", nil)
	p.begin(four.ID)
	p.claims(four.ID, "berlin", "mars", "tokyo") // it is night in New York
	// The second time a run that was stopped finds its own messages, they do not count twice.
	p.must(campaigns.CommandFinish, campaigns.Finish{ID: four.ID, Run: 1, Stopped: "enough"})
	p.begin(four.ID)
	p.claims(four.ID, "berlin", "mars", "tokyo") // it is night in New York
	p.result(four.ID, campaigns.ResultSent, "berlin", "mars", "tokyo")
	p.reload()
}

// TestQuietHoursThatSkip passes people over whose night it is, in campaigns and in flows.
func TestQuietHoursThatSkip(t *testing.T) {
	t.Parallel()
	p := newPaced(t, "2026-06-10 18:00", [2]string{"berlin"}, [2]string{"tokyo", "Asia/Tokyo"})
	p.limit(pacing.Limits{Timezone: "Europe/Berlin", QuietHours: &pacing.QuietHours{From: "22:00", To: "08:00", Channels: []string{"email"}, Then: pacing.ThenSkip}})
	c := p.campaign("one", nil)
	p.begin(c.ID)
	p.claims(c.ID, "berlin")
	p.skipped(c.ID, pacing.ReasonQuietHours, 1)
	flow := p.flow(loopFlow("x", "viewed", mailStep))
	tokyo := p.events(ev("email", "tokyo@x.io", "event_type", "viewed")).Events[0].Profile
	p.expectEnrolment(flow, tokyo, "#1 s:skipped_quiet_hours completed")
	p.reload()
}

// TestLocalTimesAndRatesStory sends a campaign at 09:00 of each person's clocks, where two are
// let through an hour; it is cancelled while it waits, and the rate holds over that.
func TestLocalTimesAndRatesStory(t *testing.T) {
	t.Parallel()
	p := newPaced(t, "2026-06-09 12:00", [2]string{"apia", "Pacific/Apia"}, [2]string{"berlin"}, [2]string{"paris", "Europe/Paris"}, [2]string{"rome", "Europe/Rome"}, [2]string{"tokyo", "Asia/Tokyo"})
	p.limit(pacing.Limits{Timezone: "Europe/Berlin"})
	local := func(date string) func(*campaigns.Campaign) {
		return func(c *campaigns.Campaign) {
			c.LocalTime, c.Date, c.Rate = true, date, &campaigns.Rate{Messages: 2, Per: campaigns.PerHour}
		}
	}
	if c := p.campaign("over", local("2026-06-09T13:00")); c.ScheduledMs != 0 {
		t.Errorf("Berlin's clocks have shown it: %+v", c.Schedule)
	}
	c := p.campaign("one", local("2026-06-10T09:00"))
	if want := utcMs(t, "2026-06-09 19:00"); c.ScheduledMs != want {
		t.Fatalf("scheduled for %s", time.UnixMilli(c.ScheduledMs).UTC())
	}
	p.at("2026-06-09 19:00")
	start := campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{p.list}, BatchSize: 9}, ScheduledMs: c.ScheduledMs}
	p.start(start)
	if b := p.claims(c.ID); !b.Waiting {
		t.Fatalf("%+v", b)
	}
	p.reload()
	p.at("2026-06-09 20:00") // 09:00 in Apia
	p.claims(c.ID, "apia")
	p.result(c.ID, campaigns.ResultSent, "apia")
	p.claims(c.ID)
	p.at("2026-06-10 00:00") // in Tokyo
	p.claims(c.ID, "tokyo")
	p.result(c.ID, campaigns.ResultSent, "tokyo")
	p.claims(c.ID)
	p.at("2026-06-10 07:00")
	p.claims(c.ID, "berlin")
	p.result(c.ID, campaigns.ResultSent, "berlin")
	if b := p.claims(c.ID); !b.Waiting || b.Left != 2 {
		t.Fatalf("%+v", b)
	}
	p.reload()
	p.must(campaigns.CommandUnschedule, campaigns.Unschedule{ID: c.ID})
	if run := p.run(c.ID); run.Status != campaigns.RunStopped || p.view().Campaigns().Numbers(c).Held != 0 {
		t.Fatalf("%+v", run)
	}
	if due, has := p.m.NextDue(); has && due <= utcMs(t, "2026-06-10 09:00") {
		t.Errorf("a tick is due at %s", time.UnixMilli(due).UTC())
	}
	// Sent by hand it looks at no clocks, but keeps its rate.
	p.at("2026-06-10 07:10")
	p.begin(c.ID)
	if b := p.claims(c.ID); !b.Waiting {
		t.Fatalf("%+v", b)
	}
	p.at("2026-06-10 07:31")
	p.claims(c.ID, "paris")
	p.result(c.ID, campaigns.ResultSent, "paris")
	p.reload()
	p.claims(c.ID)
	p.at("2026-06-10 08:02")
	p.claims(c.ID, "rome")
	p.result(c.ID, campaigns.ResultSent, "rome")
	p.must(campaigns.CommandFinish, campaigns.Finish{ID: c.ID, Run: 2})
	p.reload()
}
