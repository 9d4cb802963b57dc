package messaging_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/outbox"
)

// TestMessagesOfFlowsHaveNoHoles: a message of a flow with a merge tag that has neither a
// value nor a default for a person is not sent to them; the reason names the tag, its
// credit is given back and the enrolment continues. Defaults, empty ones too, are the
// author's to choose.
func TestMessagesOfFlowsHaveNoHoles(t *testing.T) {
	t.Parallel()
	step := func(kind, texts string) string { return `{"id":"m","type":"` + kind + `",` + texts + `,"next":null}` }
	for name, x := range map[string]struct {
		step, missing string // "" where it is sent to Bob, too
	}{
		"body":           {step("email", `"subject":"Hello","body":"<p>Hello {{first_name}},</p>"`), "first_name"},
		"blank":          {step("email", `"subject":"Hello","body":"<p>{{attributes.blank}},</p>"`), "attributes.blank"},
		"subject":        {step("email", `"subject":"Order {{event.order}}","body":"<p>x</p>"`), "event.order"},
		"sender's name":  {step("email", `"subject":"x","sender_name":"{{geo.city}} shop","body":"<p>x</p>"`), "geo.city"},
		"plain text":     {step("email", `"subject":"x","body":"<p>x</p>","text":"{{last_name}}"`), "last_name"},
		"link":           {step("email", `"subject":"x","body":"<p><a href=\"https://shop.example/{{attributes.code}}\">x</a></p>"`), "attributes.code"},
		"untracked link": {step("email", `"subject":"x","body":"<p><a data-muster-track=\"off\" href=\"https://shop.example/{{attributes.code}}\">x</a></p>"`), "attributes.code"},
		"defaults":       {step("email", `"subject":"{{event.order | default: \"\"}}","body":"<p>{{first_name | friend}} <a href=\"https://shop.example/{{attributes.code | x}}\">x</a> <a href=\"{{unsubscribe_url}}\">bye</a></p>"`), ""},
		"SMS":            {step("sms", `"text":"Your code is {{attributes.code}}"`), "attributes.code"},
		"SMS, defaults":  {step("sms", `"text":"Your code is {{attributes.code | gone}} {{unsubscribe_url}}"`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			flow := w.flow(x.step)
			for _, c := range []contacts.Create{{Email: "ada@x.io", FirstName: "Ada", LastName: "Lee", Phone: "+491701"}, {Email: "bob@x.io", Phone: "+491702"}} {
				var r contacts.Reply
				ok(t, json.Unmarshal(w.must(contacts.CommandCreate, c), &r))
				if c.FirstName != "" {
					w.must(contacts.CommandUpdate, contacts.Update{ID: r.ID, Geo: json.RawMessage(`{"city":"Ulm"}`), Attributes: json.RawMessage(`{"code":0,"blank":"x"}`)})
				} else {
					w.must(contacts.CommandUpdate, contacts.Update{ID: r.ID, Attributes: json.RawMessage(`{"code":null,"blank":" \n"}`)})
				}
			}
			w.trigger(flow, "ada@x.io", `{"order":7}`)
			w.trigger(flow, "bob@x.io", `{}`)
			kind := outbox.KindEmail
			cost := int64(1)
			if strings.HasPrefix(name, "SMS") {
				kind, cost = outbox.KindSMS, 0
			}
			var before int64
			w.until("two wait", func(v *resolver.View) bool { before = credits(v); return v.Outbox().Len() == 2 })
			var mu sync.Mutex
			var to []string
			store, err := capture.Open(capture.Options{Dir: t.TempDir(), MaxBytes: 1 << 20})
			ok(t, err)
			t.Cleanup(func() { ok(t, store.Close()) })
			w.effects(messaging.MailerFunc(func(m *email.Message) outcome.Result {
				mu.Lock()
				defer mu.Unlock()
				to = append(to, m.To.Addr)
				return outcome.New(outcome.Accepted, "250", "ok")
			}), func(o *messaging.OutboxOptions) { o.Capture = store })
			refused := uint64(1)
			if x.missing == "" {
				refused = 0
			}
			w.until("both are on record", func(v *resolver.View) bool {
				return empty(v) && count(v, kind+"_sent") == 2-refused && count(v, kind+"_failed") == refused && credits(v) == before+int64(refused)*cost
			})
			w.until("both have come through the flow", func(v *resolver.View) bool { f, _ := v.Flows().Find(flow); return f.Counts.Completed == 2 })
			mu.Lock()
			defer mu.Unlock()
			if kind == outbox.KindEmail && (len(to) != int(2-refused) || !slices.Contains(to, "ada@x.io")) {
				t.Errorf("mailed %q", to)
			}
			if refused == 1 {
				want := `"reason":"{{` + x.missing + `}} has no value for this person, and no default"`
				w.recorded(kind+"_failed", want)
			}
		})
	}
}
