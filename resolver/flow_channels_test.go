package resolver

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// TestF1OmnichannelStory takes a person through a step of all channels: each message that
// cannot be delivered makes room for the next, a dead device is retired, and what may have
// gone out stays the only message.
func TestF1OmnichannelStory(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	flow := r.flow(`{"name":"x","reentry":"after_exit","trigger":{"type":"api"},"steps":[{"id":"any","type":"omnichannel","channels":[
		{"channel":"push","title":"Hi","link":"myapp://sale","ttl_seconds":60,"track_links":true},{"channel":"whatsapp","template":"t","language":"en"},
		{"channel":"sms","text":"Hi","track_links":true},{"channel":"email","subject":"s","body":"b"}],"next":null}]}`)
	ada := r.contact(contacts.Create{Email: "ada@x.io", Phone: "+491701234567"})
	for _, channel := range []string{"sms", "whatsapp"} {
		r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: ada, Channel: channel, Status: "subscribed", Source: "form"})
	}
	r.device(ada, "phone", "https://push.example/1")
	// report tells what became of the only message, which is on a channel.
	report := func(channel string, d outbox.Done) {
		t.Helper()
		list, err := r.view().OutboxDue(channel, 1<<60, 10, func(uint64) bool { return false })
		if err != nil || len(list) != 1 || r.view().Outbox().Len() != 1 {
			t.Fatalf("%d messages on %s of %d: %v", len(list), channel, r.view().Outbox().Len(), err)
		}
		if list[0].Flow != flow || list[0].Step != "any" || !strings.Contains(string(list[0].Payload), `"event":{"n":1}`) {
			t.Fatalf("%+v %s", list[0], list[0].Payload)
		}
		d.Seq, d.Attempt = list[0].Seq, list[0].Attempt
		r.must(messages.CommandOutboxDone, d)
		r.must(messages.CommandOutboxDone, d) // a report that comes twice counts once
	}
	enter := func() {
		r.must(automation.CommandTrigger, automation.Trigger{ID: flow, Email: "ada@x.io", Data: []byte(`{"n":1}`)})
	}
	enter()
	report("push", outbox.Done{Result: outbox.ResultFailed, Reason: "410", Unreachable: true, Retired: []string{"https://push.example/1"}})
	if n := len(r.profile(ada).Devices); n != 0 {
		t.Fatalf("%d devices are left", n)
	}
	report("whatsapp", outbox.Done{Result: outbox.ResultRefused, Reason: "blocked", Unreachable: true})
	report("sms", outbox.Done{Result: outbox.ResultRetry, Reason: "later", DelayMs: 1000})
	report("sms", outbox.Done{Result: outbox.ResultBounced, Reason: "no such number", Unreachable: true})
	report("email", outbox.Done{Result: outbox.ResultFailed, Reason: "550", Unreachable: true})
	enter() // the device is gone, and the number is blocked
	report("whatsapp", outbox.Done{Result: outbox.ResultRetry, Reason: "no answer", Handed: true, DelayMs: 1000})
	report("whatsapp", outbox.Done{Result: outbox.ResultFailed, Reason: "no such number", Unreachable: true})
	if n := r.view().Outbox().Len(); n != 0 {
		t.Fatalf("%d messages took the place of one that may have arrived", n)
	}
	enter()
	report("whatsapp", outbox.Done{Result: outbox.ResultMoot, Unreachable: true})
	const want = `[{"queued":1,"failed":1,"skipped":{"8":2}},{"queued":3,"failed":2},{"queued":1,"failed":1},{"queued":1,"failed":1}]`
	if got := string(must.JSON(r.flowState(flow).Counts.Steps[0].Channels)); got != want {
		t.Errorf("counted %s, not %s", got, want)
	}
}

// TestFlowsSendInstantMessages: steps and omni-channel steps send by the account's own instant
// messenger to its subscribers. Older rules refuse such flows, also where a newer build replays
// them.
func TestFlowsSendInstantMessages(t *testing.T) {
	t.Parallel()
	const definition = `{"name":"f","trigger":{"type":"api"},"reentry":"after_exit","steps":[{"id":"i","type":"im","text":"Hi {{first_name}}","next":"o"},
		{"id":"o","type":"omnichannel","channels":[{"channel":"im","text":"Hi"},{"channel":"sms","text":"Hi"}],"next":null}]}`
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	flow := r.flow(definition)
	id := r.contact(contacts.Create{Email: "ann@x.io", Phone: "+491701234567"})
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "im", Status: "subscribed"})
	r.must(automation.CommandTrigger, automation.Trigger{ID: flow, Email: "ann@x.io"})
	d.reload()
	if n := len(r.due(outbox.KindIM)); n != 2 || len(r.due(outbox.KindSMS)) != 0 {
		t.Errorf("%d instant messages", n)
	}
	d = newDurableUnder(t, DefaultSettings(), 24)
	r = d.recorder
	six := `{"name":"f","steps":[{"id":"o","type":"omnichannel","channels":[` + strings.Repeat(`{"channel":"sms"},`, 5) + `{"channel":"sms"}]}]}`
	for _, newer := range []string{definition, six} {
		if x := r.command(automation.CommandCreate, automation.Save{Definition: []byte(newer)}).Refusal; x == nil || x.Code != "invalid" {
			t.Errorf("under older rules: %v", x)
		}
	}
	r.rules(ApplyVersion)
	r.flow(definition)
	d.reload()
}
