package messaging_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/credentials"
)

// The token of a device, as Google's service gives them out.
const fcmToken = "fMEP0_gTq:APA91bFyCo6XDOQrd8mAkqJ0Yz9"

// channelsOf are the counts of the channels of a flow's first step.
func (w *world) channelsOf(flow string) string {
	w.t.Helper()
	var list []automation.ChannelCount
	ok(w.t, w.node.Read(w.t.Context(), w.account, func(v *resolver.View) error {
		f, _ := v.Flows().Find(flow)
		list = f.Counts.Steps[0].Channels
		return nil
	}))
	return string(must.JSON(list))
}

// TestF1OmnichannelOfFlows: a person gets one message, on the first channel that reaches
// them. A message that cannot be delivered makes room for the next channel, and one that may
// have gone out does not.
func TestF1OmnichannelOfFlows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var answer atomic.Value
	answer.Store("ok")
	provider := newTarget(t, func(_ int, _ seen, rw http.ResponseWriter) {
		switch answer.Load() {
		case "ok":
			io.WriteString(rw, `{"sid":"SM1"}`)
		case "lost": // the message may have been accepted, but no answer arrives
			answer.Store("invalid")
			panic(http.ErrAbortHandler)
		default:
			rw.WriteHeader(http.StatusBadRequest)
			io.WriteString(rw, `{"code":21211,"message":"not a valid number"}`)
		}
	})
	// Without an idempotency key: the HTTP client itself repeats requests that have one.
	w.must(credentials.CommandSet, credentials.Credential{Group: credentials.Message, Name: "sms", Config: json.RawMessage(
		`{"url":"` + provider.URL + `","format":"form","from":"+15550001111","form":[{"name":"To","value":"{{to}}"},{"name":"Body","value":"{{body}}"}],"id_path":"sid"}`)})
	var mails atomic.Int64
	mailer := messaging.MailerFunc(func(m *email.Message) outcome.Result {
		mails.Add(1)
		if !strings.Contains(m.HTML, "Hi Ada, it is here") {
			t.Errorf("the e-mail says %s", m.HTML)
		}
		return outcome.New(outcome.Accepted, "250", "ok")
	})
	flow := w.flowOf("after_exit", `{"id":"any","type":"omnichannel","channels":[
		{"channel":"push","title":"Hi {{first_name}}","body":"{{event.what}}","link":"https://shop.example/a?b={{event.what}}","track_links":true,"collapse":"c"},
		{"channel":"sms","text":"Hi {{first_name}}, {{event.code}} https://shop.example/sale {{unsubscribe_url}}","track_links":true},
		{"channel":"email","subject":"s","body":"<p>Hi {{first_name}}, {{event.what}}</p>"}],"next":null}`)
	ada := w.contact("ada@x.io", "+491701234567")
	w.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: ada, Channel: "sms", Status: "subscribed", Source: "form"})
	var device contacts.DeviceReply
	ok(t, json.Unmarshal(w.must(contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: ada, Kind: "fcm", Address: fcmToken}), &device))
	kept, err := capture.Open(capture.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
	ok(t, err)
	run := func() func() {
		_, stop := w.effects(mailer, func(o *messaging.OutboxOptions) { o.Capture = kept })
		return stop
	}
	stop := run()
	sent := func(what, event string, n uint64, texts, letters int) {
		t.Helper()
		w.until(what, func(v *resolver.View) bool { return empty(v) && count(v, event) == n })
		if got := len(provider.got()); got != texts || int(mails.Load()) != letters {
			t.Fatalf("%s: %d requests for texts and %d e-mails, not %d and %d", what, got, mails.Load(), texts, letters)
		}
	}

	w.trigger(flow, "ada@x.io", `{"what":"it is here","code":"X"}`)
	sent("a push message", "push_sent", 1, 0, 0)
	list, _, err := kept.List(capture.Filter{Channel: "push"}, 0, 0)
	ok(t, err)
	if len(list) != 1 || list[0].Subject != "Hi Ada" || list[0].Body != "it is here" || !strings.HasPrefix(list[0].Headers["Link"], "http://127.0.0.1:8080/") {
		t.Fatalf("%+v", list)
	}

	w.must(contacts.CommandDeviceRemove, contacts.DeviceRemove{Profile: ada, Device: device.Device})
	w.trigger(flow, "ada@x.io", `{"what":"it is here","code":"X"}`)
	sent("a text, without a device", "sms_sent", 1, 1, 0)
	if body := provider.got()[0].body; strings.Contains(body, "shop.example") || strings.Count(body, "127.0.0.1%3A8080") != 2 {
		t.Errorf("links of the text are not counted: %s", body)
	}

	answer.Store("invalid")
	w.trigger(flow, "ada@x.io", `{"what":"it is here","code":"X"}`)
	sent("an e-mail, since the text cannot be delivered", "email_sent", 1, 2, 1)

	w.trigger(flow, "ada@x.io", `{"what":"it is here"}`)
	sent("an e-mail, since the text would have a hole", "email_sent", 2, 2, 2)

	answer.Store("lost")
	w.trigger(flow, "ada@x.io", `{"what":"it is here","code":"X"}`)
	w.until("the answer of the text is lost", func(v *resolver.View) bool { return len(provider.got()) == 3 })
	w.until("the text waits for another attempt", func(v *resolver.View) bool { l := w.waitingIn(v, "sms"); return len(l) == 1 && l[0].Handed })
	w.Advance(time.Minute)
	sent("no e-mail: the text may have arrived", "sms_failed", 3, 4, 2)

	stop()
	w.trigger(flow, "ada@x.io", `{"what":"it is here","code":"X"}`)
	w.until("the text is queued", func(v *resolver.View) bool { return len(w.waitingIn(v, "sms")) == 1 })
	w.close()
	w.open()
	run()
	sent("no e-mail: an earlier process may have sent the text", "sms_failed", 4, 5, 2)

	want := string(must.JSON([]automation.ChannelCount{
		{Queued: 1, Skipped: map[flows.Result]uint64{flows.NoAddress: 5}}, {Queued: 5, Failed: 4}, {Queued: 2},
	}))
	if got := w.channelsOf(flow); got != want {
		t.Errorf("counted %s, not %s", got, want)
	}
}
