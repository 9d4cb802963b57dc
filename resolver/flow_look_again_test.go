package resolver

import (
	"errors"
	"fmt"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/pacing"
)

// notYet is the condition of having done something never so far.
func notYet(event string) string {
	return fmt.Sprintf(`{"kind":"activity","event":%q,"did":false}`, event)
}

// heldFlow is a flow of steps behind a wait of a minute, whose message "remind" goes out when
// nothing holds it up.
func heldFlow(steps string) string {
	return `{"name":"x","trigger":{"type":"event","event":"cart_updated"},"steps":[{"id":"wait","type":"wait","seconds":60,"next":"open"},` + steps +
		`,{"id":"remind",` + mailStep + `,"next":null}]}`
}

// quietNights are quiet hours from one to three by the clocks of UTC.
func quietNights() Settings {
	s := withoutOptIn()
	s.SendingLimits = &pacing.Limits{QuietHours: &pacing.QuietHours{From: "01:00", To: "03:00"}}
	return s
}

// TestF1ConditionsBeforeAHeldStepAreLookedAtAgain: a message that quiet hours or a pause hold
// up goes out only if the conditions that lead to it hold at the time. Conditions behind
// which something was done stay as they were.
func TestF1ConditionsBeforeAHeldStepAreLookedAtAgain(t *testing.T) {
	t.Parallel()
	open := `{"id":"open","type":"condition","if":` + notYet("order_placed") + `,"yes":"remind","no":null}`
	thanks := `{"id":"open","type":"condition","if":` + notYet("order_placed") + `,"yes":"remind","no":"thanks"},{"id":"thanks","type":"tag","add":["bought"],"next":null}`
	nested := `{"id":"open","type":"condition","if":` + notYet("left") + `,"yes":"half","no":null},{"id":"half","type":"split","branches":[{"weight":1,"next":"again"},{"weight":1,"next":"again"}]},` +
		`{"id":"again","type":"condition","if":` + notYet("order_placed") + `,"yes":"remind","no":null}`
	tagged := `{"id":"open","type":"condition","if":` + notYet("order_placed") + `,"yes":"tag","no":null},{"id":"tag","type":"tag","add":["reminded"],"next":"remind"}`
	for name, c := range map[string]struct {
		steps     string
		held      string // where the enrolment stands in the quiet hours
		meanwhile func(r *recorder, flow string)
		want      string
		mails     int
		arrived   string // at each step, and there now
	}{
		"nothing happens":   {open, "wait:done open:yes remind:pending", nil, "wait:done open:yes remind:queued completed", 1, "1 1 1"},
		"an order":          {open, "wait:done open:yes remind:pending", (*recorder).orders, "wait:done open:no completed", 0, "1 1 0"},
		"another branch":    {thanks, "wait:done open:yes remind:pending", (*recorder).orders, "wait:done open:no thanks:done completed", 0, "1 1 1 0"},
		"the second of two": {nested, "wait:done open:yes half:branch again:yes remind:pending", (*recorder).orders, "wait:done open:yes half:branch again:no completed", 0, "1 1 1 1 0"},
		"the first of two": {nested, "wait:done open:yes half:branch again:yes remind:pending", func(r *recorder, _ string) {
			r.events(eventlog.Event{Type: []byte("left"), Email: []byte("a@x.io")})
		}, "wait:done open:no completed", 0, "1 1 0 0 0"},
		"a step behind the condition is done": {tagged, "wait:done open:yes tag:done remind:pending", (*recorder).orders, "wait:done open:yes tag:done remind:queued completed", 1, "1 1 1 1"},
		"a pause": {open, "wait:done open:yes remind:pending", func(r *recorder, flow string) {
			r.must(automation.CommandPause, automation.ID{ID: flow})
			r.now += 24 * 3_600_000
			r.orders(flow)
			r.now += 3_600_000
			r.must(automation.CommandResume, automation.ID{ID: flow})
		}, "wait:done open:no completed", 0, "1 1 0"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDurable(t, quietNights())
			r := d.recorder
			flow := r.flow(heldFlow(c.steps))
			ada := r.cart()
			r.now += 60_000
			r.tick()
			r.expectEnrolment(flow, ada, "#1 "+c.held+" in_progress")
			d.reload()
			r.now += 60_000
			if c.meanwhile != nil {
				c.meanwhile(r, flow)
			}
			d.reload()
			r.now += 2 * 3_600_000
			r.tick()
			r.rest()
			r.expectEnrolment(flow, ada, "#1 "+c.want)
			if n := len(r.due(outbox.KindEmail)); n != c.mails {
				t.Errorf("%d messages, want %d", n, c.mails)
			}
			got := ""
			for i, s := range r.flowState(flow).Counts.Steps {
				if i > 0 {
					got += " "
				}
				got += fmt.Sprint(s.Arrived)
				results := uint64(0)
				for _, n := range s.Results {
					results += n
				}
				if s.At != 0 || results != s.Arrived {
					t.Errorf("step %d counts %s", i, must.JSON(s))
				}
			}
			if got != c.arrived {
				t.Errorf("came to the steps: %s, want %s", got, c.arrived)
			}
			d.reload()
		})
	}
}

// cart begins the enrolment of somebody at night.
func (r *recorder) cart() ProfileID {
	r.t.Helper()
	return r.events(eventlog.Event{Type: []byte("cart_updated"), Email: []byte("a@x.io")}).Events[0].Profile
}

// orders is an order of the same person.
func (r *recorder) orders(string) {
	r.t.Helper()
	r.events(eventlog.Event{Type: []byte("order_placed"), Email: []byte("a@x.io")})
}

// rules says that a build with a version of the rules runs from here on.
func (r *recorder) rules(version int) *Refusal {
	r.t.Helper()
	env := r.envelope(eventlog.KindCommand)
	env.Account = 0
	r.apply(eventlog.AppendCommand(env.Append(nil), CommandPartitionRules, must.JSON(RulesBegin{ApplyVersion: version})))
	return r.out.Refusal
}

// TestR1RulesOfVersion24Begin: what was written under older rules is replayed by them, until
// a record says that a newer build runs: an epoch, the record of a node without epochs, or
// one that makes a company. Checkpoints keep which rules hold.
func TestR1RulesOfVersion24Begin(t *testing.T) {
	t.Parallel()
	const older, newer = "open:yes remind:queued completed", "open:no completed"
	for name, c := range map[string]struct {
		begin func(r *recorder)
		want  string
	}{
		"not":              {func(*recorder) {}, older},
		"an older epoch":   {func(r *recorder) { r.partition(EpochBegin{Node: "a", ApplyVersion: state.RulesNoted - 1}) }, older},
		"older rules":      {func(r *recorder) { r.rules(state.RulesNoted - 1) }, older},
		"a refused record": {func(r *recorder) { r.command(CommandPartitionRules, RulesBegin{ApplyVersion: ApplyVersion}) }, older},
		"an epoch":         {func(r *recorder) { r.partition(EpochBegin{Node: "a", ApplyVersion: ApplyVersion}) }, newer},
		"newer rules":      {func(r *recorder) { r.rules(ApplyVersion) }, newer},
		"newer rules, then older": {func(r *recorder) {
			r.rules(ApplyVersion)
			r.partition(EpochBegin{Node: "a", ApplyVersion: state.RulesNoted - 1})
		}, newer},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDurableUnder(t, quietNights(), state.RulesNoted-1)
			r := d.recorder
			if !r.m.NeedsRules() {
				t.Error("an account of older rules needs no record of the newer ones")
			}
			flow := r.flow(heldFlow(`{"id":"open","type":"condition","if":` + notYet("order_placed") + `,"yes":"remind","no":null}`))
			ada := r.cart()
			r.now += 60_000
			r.tick()
			c.begin(r)
			if r.m.NeedsRules() != (c.want == older) {
				t.Errorf("needs a record of the rules: %v", r.m.NeedsRules())
			}
			r.now += 60_000
			r.orders(flow)
			d.reload()
			r.now += 2 * 3_600_000
			r.tick()
			r.rest()
			r.expectEnrolment(flow, ada, "#1 wait:done "+c.want)
		})
	}
	r := newRecorder(t, DefaultSettings())
	if r.m.NeedsRules() {
		t.Error("an account of the present rules needs a record of them")
	}
	if r := (&recorder{t: t, m: testMachine(t)}); r.m.NeedsRules() {
		t.Error("an empty state needs a record of the rules")
	}
	env := r.envelope(eventlog.KindCommand)
	env.Account = 0
	err := r.m.Apply(r.m.next, eventlog.AppendCommand(env.Append(nil), CommandPartitionRules, must.JSON(RulesBegin{ApplyVersion: ApplyVersion + 1})), &r.rows, &r.out)
	if !errors.Is(err, ErrNewer) {
		t.Errorf("rules of a newer build: %v", err)
	}
}

// TestF1FailedMessagesOfChannelsCountOnce: a message of an omnichannel step that fails counts
// as failed on its channel, once, also if it may have gone out at a kill and nothing takes its
// place. Under older rules that one did not count.
func TestF1FailedMessagesOfChannelsCountOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		done outbox.Done
		// Of the first channel under the present and older rules, and whether a text follows.
		failed, older int
		next          bool
	}{
		"sent":                          {outbox.Done{Result: outbox.ResultSent}, 0, 0, false},
		"undeliverable":                 {outbox.Done{Result: outbox.ResultBounced, Unreachable: true}, 1, 1, true},
		"refused after a kill":          {outbox.Done{Result: outbox.ResultRefused}, 1, 0, false},
		"given up, its answer was lost": {outbox.Done{Result: outbox.ResultFailed, Handed: true, Unreachable: true}, 1, 0, false},
		"moot":                          {outbox.Done{Result: outbox.ResultMoot}, 0, 0, false},
	} {
		for _, version := range []int{ApplyVersion, state.RulesNoted - 1} {
			t.Run(fmt.Sprint(name, " under ", version), func(t *testing.T) {
				r := newDurableUnder(t, withoutOptIn(), version).recorder
				flow := r.flow(`{"name":"x","trigger":{"type":"api"},"steps":[{"id":"any","type":"omnichannel","channels":[{"channel":"email","subject":"s","body":"b"},{"channel":"sms","text":"Hi"}],"next":null}]}`)
				ada := r.contact(contacts.Create{Email: "ada@x.io", Phone: "+491701234567"})
				r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: ada, Channel: "sms", Status: "subscribed", Source: "form"})
				r.must(automation.CommandTrigger, automation.Trigger{ID: flow, Email: "ada@x.io"})
				d := c.done
				d.Seq, d.Reason = r.due(outbox.KindEmail)[0].Seq, "why"
				r.must(messages.CommandOutboxDone, d)
				r.must(messages.CommandOutboxDone, d) // a report that comes twice counts once
				want := c.failed
				if version < state.RulesNoted {
					want = c.older
				}
				x := r.flowState(flow).Counts.Steps[0]
				if x.Channels[0].Queued != 1 || x.Channels[0].Failed != uint64(want) || (x.Channels[1].Queued == 1) != c.next {
					t.Errorf("counted %s, want %d failed", must.JSON(x.Channels), want)
				}
			})
		}
	}
}
