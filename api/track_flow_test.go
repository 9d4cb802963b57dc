package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/contacts"
)

// flowMessages carries out what flows put into the outbox.
func (m *mailing) flowMessages() {
	m.t.Helper()
	client, err := webhook.NewClient(webhook.Options{Now: m.clock.Now})
	ok(m.t, err)
	o, err := messaging.NewOutbox(messaging.OutboxOptions{
		Node: m.node, Mailer: messaging.CaptureMailer{Store: m.capture}, Capture: m.capture, Webhooks: client, PublicURL: "http://127.0.0.1:8080",
		Now: m.clock.Now, Rand: func() uint64 { return 0 }, Metrics: metrics.NewSet(), Poll: 5 * time.Millisecond,
	})
	ok(m.t, err)
	m.t.Cleanup(func() { o.Close(); client.Close() })
}

// startFlow makes a flow and takes it live.
func (m *mailing) startFlow(definition string) (id string) {
	m.t.Helper()
	var x automation.Reply
	m.command(automation.CommandCreate, automation.Save{Definition: json.RawMessage(definition)}, &x)
	m.command(automation.CommandPublish, automation.ID{ID: x.ID}, nil)
	m.soon("the flow is live", func(v *resolver.View) bool {
		f, _ := v.Flows().Find(x.ID)
		return f.Status == automation.Live
	})
	return x.ID
}

func (m *mailing) soon(what string, is func(*resolver.View) bool) {
	m.t.Helper()
	eventually.Holds(m.t, what, func() (done bool) {
		ok(m.t, m.node.Read(m.t.Context(), m.account, func(v *resolver.View) error { done = is(v); return nil }))
		return done
	})
}

// TestLinksOfAFlowsMessagesAreFollowed: opens, clicks and unsubscribing name flow
// and step when nothing is left in the outbox, and the click leads where the
// event that started the flow says.
func TestLinksOfAFlowsMessagesAreFollowed(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.flowMessages()
	m.command(resolver.CommandCreditsAdd, resolver.CreditsAdd{Amount: 10}, nil)
	var reply contacts.Reply
	m.command(contacts.CommandCreate, contacts.Create{Email: "ada@x.io", FirstName: "Ada Lovelace", Phone: "+491701234567"}, &reply)
	flow := m.startFlow(`{"name":"Cart","trigger":{"type":"api"},"steps":[
		{"id":"mail","type":"email","subject":"Cart {{event.cart}}","body":"<p>Hi</p><a href=\"https://shop.example/a?cart={{event.cart}}&n={{first_name}}\">A</a><a href=\"https://shop.example/b\">B</a><a href=\"{{unsubscribe_url}}\">no more</a>","next":"text"},
		{"id":"text","type":"sms","text":"Cart {{event.cart}}, stop: {{unsubscribe_url}}","next":null}]}`)
	m.command(automation.CommandTrigger, automation.Trigger{ID: flow, Email: "ada@x.io", Data: json.RawMessage(`{"cart":"c 1&x=2"}`)}, nil)
	m.soon("both messages are out", func(v *resolver.View) bool { return v.Outbox().Len() == 0 })
	mail := m.mail("ada@x.io")
	if mail.Subject != "Cart c 1&x=2" {
		t.Errorf("subject %q", mail.Subject)
	}
	clicks, unsubscribe, pixel := m.links("ada@x.io")
	m.visit("GET", pixel, browser, "")
	for i, want := range []string{"https://shop.example/a?cart=c%201%26x%3D2&n=Ada%20Lovelace", "https://shop.example/b"} {
		if res, _ := m.visit("GET", clicks[i], browser, ""); res.StatusCode != 302 || res.Header.Get("Location") != want {
			t.Errorf("click %d: %d %q", i, res.StatusCode, res.Header.Get("Location"))
		}
	}
	if h := mail.Headers["List-Unsubscribe"]; h != "<http://127.0.0.1:8080"+unsubscribe+">" || mail.Headers["List-Unsubscribe-Post"] == "" {
		t.Errorf("List-Unsubscribe: %s", h)
	}
	if res, _ := m.visit("POST", unsubscribe, "", "List-Unsubscribe=One-Click"); res.StatusCode != 200 {
		t.Errorf("one click: %d", res.StatusCode)
	}
	if p := m.profile("ada@x.io"); p.Consent("email").Status != "unsubscribed" || p.Consent("sms").Status != "subscribed" {
		t.Errorf("%+v", p.Consents)
	}
	texts, _, err := m.capture.List(capture.Filter{Channel: "sms"}, 0, 0)
	ok(t, err)
	if len(texts) != 1 || texts[0].To != "+491701234567" || !strings.HasPrefix(texts[0].Body, "Cart c 1&x=2, stop: ") {
		t.Fatalf("%+v", texts)
	}
	m.visit("POST", trackedLink.FindStringSubmatch(texts[0].Body)[1], browser, "")
	if p := m.profile("ada@x.io"); p.Consent("sms").Status != "unsubscribed" {
		t.Errorf("%+v", p.Consents)
	}
	// A link that was changed leads nowhere.
	if res, _ := m.visit("GET", clicks[1][:len(clicks[1])-30]+"A"+clicks[1][len(clicks[1])-29:], browser, ""); res.StatusCode != 404 {
		t.Errorf("a changed link: %d", res.StatusCode)
	}

	var history struct {
		Events []struct {
			EventType  string `json:"event_type"`
			Properties map[string]any
		}
	}
	m.want("GET", "/profiles/"+reply.ID+"/events", "", &history)
	ids := map[string]any{}
	seen := map[string]int{}
	for _, e := range history.Events {
		channel, _, _ := strings.Cut(e.EventType, "_")
		step := map[string]string{"email": "mail", "sms": "text"}[channel]
		if step == "" {
			continue
		}
		seen[e.EventType]++
		p := e.Properties
		if p["flow_id"] != flow || p["step_id"] != step || p["message_id"] == nil {
			t.Errorf("%s: %v", e.EventType, p)
		}
		if ids[channel] == nil {
			ids[channel] = p["message_id"]
		} else if ids[channel] != p["message_id"] {
			t.Errorf("%s names message %v, others %v", e.EventType, p["message_id"], ids[channel])
		}
	}
	for typ, n := range map[string]int{"email_sent": 1, "email_opened": 1, "email_clicked": 2, "email_unsubscribed": 1, "sms_sent": 1, "sms_unsubscribed": 1} {
		if seen[typ] != n {
			t.Errorf("%d events %s, expected %d: %v", seen[typ], typ, n, seen)
		}
	}
}
