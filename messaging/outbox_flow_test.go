package messaging_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// accepts is a mailer that takes everything.
var accepts = messaging.MailerFunc(func(*email.Message) outcome.Result { return outcome.New(outcome.Accepted, "250", "ok") })

// effects carries out what flows want, private addresses included.
func (w *world) effects(m messaging.Mailer, change func(*messaging.OutboxOptions)) (set *metrics.Set, stop func()) {
	w.t.Helper()
	client, err := webhook.NewClient(webhook.Options{Now: w.Now, Guard: webhook.Guard{AllowPrivate: true}})
	ok(w.t, err)
	set = metrics.NewSet()
	opts := messaging.OutboxOptions{Node: w.node, Mailer: m, Webhooks: client, PublicURL: "http://127.0.0.1:8080", Now: w.Now,
		Rand: func() uint64 { return 1 << 63 }, Metrics: set, Poll: 5 * time.Millisecond, Text: text.Options{AllowPrivate: true}}
	if change != nil {
		change(&opts)
	}
	o, err := messaging.NewOutbox(opts)
	ok(w.t, err)
	stop = sync.OnceFunc(func() { o.Close(); client.Close() })
	w.t.Cleanup(stop)
	return set, stop
}

// flow takes a flow live that the API starts; steps are JSON.
func (w *world) flow(steps string) (id string) {
	w.t.Helper()
	return w.flowOf("once", steps)
}

// flowOf is flow for one that takes people again as reentry says.
func (w *world) flowOf(reentry, steps string) (id string) {
	w.t.Helper()
	var x automation.Reply
	ok(w.t, json.Unmarshal(w.must(automation.CommandCreate, automation.Save{Definition: json.RawMessage(`{"name":"f","trigger":{"type":"api"},"reentry":"` + reentry + `","steps":[` + steps + `]}`)}), &x))
	w.must(automation.CommandPublish, automation.ID{ID: x.ID})
	w.until("the flow is live", func(v *resolver.View) bool { f, _ := v.Flows().Find(x.ID); return f.Status == automation.Live })
	return x.ID
}

func (w *world) contact(address, phone string) (id string) {
	w.t.Helper()
	var r contacts.Reply
	ok(w.t, json.Unmarshal(w.must(contacts.CommandCreate, contacts.Create{Email: address, FirstName: "Ada", Phone: phone}), &r))
	return r.ID
}

func (w *world) trigger(flow, address, data string) {
	w.t.Helper()
	w.must(automation.CommandTrigger, automation.Trigger{ID: flow, Email: address, Data: json.RawMessage(data)})
}

func (w *world) waiting(kind string) (list []view.OutboxWork) {
	w.t.Helper()
	ok(w.t, w.node.Read(w.t.Context(), w.account, func(v *resolver.View) error {
		list = w.waitingIn(v, kind)
		return nil
	}))
	return list
}

// waitingIn is waiting for callers inside a read: a read inside a read stops for
// good when a write comes between the two.
func (w *world) waitingIn(v *resolver.View, kind string) []view.OutboxWork {
	w.t.Helper()
	list, err := v.OutboxDue(kind, 1<<60, 100, func(uint64) bool { return false })
	ok(w.t, err)
	return list
}

func (w *world) consent(address, channel string) (c view.Consent) {
	w.t.Helper()
	ok(w.t, w.node.Read(w.t.Context(), w.account, func(v *resolver.View) error {
		o, _ := v.Profiles().Find(resolver.IdentityEmail, address)
		p, err := v.Profiles().Get(o)
		if err == nil {
			c = p.Consent(channel)
		}
		return err
	}))
	return c
}

func empty(v *resolver.View) bool { return v.Outbox().Len() == 0 }

// seen is a request as a server got it.
type seen struct {
	method, path, body string
	header             http.Header
}

// target is a real HTTP server.
type target struct {
	*httptest.Server
	mu     sync.Mutex
	list   []seen
	answer func(n int, s seen, w http.ResponseWriter)
}

func newTarget(t *testing.T, answer func(n int, s seen, w http.ResponseWriter)) *target {
	t.Helper()
	x := &target{answer: answer}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		s := seen{r.Method, r.URL.RequestURI(), string(b), r.Header}
		x.mu.Lock()
		x.list = append(x.list, s)
		n := len(x.list)
		x.mu.Unlock()
		x.answer(n, s, w)
	}))
	t.Cleanup(x.Close)
	return x
}

func (x *target) got() []seen {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.list)
}

// provider sets a provider of texts that takes the message's id as a key.
func (w *world) provider(url string) {
	w.t.Helper()
	w.must(credentials.CommandSet, credentials.Credential{Group: credentials.Message, Name: "sms", Config: json.RawMessage(fmt.Sprintf(
		`{"url":%q,"format":"form","from":"+15550001111","form":[{"name":"To","value":"{{to}}"},{"name":"Body","value":"{{body}}"}],
		"headers":[{"name":"Idempotency-Key","value":"{{id}}"}],"id_path":"sid","code_path":"code","error_path":"message","codes":{"21610":"opted_out"}}`, url))})
}

func mailStep(next string) string {
	return `{"id":"mail","type":"email","subject":"Hello","body":"<p>Hi {{first_name}}</p>","next":` + next + `}`
}

func smsStep(next string) string {
	return `{"id":"text","type":"sms","text":"Hi {{first_name}}, {{event.what}}","next":` + next + `}`
}

// TestF1EffectsAreRepeatedUnderTheirIDs: what was handed over when the process
// died is handed over again under the same id, in each of the three ways out.
func TestF1EffectsAreRepeatedUnderTheirIDs(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{outbox.KindEmail, outbox.KindSMS, outbox.KindCall} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			block, arrived := make(chan struct{}), make(chan struct{})
			let := sync.OnceFunc(func() { close(block) })
			hold := func(n int) {
				if n == 1 {
					close(arrived)
					<-block
				}
			}
			relay := newServer(t)
			relay.onData = func(n int) error { hold(n + 1); return nil }
			x := newTarget(t, func(n int, _ seen, w http.ResponseWriter) { hold(n); io.WriteString(w, `{"sid":"SM1"}`) })
			w.provider(x.URL)
			step := map[string]string{
				outbox.KindEmail: mailStep("null"), outbox.KindSMS: smsStep("null"),
				outbox.KindCall: `{"id":"call","type":"webhook","url":"` + x.URL + `/hook","body":{"who":"{{email}}"},"next":null}`,
			}[kind]
			flow := w.flow(step)
			w.contact("ada@x.io", "+491701234567")
			sender := relay.sender(t)
			t.Cleanup(let)
			_, stop := w.effects(sender, nil)
			w.trigger(flow, "ada@x.io", `{"what":"it is here"}`)
			<-arrived
			w.close() // the process is killed while the other side works
			let()
			stop()
			w.open()
			w.effects(sender, nil)
			w.until("it is on record", empty)
			var ids []string
			if kind == outbox.KindEmail {
				relay.mu.Lock()
				for _, m := range relay.mails {
					ids = append(ids, m.Header.Get("Message-Id"))
				}
				relay.mu.Unlock()
			}
			for _, s := range x.got() {
				ids = append(ids, s.header.Get(map[string]string{outbox.KindSMS: "Idempotency-Key", outbox.KindCall: "Webhook-Id"}[kind]))
			}
			if len(ids) != 2 || ids[0] == "" || ids[0] != ids[1] {
				t.Errorf("%v", ids)
			}
		})
	}
}

func TestAdvertisingGoesToSubscribersOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	flow := w.flow(mailStep(`"text"`) + "," + smsStep("null"))
	for _, name := range []string{"ada", "bob", "cy"} {
		id := w.contact(name+"@x.io", "")
		switch name {
		case "bob":
			w.trigger(flow, "bob@x.io", `{}`)
			w.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "unsubscribed", Source: "test"})
		case "cy":
			w.trigger(flow, "cy@x.io", `{}`)
			w.must(messages.CommandEngagement, messages.EngagementRecord{Profile: id, Channel: "email", Kind: messages.EngagementComplaint})
		default:
			w.trigger(flow, "ada@x.io", `{}`)
		}
	}
	var before int64
	w.until("three wait", func(v *resolver.View) bool { before = credits(v); return v.Outbox().Len() == 3 })
	var mu sync.Mutex
	var sent []*email.Message
	w.effects(messaging.MailerFunc(func(m *email.Message) outcome.Result {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, m)
		return outcome.New(outcome.Accepted, "250", "ok")
	}), nil)
	w.until("credits of two are given back", func(v *resolver.View) bool {
		return empty(v) && credits(v) == before+2 && count(v, "email_failed") == 2
	})
	mu.Lock()
	defer mu.Unlock()
	if len(sent) != 1 || sent[0].To.Addr != "ada@x.io" || sent[0].To.Name != "Ada" || sent[0].Unsubscribe.URL == "" || !strings.HasPrefix(sent[0].FeedbackID, flow+":") ||
		!strings.Contains(sent[0].HTML, "<p>Hi Ada</p>") || !strings.Contains(sent[0].HTML, "<img ") {
		t.Errorf("%+v", sent)
	}
}

// TestF1EffectsOfADeletedFlowAreDropped: what waits when a flow is deleted is not
// sent, and gives its credits back. What is under way ends.
func TestF1EffectsOfADeletedFlowAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	block, arrived := make(chan struct{}), make(chan struct{})
	let := sync.OnceFunc(func() { close(block) })
	t.Cleanup(let)
	x := newTarget(t, func(n int, _ seen, w http.ResponseWriter) {
		if n == 1 {
			close(arrived)
			<-block
		}
		io.WriteString(w, `{"sid":"SM1"}`)
	})
	w.provider(x.URL)
	call := `{"id":"call","type":"webhook","url":"` + x.URL + `/hook","body":{"who":"{{email}}"},"next":null}`
	flow, stays := w.flow(mailStep(`"text"`)+","+smsStep(`"call"`)+","+call), w.flow(strings.Replace(call, "/hook", "/stays", 1))
	sent := 0
	mailer := messaging.MailerFunc(func(*email.Message) outcome.Result {
		sent++ // one at a time
		return outcome.New(outcome.Accepted, "250", "ok")
	})
	one := func(o *messaging.OutboxOptions) { o.Mails, o.Texts, o.Calls = 1, 1, 1 }
	// The first call is under way, the others wait.
	first := w.flow(strings.Replace(call, "/hook", "/first", 1))
	for _, name := range []string{"ada", "bob"} {
		w.contact(name+"@x.io", map[string]string{"ada": "+491701234567", "bob": "+491701234568"}[name])
	}
	_, stop := w.effects(mailer, one)
	w.trigger(first, "ada@x.io", `{}`)
	<-arrived
	var before int64
	w.until("the call is under way", func(v *resolver.View) bool { before = credits(v); return v.Outbox().Len() == 1 })
	w.must(automation.CommandPause, automation.ID{ID: first})
	w.must(automation.CommandDelete, automation.ID{ID: first})
	let()
	w.until("it ends", empty)
	if list := x.got(); len(list) != 1 || list[0].body != `{"who":"ada@x.io"}` {
		t.Fatalf("%+v", list)
	}
	stop()
	for _, name := range []string{"ada", "bob"} {
		w.trigger(flow, name+"@x.io", `{}`)
	}
	w.trigger(stays, "ada@x.io", `{}`)
	w.until("they wait", func(v *resolver.View) bool { return v.Outbox().Len() == 7 && credits(v) == before-2 })
	w.must(automation.CommandPause, automation.ID{ID: flow})
	w.must(automation.CommandDelete, automation.ID{ID: flow})
	for _, kind := range []string{outbox.KindEmail, outbox.KindSMS, outbox.KindCall} {
		for _, it := range w.waiting(kind) {
			if (it.Moot != "") != (it.Flow == flow) || it.Moot != "" && !strings.Contains(it.Moot, "deleted") {
				t.Errorf("%s of flow %s is moot for %q", kind, it.Flow, it.Moot)
			}
		}
	}
	w.close() // a start later it is the same
	w.open()
	w.effects(mailer, one)
	w.until("all are done", func(v *resolver.View) bool { return empty(v) && credits(v) == before })
	if list := x.got(); len(list) != 2 || list[1].path != "/stays" || sent != 0 {
		t.Errorf("%d e-mails, requests %+v", sent, list)
	}
	w.until("no outcome is on record", func(v *resolver.View) bool {
		return count(v, "email_sent")+count(v, "email_failed")+count(v, "sms_sent")+count(v, "sms_failed") == 0
	})
}

// A sender domain that is removed sends nothing more, live flow or not.
func TestRemovedSenderDomainsSendNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(domains.CommandAdd, domains.Domain{Name: "gone.example"})
	w.must(domains.CommandVerify, domains.Name{Name: "gone.example", By: "test"})
	flow := w.flow(strings.Replace(mailStep("null"), `"subject"`, `"sender":"x@gone.example","subject"`, 1))
	w.contact("ada@x.io", "")
	w.must(domains.CommandDelete, domains.Name{Name: "gone.example"})
	w.trigger(flow, "ada@x.io", `{}`)
	var before int64
	w.until("it waits", func(v *resolver.View) bool { before = credits(v); return v.Outbox().Len() == 1 })
	w.effects(messaging.MailerFunc(func(m *email.Message) outcome.Result {
		t.Errorf("sent from %s", m.From.Addr)
		return outcome.New(outcome.Accepted, "250", "ok")
	}), nil)
	w.until("it has failed, and costs nothing", func(v *resolver.View) bool {
		return empty(v) && count(v, "email_failed") == 1 && credits(v) == before+1
	})
}

func TestTextsOfFlowsThroughAProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := newTarget(t, func(n int, s seen, w http.ResponseWriter) {
		switch {
		case strings.Contains(s.body, "%2B491700000003"):
			w.WriteHeader(400)
			io.WriteString(w, `{"code":21610,"message":"has unsubscribed"}`)
		case n == 1:
			w.Header().Set("Retry-After", "40")
			w.WriteHeader(429)
		default:
			io.WriteString(w, `{"sid":"SM7"}`)
		}
	})
	w.provider(x.URL)
	flow := w.flow(smsStep("null"))
	w.contact("ada@x.io", "+49 170 0000001")
	late := w.contact("late@x.io", "+491700000002")
	w.contact("stop@x.io", "+491700000003")
	w.trigger(flow, "ada@x.io", `{"what":"A & B"}`)
	_, stop := w.effects(accepts, nil)
	w.until("the provider asks for patience", func(v *resolver.View) bool {
		l := w.waitingIn(v, outbox.KindSMS)
		return len(l) == 1 && l[0].Attempt == 1
	})
	if l := w.waiting(outbox.KindSMS); l[0].DueMs-w.Now().UnixMilli() < 40_000 {
		t.Errorf("due in %d ms, 40 s were asked for", l[0].DueMs-w.Now().UnixMilli())
	}
	w.Advance(time.Minute)
	w.until("it is sent", func(v *resolver.View) bool { return empty(v) && count(v, "sms_sent") == 1 })
	list := x.got()
	if len(list) != 2 || list[1].body != "Body=Hi+Ada%2C+A+%26+B&To=%2B491700000001" || list[0].header.Get("Idempotency-Key") != list[1].header.Get("Idempotency-Key") {
		t.Errorf("%+v", list)
	}
	// A person who answered STOP to the provider is unsubscribed, once.
	w.trigger(flow, "stop@x.io", `{"what":"C"}`)
	w.until("it failed", func(v *resolver.View) bool {
		return empty(v) && count(v, "sms_failed") == 1 && count(v, "sms_unsubscribed") == 1
	})
	if c := w.consent("stop@x.io", "sms"); c.Status != "unsubscribed" || c.Source != "provider" {
		t.Errorf("%+v", c)
	}
	// A person who unsubscribes before it goes out gets nothing.
	stop()
	w.trigger(flow, "late@x.io", `{"what":"D"}`)
	w.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: late, Channel: "sms", Status: "unsubscribed", Source: "test"})
	w.until("it waits", func(v *resolver.View) bool { return v.Outbox().Len() == 1 })
	w.effects(accepts, nil)
	w.until("it is refused", func(v *resolver.View) bool { return empty(v) && count(v, "sms_failed") == 2 })
	if n := len(x.got()); n != 3 {
		t.Errorf("%d requests", n)
	}
}

func TestCallsOfFlows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := newTarget(t, func(n int, s seen, w http.ResponseWriter) {
		switch {
		case strings.HasPrefix(s.path, "/gone"):
			w.WriteHeader(404)
		case strings.HasPrefix(s.path, "/moved"):
			http.Redirect(w, httptest.NewRequest("GET", "/", nil), "/elsewhere", http.StatusFound)
		case strings.HasPrefix(s.path, "/down"):
			w.WriteHeader(500)
		case n == 1:
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(503)
		default:
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1<<20)) // more than is read
		}
	})
	step := func(id, path, more string) string {
		return `{"id":"` + id + `","type":"webhook","url":"` + x.URL + path + `"` + more + `,"next":null}`
	}
	// One at a time: the flow's end is not what is tested here.
	set, stop := w.effects(accepts, nil)
	w.contact("ada@x.io", "")
	json := `,"method":"PUT","headers":{"X-Who":"{{event.who}}","Authorization":"Bearer k"},"body":{"who":"{{event.who}}","n":"{{first_name}}"}`
	w.trigger(w.flow(step("a", "/in?who={{event.who}}", json)), "ada@x.io", `{"who":"A \"&\r\nX-Evil: 1"}`)
	w.until("it is tried", func(v *resolver.View) bool {
		l := w.waitingIn(v, outbox.KindCall)
		return len(l) == 1 && l[0].Attempt == 1
	})
	if l := w.waiting(outbox.KindCall); l[0].DueMs-w.Now().UnixMilli() < 30_000 {
		t.Errorf("due in %d ms, 30 s were asked for", l[0].DueMs-w.Now().UnixMilli())
	}
	w.Advance(time.Minute)
	w.until("it arrives", empty)
	list := x.got()
	if len(list) != 2 || list[0].header.Get("Webhook-Id") == "" || list[0].header.Get("Webhook-Id") != list[1].header.Get("Webhook-Id") ||
		list[0].header.Get("Webhook-Timestamp") == list[1].header.Get("Webhook-Timestamp") || list[0].header.Get("Webhook-Signature") != "" {
		t.Fatalf("%+v", list)
	}
	s := list[1]
	if s.method != "PUT" || s.path != "/in?who=A%20%22%26%0D%0AX-Evil%3A%201" || s.body != `{"who":"A \"\u0026\r\nX-Evil: 1","n":"Ada"}` ||
		s.header.Get("Content-Type") != "application/json" || s.header.Get("X-Evil") != "" || !strings.HasPrefix(s.header.Get("X-Who"), `A "&`) || s.header.Get("Authorization") != "Bearer k" {
		t.Errorf("%+v", s)
	}
	// What a receiver does not want is not repeated, and no redirect is followed.
	for i, path := range []string{"/gone", "/moved"} {
		w.trigger(w.flow(step("a", path, "")), "ada@x.io", `{}`)
		w.until("it is given up", empty)
		if n := len(x.got()); n != 3+i {
			t.Errorf("%s: %d requests", path, n)
		}
	}
	// A form's values are a form's.
	form := `,"headers":{"Content-Type":"application/x-www-form-urlencoded"},"body":"a={{event.who}}&b=1"`
	w.trigger(w.flow(step("a", "/form", form)), "ada@x.io", `{"who":"x&b=2"}`)
	w.until("it arrives", empty)
	if s := x.got()[4]; s.body != "a=x%26b%3D2&b=1" {
		t.Errorf("%+v", s)
	}
	w.trigger(w.flow(step("a", "/text", `,"body":"{{event.who}} & co"`)), "ada@x.io", `{"who":"<x>"}`)
	w.until("it arrives", empty)
	if s := x.got()[5]; s.body != "<x> & co" || s.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%+v", s)
	}
	// Two attempts are two.
	w.trigger(w.flow(step("a", "/down", `,"attempts":2`)), "ada@x.io", `{}`)
	w.until("it waits", func(v *resolver.View) bool {
		l := w.waitingIn(v, outbox.KindCall)
		return len(l) == 1 && l[0].Attempt == 1
	})
	w.Advance(time.Hour)
	w.until("it is given up", empty)
	if n := len(x.got()); n != 8 {
		t.Errorf("%d requests", n)
	}
	for result, want := range map[string]uint64{"sent": 3, "retry": 2, "failed": 3} {
		if got := set.GetOrCreateCounter(fmt.Sprintf(`muster_flow_calls_total{result=%q}`, result)).Get(); got != want {
			t.Errorf("%s: %d, expected %d", result, got, want)
		}
	}
	// Private addresses are not called unless that is allowed.
	stop()
	guarded, err := webhook.NewClient(webhook.Options{Now: w.Now})
	ok(t, err)
	defer guarded.Close()
	w.effects(accepts, func(o *messaging.OutboxOptions) { o.Webhooks = guarded })
	w.trigger(w.flow(step("a", "/private", "")), "ada@x.io", `{}`)
	w.until("it is refused", empty)
	if n := len(x.got()); n != 8 {
		t.Errorf("%d requests", n)
	}
}

// TestSlowHostsHoldUpNoOthers: calls beyond what a host may have under way wait
// without a place, so that other hosts, e-mails and texts continue; all arrive once.
func TestSlowHostsHoldUpNoOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	release := make(chan struct{})
	var mu sync.Mutex
	under, most := 0, 0
	slow := newTarget(t, func(int, seen, http.ResponseWriter) {
		mu.Lock()
		under++
		most = max(most, under)
		mu.Unlock()
		<-release
		mu.Lock()
		under--
		mu.Unlock()
	})
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	fast := newTarget(t, func(int, seen, http.ResponseWriter) {})
	const n = 20
	toSlow := w.flow(`{"id":"a","type":"webhook","url":"` + slow.URL + `/","timeout_seconds":30,"next":null}`)
	toFast := w.flow(`{"id":"a","type":"webhook","url":"` + fast.URL + `/","next":"mail"},` + mailStep("null"))
	w.effects(accepts, func(o *messaging.OutboxOptions) { o.Calls, o.CallsPerHost = 4, 2 })
	for i := range n {
		address := fmt.Sprintf("u%d@x.io", i)
		w.contact(address, "")
		w.trigger(toSlow, address, `{}`)
	}
	w.until("the slow host is called", func(*resolver.View) bool { return len(slow.got()) == 2 })
	w.trigger(toFast, "u0@x.io", `{}`)
	w.until("the other host and the mail are done", func(v *resolver.View) bool { return len(fast.got()) == 1 && count(v, "email_sent") == 1 })
	if len(slow.got()) != 2 {
		t.Errorf("%d calls of the slow host", len(slow.got()))
	}
	let()
	w.until("all are done", empty)
	ids := map[string]bool{}
	for _, s := range slow.got() {
		ids[s.header.Get("Webhook-Id")] = true
	}
	if len(ids) != n || len(slow.got()) != n || most != 2 {
		t.Errorf("%d ids, %d calls, %d at once", len(ids), len(slow.got()), most)
	}
}
