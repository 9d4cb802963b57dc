package messaging_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/emersion/go-smtp"
	"go.uber.org/goleak"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/servertest"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/node"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noHistory takes rows and keeps only the properties of events.
type noHistory struct {
	query.History
	mu       sync.Mutex
	position int64
	events   map[string][]string // properties by type
}

// has reports whether an event of a type has a text in its properties.
func (h *noHistory) has(typ, text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.events[typ], func(properties string) bool { return strings.Contains(properties, text) })
}

func (h *noHistory) Position(context.Context, int) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.position, nil
}

func (h *noHistory) Append(_ context.Context, b *query.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.position = max(h.position, b.To)
	if h.events == nil {
		h.events = map[string][]string{}
	}
	for i := range b.Offset {
		typ := string(b.EventType.At(i))
		h.events[typ] = append(h.events[typ], string(b.Properties.At(i)))
	}
	return nil
}

func (h *noHistory) Erase(context.Context, query.EraseQuery) error { return nil }

// world is a node that can be stopped and opened again.
type world struct {
	t       *testing.T
	fs      vfs.FS
	history *noHistory
	node    *node.Node
	close   func()
	account uint64
	*servertest.Clock
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, fs: vfs.NewMem(), history: &noHistory{}, Clock: servertest.NewClock(time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC))}
	w.open()
	creds, err := api.NewCredentials(rand.Reader, "http://muster.test")
	ok(t, err)
	ok(t, creds.Bootstrap(t.Context(), w.node, rand.Reader))
	w.account, _ = api.ParseAPIKey(creds.APIKey)
	w.must(resolver.CommandCreditsAdd, resolver.CreditsAdd{Amount: 100})
	t.Cleanup(func() { w.close() })
	return w
}

// nodeIDOf is what a world's node is called: those of TestOutboxUnderEpochs have a name, as where
// several share a log, so that epochs hold.
func nodeIDOf(t *testing.T) string {
	if strings.HasPrefix(t.Name(), "TestOutboxUnderEpochs/") {
		return "one"
	}
	return ""
}

func (w *world) open() {
	w.t.Helper()
	n, stop, err := servertest.StartNode(1, node.Options{FS: w.fs, History: w.history, Now: w.Now, Cluster: node.Cluster{NodeID: nodeIDOf(w.t)}})
	ok(w.t, err)
	w.node, w.close = n, func() { w.t.Helper(); ok(w.t, stop()) }
}

func (w *world) must(name string, args any) []byte {
	w.t.Helper()
	b, err := w.node.Command(context.Background(), w.account, name, args)
	ok(w.t, err)
	return b
}

func (w *world) template(html string) string {
	w.t.Helper()
	var t campaigns.Template
	ok(w.t, json.Unmarshal(w.must(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "Hello", HTML: html}), &t))
	return t.ID
}

func (w *world) send(to, template string) {
	w.t.Helper()
	w.must(messages.CommandEmailSend, messages.EmailSend{Mail: messages.Mail{To: to, TemplateID: template}})
}

func (w *world) outbox(m messaging.Mailer) (stop func()) {
	w.t.Helper()
	client, err := webhook.NewClient(webhook.Options{Now: w.Now})
	ok(w.t, err)
	o, err := messaging.NewOutbox(messaging.OutboxOptions{Node: w.node, Mailer: m, Webhooks: client, PublicURL: "http://muster.test", Now: w.Now,
		Rand: func() uint64 { return 0 }, Metrics: metrics.NewSet(), Poll: 5 * time.Millisecond})
	ok(w.t, err)
	return func() { o.Close(); client.Close() }
}

// until waits until what is said of the account holds.
func (w *world) until(what string, is func(*resolver.View) bool) {
	w.t.Helper()
	eventually.Holds(w.t, what, func() (done bool) {
		ok(w.t, w.node.Read(context.Background(), w.account, func(v *resolver.View) error { done = is(v); return nil }))
		return done
	})
}

// recorded fails the test unless history has an event of the type whose properties contain
// the text, once it has all rows of now.
func (w *world) recorded(typ, text string) {
	w.t.Helper()
	var now query.Cut
	ok(w.t, w.node.Read(context.Background(), w.account, func(v *resolver.View) error { now = v.Cut(); return nil }))
	ok(w.t, w.node.WaitHistory(context.Background(), now))
	if !w.history.has(typ, text) {
		w.t.Errorf("history has no %s with %s", typ, text)
	}
}

func count(v *resolver.View, typ string) uint64 {
	for _, e := range v.EventTypes().List() {
		if e.Key == typ {
			return e.Count
		}
	}
	return 0
}

func credits(v *resolver.View) int64 { return v.CompanyState().EmailCredits }

// server is a real SMTP server; onData decides about the n-th message.
type server struct {
	addr   *net.TCPAddr
	onRcpt func(to string) error
	onData func(n int) error
	mu     sync.Mutex
	mails  []*mail.Message
	bodies []string
}

type session struct{ *server }

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{onRcpt: func(string) error { return nil }, onData: func(int) error { return nil }}
	srv := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return session{s}, nil }))
	srv.Domain, srv.ErrorLog = "relay.test", log.New(io.Discard, "", 0)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	s.addr = ln.Addr().(*net.TCPAddr)
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(ln) }()
	t.Cleanup(func() { srv.Close(); ln.Close(); <-done }) // it may not have begun to serve
	return s
}

func (s session) Mail(string, *smtp.MailOptions) error      { return nil }
func (s session) Rcpt(to string, _ *smtp.RcptOptions) error { return s.onRcpt(to) }
func (s session) Reset()                                    {}
func (s session) Logout() error                             { return nil }
func (s session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails, s.bodies = append(s.mails, m), append(s.bodies, string(raw))
	return s.onData(len(s.mails) - 1)
}

func (s *server) sender(t *testing.T) *email.Sender {
	t.Helper()
	x, err := email.NewSender(email.Options{Host: "127.0.0.1", Port: s.addr.Port, TLS: "none"})
	ok(t, err)
	t.Cleanup(x.Close)
	return x
}

// TestOutboxMailThroughARelay: a message is repeated under the same Message-ID
// while the relay refuses it for a while, a dead address is suppressed, and what
// became of each is on the profile.
func TestOutboxMailThroughARelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	relay := newServer(t)
	relay.onData = func(n int) error {
		if n == 0 {
			return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "later"}
		}
		return nil
	}
	relay.onRcpt = func(to string) error {
		if to == "dead@x.io" {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "nobody"}
		}
		return nil
	}
	defer w.outbox(relay.sender(t))()
	tpl := w.template("<p>Hello {{email}}")
	w.send("ada@x.io", tpl)
	w.until("the first attempt is on record", func(v *resolver.View) bool {
		list, _ := v.OutboxDue(outbox.KindEmail, 1<<60, 1, func(uint64) bool { return false })
		return len(list) == 1 && list[0].Attempt == 1
	})
	w.Advance(time.Minute)
	w.until("it is sent", func(v *resolver.View) bool { return count(v, "email_sent") == 1 && v.Outbox().Len() == 0 })
	relay.mu.Lock()
	ids := []string{relay.mails[0].Header.Get("Message-Id"), relay.mails[1].Header.Get("Message-Id")}
	same := relay.bodies[0] == relay.bodies[1] && len(relay.mails) == 2
	relay.mu.Unlock()
	if ids[0] == "" || ids[0] != ids[1] || !same {
		t.Errorf("a repeat is another message: %v", ids)
	}
	if account, send, is := compose.ParseMessageID(strings.Trim(ids[0], "<>")); !is || account != w.account {
		t.Errorf("%s names no message", ids[0])
	} else if _, _, is := send.Outbox(); !is {
		t.Errorf("%x is no message of the outbox", send)
	}
	w.send("dead@x.io", tpl)
	w.until("the address is suppressed", func(v *resolver.View) bool {
		o, found := v.Profiles().Find(resolver.IdentityEmail, "dead@x.io")
		if !found {
			return false
		}
		p, err := v.Profiles().Get(o)
		return err == nil && p.SuppressionReason("email") == "bounced" && count(v, "email_bounced") == 1
	})
}

// TestUnsubscribedBeforeItGoesOut: a contact who unsubscribes while a message waits does
// not get it, unless its template is transactional, and its credit is given back.
func TestUnsubscribedBeforeItGoesOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	var to []string
	marketing := w.template("<p>Hello")
	var receipt campaigns.Template
	ok(t, json.Unmarshal(w.must(campaigns.CommandTemplateSave, campaigns.Template{Name: "r", Source: campaigns.TemplateList, Subject: "Receipt", HTML: "<p>Paid", Transactional: true}), &receipt))
	var ada struct{ ID string }
	ok(t, json.Unmarshal(w.must(contacts.CommandCreate, contacts.Create{Email: "ada@x.io"}), &ada))
	w.send("ada@x.io", marketing)
	w.send("ada@x.io", receipt.ID)
	w.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: ada.ID, Channel: "email", Status: "unsubscribed"})
	var before int64
	ok(t, w.node.Read(t.Context(), w.account, func(v *resolver.View) error { before = credits(v); return nil }))
	defer w.outbox(messaging.MailerFunc(func(m *email.Message) outcome.Result {
		mu.Lock()
		defer mu.Unlock()
		to = append(to, m.Subject)
		return outcome.New(outcome.Accepted, "250", "ok")
	}))()
	w.until("both are on record", func(v *resolver.View) bool {
		return v.Outbox().Len() == 0 && count(v, "email_sent") == 1 && count(v, "email_failed") == 1 && credits(v) == before+1
	})
	mu.Lock()
	defer mu.Unlock()
	if len(to) != 1 || to[0] != "Receipt" {
		t.Errorf("sent: %v", to)
	}
}

// TestR1OutboxMailIsRepeatedAfterACrash: what was handed over but is not on
// record is handed over again, under the same id, and nothing else is.
func TestR1OutboxMailIsRepeatedAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tpl := w.template("<p>Hello")
	var mu sync.Mutex
	var ids []string
	block := make(chan struct{})
	stop := w.outbox(messaging.MailerFunc(func(m *email.Message) outcome.Result {
		mu.Lock()
		ids = append(ids, m.ID)
		n := len(ids)
		mu.Unlock()
		if n == 1 {
			return outcome.New(outcome.Accepted, "250", "ok")
		}
		<-block
		return outcome.Failed(outcome.Temporary, "cut", errors.New("cut off"))
	}))
	w.send("a@x.io", tpl)
	w.until("the first is on record", func(v *resolver.View) bool { return count(v, "email_sent") == 1 })
	w.send("b@x.io", tpl)
	handedOver := func(n int) {
		t.Helper()
		eventually.Holds(t, fmt.Sprintf("%d are handed over", n), func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(ids) >= n
		})
	}
	handedOver(2)
	// The look at what is due that finds the third finds the second before it.
	w.send("c@x.io", tpl)
	handedOver(3)
	mu.Lock()
	if len(ids) != 3 || ids[1] == ids[2] || ids[0] == ids[1] || ids[0] == ids[2] {
		t.Errorf("a message under way was started again: %v", ids)
	}
	mu.Unlock()
	// The node goes away under them, as in a crash: the second and third are not on record.
	w.close()
	close(block)
	stop()
	w.open()
	defer w.outbox(messaging.MailerFunc(func(m *email.Message) outcome.Result {
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, m.ID)
		return outcome.New(outcome.Accepted, "250", "ok")
	}))()
	w.until("all are sent", func(v *resolver.View) bool { return count(v, "email_sent") == 3 && v.Outbox().Len() == 0 })
	mu.Lock()
	defer mu.Unlock()
	if len(ids) != 5 || !slices.Equal(slices.Sorted(slices.Values(ids[1:3])), slices.Sorted(slices.Values(ids[3:]))) {
		t.Errorf("%v", ids)
	}
}

func TestOutboxGivesUpAfterTwelveHours(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var before int64
	w.until("there are credits", func(v *resolver.View) bool { before = credits(v); return true })
	defer w.outbox(messaging.MailerFunc(func(m *email.Message) outcome.Result {
		if strings.HasPrefix(m.To.Addr, "refused") {
			return outcome.New(outcome.Refused, "535", "no such login")
		}
		return outcome.New(outcome.Temporary, "421", "down")
	}))()
	tpl := w.template("<p>Hello")
	w.send("a@x.io", tpl)
	w.send("refused@x.io", tpl)
	attempts := func(n int) func(v *resolver.View) bool {
		return func(v *resolver.View) bool {
			list, _ := v.OutboxDue(outbox.KindEmail, 1<<60, 5, func(uint64) bool { return false })
			return len(list) == 2 && !slices.ContainsFunc(list, func(x view.OutboxWork) bool { return x.Attempt != n })
		}
	}
	w.until("both wait", attempts(1))
	w.Advance(11 * time.Hour)
	w.until("both still wait", attempts(2))
	w.Advance(time.Hour)
	w.until("both are given up", func(v *resolver.View) bool { return count(v, "email_failed") == 2 && v.Outbox().Len() == 0 })
	w.until("what no relay took is given back", func(v *resolver.View) bool { return credits(v) == before })
}

func TestDoubleOptInMailHasItsLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := resolver.DefaultSettings()
	s.DoubleOptIn = true
	w.must(resolver.CommandSettingsSet, s)
	sent := make(chan *email.Message, 5)
	mailer := messaging.MailerFunc(func(m *email.Message) outcome.Result {
		sent <- m
		return outcome.New(outcome.Accepted, "250", "ok")
	})
	w.must(contacts.CommandCreate, contacts.Create{Email: "ada@x.io", FirstName: "Ada & Co"})
	late := contacts.Reply{}
	ok(t, json.Unmarshal(w.must(contacts.CommandCreate, contacts.Create{Email: "late@x.io"}), &late))
	w.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: late.ID, Channel: "email", Status: "subscribed", Source: "double_opt_in", Confirm: true})
	moved := contacts.Reply{}
	ok(t, json.Unmarshal(w.must(contacts.CommandCreate, contacts.Create{Email: "old@x.io"}), &moved))
	newest := "new@x.io"
	w.must(contacts.CommandUpdate, contacts.Update{ID: moved.ID, Email: &newest})
	defer w.outbox(mailer)()
	m, other := <-sent, <-sent
	if m.To.Addr == newest {
		m, other = other, m
	}
	if other.To.Addr != newest {
		t.Fatalf("asked at %s, not at the newest address", other.To.Addr)
	}
	link := regexp.MustCompile(`href="http://muster\.test/t/([^"]+)"`).FindStringSubmatch(m.HTML)
	if link == nil || !strings.Contains(m.HTML, "Hello Ada &amp; Co") || m.To.Addr != "ada@x.io" || m.Unsubscribe.URL != "" || !strings.Contains(m.Text, "/t/"+link[1]) {
		t.Fatalf("%+v", m)
	}
	c, err := tracking.Parse(link[1], func(account uint64) (k tracking.Key, found bool) {
		ok(t, w.node.Read(t.Context(), account, func(v *resolver.View) (err error) { k, err = compose.AccountKey(v, account); return err }))
		return k, true
	})
	address := ""
	ok(t, w.node.Read(t.Context(), w.account, func(v *resolver.View) error { address = v.Profiles().EmailHash("ada@x.io"); return nil }))
	if err != nil || c.Kind != tracking.Confirm || c.Account != w.account || c.Step != address {
		t.Fatalf("%+v, %v", c, err)
	}
	// A contact who confirmed meanwhile is not asked, nor is anybody at an address that was
	// replaced, and it costs nothing.
	w.until("nothing waits", func(v *resolver.View) bool { return v.Outbox().Len() == 0 && count(v, "email_sent") == 2 })
	select {
	case m := <-sent:
		t.Errorf("asked again: %+v", m)
	default:
	}
	// A template of one's own.
	s.ConfirmTemplateID = w.template(`<a href="{{confirm_url}}">yes</a>`)
	w.must(resolver.CommandSettingsSet, s)
	w.must(contacts.CommandCreate, contacts.Create{Email: "bob@x.io"})
	if m := <-sent; m.Subject != "Hello" || !strings.Contains(m.HTML, `<a href="http://muster.test/t/`) {
		t.Errorf("%+v", m)
	}
}

func TestOutboxNeedsItsOptions(t *testing.T) {
	t.Parallel()
	if _, err := messaging.NewOutbox(messaging.OutboxOptions{}); err == nil || !strings.Contains(fmt.Sprint(err), "must be set") {
		t.Errorf("%v", err)
	}
}
