package messaging_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/pacing"
)

var (
	takes = outcome.New(outcome.Accepted, "250", "ok")
	later = outcome.Failed(outcome.Temporary, "429", errors.New("try later"))
)

// mailing is a campaign of a world. Its waits let the world's time pass.
type mailing struct {
	*world
	campaign campaigns.Campaign
	ids      []string // of the people
	// sleep carries out the waits of the dispatcher; nil lets the time pass at once.
	sleep func(ctx context.Context, d time.Duration) error
	// answer is how long the relay takes; nil is no time.
	answer func()
	runs   int // campaigns sent at once; 0 is the default

	mu       sync.Mutex
	subjects []string                                   // of the attempts
	tries    map[int]int                                // by person
	taken    int                                        // messages
	relay    func(person, try int) (out outcome.Result) // person is from 0, try from 1; called one at a time
}

// newMailing has so many people, credits for 300 e-mails, and a campaign of an e-mail at a rate
// a minute.
func newMailing(t *testing.T, people, perMinute int) *mailing {
	t.Helper()
	x := &mailing{world: newWorld(t), tries: map[int]int{}}
	credits := int64(300)
	x.account++
	x.must(resolver.CommandCompanyCreate, resolver.Bootstrap{
		ApplyVersion: resolver.ApplyVersion, Company: resolver.Company{ID: "com_2", Name: "Two"}, HashKey: strings.Repeat("01", 16), SecretHash: strings.Repeat("02", 32),
		Settings: resolver.DefaultSettings(), User: access.User{ID: "usr_2", Email: "two@muster.test", PasswordHash: "x"}, EmailCredits: &credits,
	})
	for n := range people {
		x.ids = append(x.ids, x.contact(fmt.Sprintf("p%d@x.io", n), fmt.Sprintf("+4917000%05d", n)))
	}
	x.save(campaigns.Campaign{Name: "news", Channel: campaigns.ChannelSingle, Type: campaigns.TypeEmail, Date: "2026-01-01", Pacing: campaigns.Pacing{Rate: &campaigns.Rate{Messages: perMinute, Per: campaigns.PerMinute}}})
	return x
}

func (x *mailing) save(c campaigns.Campaign) {
	x.t.Helper()
	ok(x.t, json.Unmarshal(x.must(campaigns.CommandSave, c), &x.campaign))
}

func (x *mailing) Send(m *email.Message) outcome.Result {
	if x.answer != nil {
		x.answer()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.subjects = append(x.subjects, m.Subject)
	var person int
	_, err := fmt.Sscanf(m.To.Addr, "p%d@", &person)
	ok(x.t, err)
	x.tries[person]++
	out := x.relay(person, x.tries[person])
	if out.OK() {
		x.taken++
	}
	return out
}

// send sends the campaign, and returns the run as it is when that ends.
func (x *mailing) send(store messaging.Capture) campaigns.Run {
	x.t.Helper()
	d := x.dispatcher(store)
	defer d.Close()
	r, err := x.sendBy(d)
	ok(x.t, err)
	return r
}

func (x *mailing) dispatcher(store messaging.Capture) *messaging.Dispatcher {
	x.t.Helper()
	d, err := messaging.New(x.t.Context(), messaging.Options{Node: x.node, Mailer: messaging.MailerFunc(x.Send), Capture: store, PublicURL: "https://muster.test", Now: x.Now, Metrics: metrics.NewSet(), Runs: x.runs,
		Sleep: func(ctx context.Context, d time.Duration) error {
			if x.sleep != nil {
				return x.sleep(ctx, d)
			}
			x.Advance(d)
			return ctx.Err()
		}})
	ok(x.t, err)
	return d
}

func (x *mailing) sendBy(d *messaging.Dispatcher) (campaigns.Run, error) {
	x.t.Helper()
	return x.sendOf(d, x.campaign)
}

// sendOf sends any campaign.
func (x *mailing) sendOf(d *messaging.Dispatcher, c campaigns.Campaign) (campaigns.Run, error) {
	x.t.Helper()
	contents := make([]campaigns.Content, len(c.Parts()))
	for i := range contents {
		contents[i] = campaigns.Content{Subject: "s", Sender: "news@" + domains.Development, HTML: `<p>Hi <a href="{{unsubscribe_url}}">no</a>`}
		if c.Parts()[i].Medium() != "email" {
			contents[i] = campaigns.Content{Text: "b"}
		}
	}
	contents, err := compose.PrepareContents(&c, contents)
	ok(x.t, err)
	return d.Send(x.t.Context(), x.account, campaigns.Start{ID: c.ID, Everybody: true, Plan: campaigns.Plan{BatchSize: 50, DelayMs: 100}, Variants: contents, Channels: c.ChannelNames()}, audit.Author{})
}

// pauses are the waits of messages between their attempts; those of the run itself are shorter
// at the rates of these tests.
const pauses = 500 * time.Millisecond

// TestFaultyAddressesDoNotHoldUpARate: a campaign keeps its rate while a few of its messages
// wait for their next attempt.
func TestFaultyAddressesDoNotHoldUpARate(t *testing.T) {
	t.Parallel()
	const people = 200
	x := newMailing(t, people, 600)
	began := x.Now()
	faulty := func(person int) bool { return person%60 == 40 || person == people-1 } // 4 people, one at the end
	good := make(chan struct{})                                                      // closed when all others have theirs
	free := sync.OnceFunc(func() { close(good) })
	x.relay = func(person, _ int) outcome.Result {
		if faulty(person) {
			return later
		}
		if x.taken == people-4-1 {
			free()
		}
		return takes
	}
	var mu sync.Mutex
	waiting, gap := map[chan struct{}]time.Time{}, time.Duration(0)
	x.sleep = func(ctx context.Context, d time.Duration) error {
		if d < pauses { // the run's own waits are what makes the time pass
			x.Advance(d)
			mu.Lock()
			defer mu.Unlock()
			gap = max(gap, d)
			for woken, at := range waiting {
				if !x.Now().Before(at) {
					close(woken)
					delete(waiting, woken)
				}
			}
			return ctx.Err()
		}
		woken := make(chan struct{})
		mu.Lock()
		waiting[woken] = x.Now().Add(d)
		mu.Unlock()
		select {
		case <-woken:
		case <-good:
		case <-time.After(20 * time.Second):
			t.Error("the run stands still while a message waits")
			free()
		}
		return ctx.Err()
	}
	r := x.send(nil)
	if r.Status != campaigns.RunDone || r.Sent != people-4 || r.Failed != 4 {
		t.Errorf("%+v", r)
	}
	for person, n := range x.tries {
		if faulty(person) != (n == 4) || n != 4 && n != 1 {
			t.Errorf("person %d was tried %d times", person, n)
		}
	}
	if took := x.Now().Sub(began); took > 21*time.Second || gap > time.Second {
		t.Errorf("it took %s, and paused up to %s", took, gap)
	}
}

// TestASlowProviderDoesNotHoldUpARate: what the campaign's rate lets go out does not wait for the
// answers to what went before.
func TestASlowProviderDoesNotHoldUpARate(t *testing.T) {
	t.Parallel()
	const people, latency = 60, 500 * time.Millisecond
	const places = 8 // the default of Workers; with a machine to itself the run needs two or three
	x := newMailing(t, people, 240)
	began := x.Now()
	x.relay = func(int, int) outcome.Result { return takes }
	var mu sync.Mutex
	started, waiting := 0, map[chan struct{}]time.Time{}
	wake := func(all bool) {
		for answered, at := range waiting {
			if all || !x.Now().Before(at) {
				close(answered)
				delete(waiting, answered)
			}
		}
	}
	x.answer = func() {
		answered := make(chan struct{})
		mu.Lock()
		waiting[answered] = x.Now().Add(latency)
		if started++; started == people || len(waiting) == places {
			wake(true) // no wait of the run lets time pass any more, or it waits for a place
		}
		mu.Unlock()
		select {
		case <-answered:
		case <-time.After(20 * time.Second):
			t.Error("the run stands still while the relay answers")
		}
	}
	x.sleep = func(ctx context.Context, d time.Duration) error {
		x.Advance(d)
		mu.Lock()
		defer mu.Unlock()
		wake(false)
		return ctx.Err()
	}
	if r := x.send(nil); r.Status != campaigns.RunDone || r.Sent != people {
		t.Errorf("%+v", r)
	}
	if took := x.Now().Sub(began); took > 16*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestARelayThatGoesDown stops a run after few more messages than those that must fail.
func TestARelayThatGoesDown(t *testing.T) {
	t.Parallel()
	for _, works := range []int{0, 50} {
		x := newMailing(t, 200, 60_000)
		x.relay = func(int, int) outcome.Result {
			if x.taken < works {
				return takes
			}
			return later
		}
		r := x.send(nil)
		// 40 must fail. Eight places hold messages then, and where some was taken before, as
		// many wait.
		most := 40 - 1 + 8 + min(works, 8)
		if failed := len(x.tries) - works; r.Status != campaigns.RunStopped || r.Sent != uint64(works) || failed < 40 || failed > most {
			t.Errorf("%d messages failed, of at most %d: %+v", failed, most, r)
		}
	}
}

// TestManyFaultyAddresses: where each second message fails for a while only, the run neither
// stops nor ends before all of them have been tried.
func TestManyFaultyAddresses(t *testing.T) {
	t.Parallel()
	x := newMailing(t, 300, 60_000)
	x.relay = func(person, _ int) outcome.Result {
		if person%2 == 0 {
			return later
		}
		return takes
	}
	if r := x.send(nil); r.Status != campaigns.RunDone || r.Sent != 150 || r.Failed != 150 || len(x.tries) != 300 {
		t.Errorf("%d tried: %+v", len(x.tries), r)
	}
}

// TestWaitingMessagesAreJudgedAnew: while a message waits for its next attempt, the person may
// unsubscribe or be erased, and the run may be cancelled. Nothing is sent then.
func TestWaitingMessagesAreJudgedAnew(t *testing.T) {
	t.Parallel()
	x := newMailing(t, 60, 600)
	cancelled := 0 // how often person 50 had been tried when the run was cancelled
	x.relay = func(person, try int) outcome.Result {
		// Whichever comes last: the others are waited for.
		if cancelled == 0 && x.tries[20] > 0 && x.tries[30] > 0 && x.tries[40] > 1 && x.tries[50] > 0 {
			x.must(campaigns.CommandUnschedule, campaigns.Unschedule{ID: x.campaign.ID})
			cancelled = x.tries[50]
		}
		if person == 50 {
			return later
		}
		if person < 20 || person%10 != 0 || try > 1 {
			return takes
		}
		switch person {
		case 20:
			x.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: x.ids[20], Channel: "email", Status: "unsubscribed", Source: "form"})
		case 30:
			x.must(resolver.CommandContactErase, resolver.ContactErase{ID: x.ids[30]})
		}
		return later
	}
	r := x.send(nil)
	if r.Status != campaigns.RunStopped || r.Skipped["unsubscribed"] != 1 {
		t.Errorf("%+v", r)
	}
	for person, want := range map[int]int{20: 1, 30: 1, 40: 2, 50: max(1, cancelled)} {
		if n := x.tries[person]; n != want {
			t.Errorf("person %d was tried %d times, expected %d", person, n, want)
		}
	}
}

// TestCreditsEndWhileAMessageWaits: the message is paid, and goes out.
func TestCreditsEndWhileAMessageWaits(t *testing.T) {
	t.Parallel()
	x := newMailing(t, 320, 60_000)
	others := make(chan struct{}) // closed when they have theirs, but for those who get none
	x.relay = func(person, try int) outcome.Result {
		if person == 50 && try < 4 {
			return later
		}
		if x.taken == 300-1-1 {
			close(others)
		}
		return takes
	}
	x.sleep = func(ctx context.Context, d time.Duration) error {
		if d < pauses {
			x.Advance(d)
			return ctx.Err()
		}
		<-others
		// The next attempt comes as soon as the state has stopped the run, before the run knows.
		for stopped := false; !stopped && t.Context().Err() == nil; {
			ok(t, x.node.Look(x.account, func(v *resolver.View) error {
				r, _ := v.Campaigns().Run(x.campaign.ID)
				stopped = r.Status == campaigns.RunStopped
				return nil
			}))
		}
		return ctx.Err()
	}
	if r := x.send(nil); r.Status != campaigns.RunStopped || r.Sent != 300 || r.Failed != 0 || x.tries[50] != 4 {
		t.Errorf("tried %d times: %+v", x.tries[50], r)
	}
}

// TestQuietHoursHoldTheLastMessage: where the last message of a campaign continues to a channel
// that quiet hours hold, the run waits for their end; it is not cut off.
func TestQuietHoursHoldTheLastMessage(t *testing.T) {
	t.Parallel()
	for _, tries := range []int{1, 3} {
		store, err := capture.Open(capture.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
		ok(t, err)
		x := newMailing(t, 20, 600)
		x.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: x.ids[19], Channel: "sms", Status: "subscribed", Source: "form"})
		x.save(campaigns.Campaign{Name: "omni", Channel: campaigns.ChannelOmni, Channels: []campaigns.ChannelMessage{{Channel: "email"}, {Channel: "sms", Body: "b"}}})
		var settings resolver.Settings
		ok(t, x.node.Read(t.Context(), x.account, func(v *resolver.View) error { settings = v.Settings(); return nil }))
		settings.SendingLimits = &pacing.Limits{Timezone: "UTC", QuietHours: &pacing.QuietHours{From: "11:00", To: "20:00", Channels: []string{"sms"}}}
		x.must(resolver.CommandSettingsSet, settings)
		x.relay = func(person, try int) outcome.Result {
			switch {
			case person < 19:
				return takes
			case try < tries:
				return later
			}
			return outcome.New(outcome.Permanent, "550", "no such mailbox")
		}
		evening := x.Now().Add(8 * time.Hour).UnixMilli()
		if r := x.send(store); r.Status != campaigns.RunWaiting || r.Sent != 19 || r.Resumed != 0 || r.WakeMs != evening {
			t.Errorf("tried %d times: %+v", tries, r)
		}
		ok(t, store.Close())
	}
}
