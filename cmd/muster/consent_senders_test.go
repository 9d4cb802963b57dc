package main

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	randv2 "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/messaging/webhook"
)

// permission is what a person said about a channel.
type permission struct {
	consent, suppressed bool
	// deniedAt is when the last change that forbids messages was acknowledged, zero while none
	// does or a change that permits them is under way; after is how many messages had
	// arrived by then.
	deniedAt time.Time
	after    int
	// suppressedAt and suppressedAfter are the same of a suppression alone.
	suppressedAt    time.Time
	suppressedAfter int
}

// toUnsubscribed are the messages that also go to unsubscribed people: answers to keywords, and
// requests to confirm a form. They do not go to suppressed people.
var toUnsubscribed = map[string]bool{"stop answer": true, "help answer": true, "Please confirm your subscription": true}

// providers plays the relay and the providers of all channels, and records people's
// consents. The first attempt of every sixteenth message is refused for a while.
type providers struct {
	texts, push *httptest.Server
	relay       string

	mu struct {
		sync.Mutex
		permissions map[string]*permission // by channel and address
		taken       idCounts               // by channel and address: how often each message came
		tried       map[string]bool
		answers     map[string]int  // of toUnsubscribed, how often
		asked       map[string]bool // what [providers.longestDenied] has answered
		arrived     int
		faults      []string
	}
}

func newProviders(t *testing.T) *providers {
	t.Helper()
	p := &providers{}
	p.mu.permissions, p.mu.taken, p.mu.tried = map[string]*permission{}, idCounts{}, map[string]bool{}
	p.mu.answers, p.mu.asked = map[string]int{}, map[string]bool{}
	p.texts = httptest.NewServer(http.HandlerFunc(p.takeText))
	p.push = httptest.NewTLSServer(http.HandlerFunc(p.takePush))
	t.Cleanup(p.texts.Close)
	t.Cleanup(p.push.Close)
	p.relay = serveSMTP(t, func() smtp.Session { return &mailSession{take: p.takeMail} })
	return p
}

// underWay is how many messages may be between the last look at the consent and their
// provider: a message is late if more than that, and more than seconds, have come since.
const (
	underWay      = 128
	underWayAtAll = 3 * time.Second
)

// take notes a message; it reports whether it is taken.
func (p *providers) take(channel, address, message, id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.arrived++
	key := channel + " " + address
	x := p.mu.permissions[key]
	switch {
	case x == nil:
		p.mu.faults = append(p.mu.faults, fmt.Sprintf("%s by %s: no person has that address", message, key))
	default:
		at, after := x.deniedAt, x.after
		if toUnsubscribed[message] {
			at, after = x.suppressedAt, x.suppressedAfter
			p.mu.answers[message]++
		}
		if !at.IsZero() && time.Since(at) > underWayAtAll && p.mu.arrived-after > underWay {
			p.mu.faults = append(p.mu.faults, fmt.Sprintf("%s by %s arrived %s and %d messages after %+v", message, key, time.Since(at), p.mu.arrived-after, *x))
		}
	}
	if id != "" && !p.mu.tried[id] && len(p.mu.tried)%16 == 0 {
		p.mu.tried[id] = true
		return false
	}
	p.mu.tried[id] = true
	p.mu.taken.add(key, message)
	return true
}

func (p *providers) takeText(w http.ResponseWriter, r *http.Request) {
	var m struct {
		To, ID, Text string
		Cloud        string `json:"biz_opaque_callback_data"`
		Template     struct{ Name string }
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	channel := strings.TrimPrefix(r.URL.Path, "/")
	if m.Template.Name != "" {
		channel, m.Text, m.ID, m.To = "whatsapp", m.Template.Name, m.Cloud, "+"+strings.TrimPrefix(m.To, "+")
	}
	if !p.take(channel, m.To, m.Text, m.ID) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	io.WriteString(w, `{"messaging_product":"whatsapp","messages":[{"id":"wamid.1"}]}`)
}

func (p *providers) takePush(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	p.take("push", r.URL.Path, "push", "") // encrypted: which message it is only the browser knows
	w.WriteHeader(http.StatusCreated)
}

func (p *providers) takeMail(to string, header mail.Header) error {
	if !p.take("email", to, header.Get("Subject"), header.Get("Message-Id")) {
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "try again"}
	}
	return nil
}

// change makes a change of what a person said about a channel: with set the permission is as
// it is afterwards.
func (p *providers) change(channel, address string, set func(*permission), call func() error) error {
	key := channel + " " + address
	p.mu.Lock()
	x := p.mu.permissions[key]
	if x == nil {
		x = &permission{}
		p.mu.permissions[key] = x
	}
	set(x)
	if denied := !x.consent || x.suppressed; !denied {
		x.deniedAt = time.Time{}
	}
	if !x.suppressed {
		x.suppressedAt = time.Time{}
	}
	p.mu.Unlock()
	if err := call(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if (!x.consent || x.suppressed) && x.deniedAt.IsZero() {
		x.deniedAt, x.after = time.Now(), p.mu.arrived
	}
	if x.suppressed && x.suppressedAt.IsZero() {
		x.suppressedAt, x.suppressedAfter = time.Now(), p.mu.arrived
	}
	return nil
}

// TestF6ConsentHoldsForAllSenders: while campaigns, flows, tests of campaigns, answers to texts
// and confirmations of forms go out on every channel, people unsubscribe, subscribe, are
// suppressed and permitted again, by calls, by texts that they write and on the preference page.
// A message never reaches a person who had unsubscribed or been suppressed before it went out.
// People who changed nothing get each message once.
func TestF6ConsentHoldsForAllSenders(t *testing.T) {
	t.Parallel()
	inModes(t, consentHoldsForAllSenders)
}

func consentHoldsForAllSenders(t *testing.T, args []string) {
	t.Parallel()
	const seed, changers = 17, 4
	people := testlevel.Count(120, rounds(500, 10_000))
	t.Logf("seed %d, %d people", seed, people)
	dir, p := t.TempDir(), newProviders(t)
	roots := filepath.Join(dir, "roots.pem")
	ok(t, os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.push.Certificate().Raw}), 0o600))
	trust := func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+roots) }
	s := serveWith(t, dir, trust, append(args, "--allow-private-webhooks", "--smtp", p.relay, "--smtp-tls", "none")...)
	for _, channel := range []string{"sms", "im"} {
		s.console("PUT", "/message-providers/"+channel, fmt.Sprintf(`{"url":"%s/%s","format":"json","body":"{\"to\":\"{{to}}\",\"id\":\"{{id}}\",\"text\":\"{{body}}\"}","from":"Shop"}`, p.texts.URL, channel), nil)
	}
	s.console("PUT", "/message-providers/whatsapp", fmt.Sprintf(`{"preset":"whatsapp_cloud","version":"v21.0","phone_number_id":"1062840","token":"cloud-token","base_url":%q}`, p.texts.URL), nil)
	s.console("PUT", "/push-credentials/webpush", `{"generate":true,"subject":"mailto:push@muster.local"}`, nil)
	var secrets struct{ Once struct{ Secrets []string } }
	s.console("PUT", "/inbound-providers/generic", `{"generate":true,"stop_reply":"stop answer","start_reply":"start answer","help_reply":"help answer"}`, &secrets)
	secret, err := webhook.ParseSecret(secrets.Once.Secrets[0])
	ok(t, err)

	inApp := newInboxes(t, s)
	form := newOpenForm(t, s)
	channels := []string{"email", "sms", "im", "whatsapp", "push", "in_app"}
	address := func(n int, channel string) string {
		switch channel {
		case "email":
			return fmt.Sprintf("p%d@people.example", n)
		case "push":
			return fmt.Sprintf("/p/%d", n)
		}
		return fmt.Sprintf("+4917000%05d", n)
	}
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	ok(t, err)
	b64 := base64.RawURLEncoding
	ids := make([]string, people)
	consent := func(n int, channel string, subscribed bool) error {
		err := p.change(channel, address(n, channel), func(x *permission) { x.consent = subscribed }, func() error {
			return s.attempt("POST", "/profiles/"+ids[n]+"/consent", obj{"channel": channel, "status": map[bool]string{true: "subscribed", false: "unsubscribed"}[subscribed]}, nil)
		})
		if err == nil && channel == "in_app" && !subscribed {
			err = inApp.isEmpty(n)
		}
		return err
	}
	// faithful people are subscribed and change nothing; every tenth is none of those.
	faithful := func(n int) bool { return n%10 == 0 }
	never := func(n int) bool { return n%10 == 1 }
	var setup sync.WaitGroup
	for i := range changers {
		setup.Go(func() {
			for n := i; n < people; n += changers {
				var made struct {
					ID string `json:"_id"`
				}
				if err := s.attempt("POST", "/contacts", obj{"email": address(n, "email"), "phone": address(n, "sms"), "external_id": inApp.person(n)}, &made); err != nil {
					t.Error(err)
					return
				}
				ids[n] = made.ID
				device, err := json.Marshal(obj{"endpoint": p.push.URL + address(n, "push"), "keys": obj{"p256dh": b64.EncodeToString(key.PublicKey().Bytes()), "auth": b64.EncodeToString(make([]byte, 16))}})
				if err == nil {
					err = s.attempt("POST", "/profiles/"+made.ID+"/devices", obj{"kind": "webpush", "address": string(device)}, nil)
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, channel := range channels {
					if err := consent(n, channel, faithful(n) || !never(n) && (n+len(channel))%3 > 0); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	setup.Wait()
	if t.Failed() {
		t.FailNow()
	}
	var template, flow struct {
		ID string `json:"_id"`
	}
	ok(t, s.surfaceA("POST", "/templates", obj{"name": "t", "subject": "single", "html": "<p>b</p>"}, &template))
	ok(t, s.surfaceA("POST", "/custom-flows", obj{"name": "f", "trigger": obj{"type": "event", "event": "go"}, "steps": []obj{
		{"id": "e", "next": "s", "type": "email", "subject": "flow", "body": "<p>b</p>", "sender": "news@muster.local"}, {"id": "s", "next": "w", "type": "sms", "text": "flow"},
		{"id": "w", "next": "p", "type": "whatsapp", "template": "flow", "language": "en"}, {"id": "p", "next": "i", "type": "push", "title": "flow"}, {"id": "i", "next": "o", "type": "in_app", "title": "flow", "body": "b"},
		{"id": "o", "type": "omnichannel", "channels": []obj{{"channel": "whatsapp", "template": "flow_omni", "language": "en"}, {"channel": "push", "title": "flow omni"}, {"channel": "email", "subject": "flow omni", "body": "<p>b</p>", "sender": "news@muster.local"}}},
	}}, &flow))
	ok(t, s.surfaceA("POST", "/custom-flows/"+flow.ID+"/publish", nil, nil))

	done := make(chan struct{})
	var senders, changing sync.WaitGroup
	var tested string
	for name, fields := range map[string]obj{
		"in_app": {"channel": 2, "type": 4, "service": "in_app", "date": "2026-01-01", "subject": "campaign", "body": "b"},
		"email":  {"channel": 1, "subject": "campaign", "body": "<p>b</p>", "sender": "news@muster.local"},
		"sms":    {"channel": 2, "type": 2, "date": "2026-01-01", "body": "campaign"}, "im": {"channel": 2, "type": 3, "date": "2026-01-01", "body": "campaign"},
		"whatsapp": {"channel": 2, "type": 3, "service": "whatsapp", "date": "2026-01-01", "whatsapp": obj{"template": "campaign", "language": "en"}},
		"push":     {"channel": 2, "type": 4, "date": "2026-01-01", "subject": "campaign", "body": "b"},
		"omni":     {"channel": 1, "subject": "omni", "body": "<p>b</p>", "sender": "news@muster.local", "channels": []obj{{"channel": "sms", "body": "omni"}, {"channel": "im", "body": "omni"}, {"channel": "email"}}},
	} {
		fields["name"] = name
		var made struct {
			ID string `json:"_id"`
		}
		ok(t, s.surfaceA("POST", "/campaign", fields, &made))
		if name == "email" {
			tested = made.ID
		}
		senders.Go(func() {
			if err := s.surfaceA("POST", "/campaign/"+made.ID+"/send", obj{"all_contacts": true, "batch_size": people / testlevel.Count(8, 20), "delay_between_batches": 1}, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	senders.Go(func() {
		for n := range people {
			s.event(fmt.Sprintf(`{"event_type":"go","user":{"email":%q}}`, address(n, "email")))
			if n%25 == 0 {
				time.Sleep(500 * time.Millisecond) // the pace of the campaigns: people change meanwhile
			}
		}
	})
	senders.Go(func() {
		if err := s.surfaceA("POST", "/push/send", obj{"title": "now"}, nil); err != nil {
			t.Error(err)
		}
	})
	changing.Go(func() { // tests of a campaign and forms, mostly for people who may get no messages
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-time.After(slowest):
			}
			to := []string{address(n*10%people+1, "email"), p.longestDenied("email", false)} // a person who never subscribed, and one who changed
			_ = s.surfaceA("POST", "/campaign/"+tested+"/test-send", obj{"to": to}, nil)     // refused above the rate
			email := p.longestDenied("email", true)
			if n%3 == 0 || email == "" {
				email = address((n*10+2)%people, "email")
			}
			if err := form.send(email); err != nil {
				t.Error(err)
				return
			}
		}
	})
	changes := make([]int, changers)
	for i := range changers {
		changing.Go(func() {
			rng := randv2.New(randv2.NewPCG(seed, uint64(i)))
			for {
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond): // so that a change holds for some seconds
				}
				n := rng.IntN(people/changers)*changers + i
				if faithful(n) || never(n) {
					continue
				}
				channel := channels[rng.IntN(len(channels))]
				var err error
				switch k := rng.IntN(11); k {
				case 0, 1, 2:
					err = consent(n, channel, false)
				case 3, 4:
					err = consent(n, channel, true)
				case 5:
					err = p.change(channel, address(n, channel), func(x *permission) { x.suppressed = true }, func() error {
						return s.attempt("POST", "/profiles/"+ids[n]+"/suppression", obj{"channel": channel, "reason": "suppressed"}, nil)
					})
					if err == nil && channel == "in_app" {
						err = inApp.isEmpty(n)
					}
				case 6:
					err = p.change(channel, address(n, channel), func(x *permission) { x.suppressed = false }, func() error {
						return s.attempt("DELETE", "/profiles/"+ids[n]+"/suppression?channel="+channel, nil, nil)
					})
				case 7:
					if n%2 == 0 {
						_ = s.attempt("POST", "/email/send", obj{"to": address(n, "email"), "template_id": template.ID}, nil) // refused for people who may get no messages
						continue
					}
					err = p.change("sms", address(n, "sms"), func(x *permission) { x.consent = false }, func() error {
						return s.writes(fmt.Sprintf("stop-%d-%d", i, changes[i]), address(n, "sms"), "STOP", secret)
					})
				case 8:
					err = p.change("sms", address(n, "sms"), func(x *permission) { x.consent = true }, func() error {
						return s.writes(fmt.Sprintf("start-%d-%d", i, changes[i]), address(n, "sms"), "START", secret)
					})
				case 9:
					err = s.writes(fmt.Sprintf("help-%d-%d", i, changes[i]), address(n, "sms"), "HELP", secret)
				case 10:
					if err = s.leaveAll(ids[n]); err != nil {
						break
					}
					for _, channel := range channels {
						if err = p.change(channel, address(n, channel), func(x *permission) { x.consent = false }, func() error { return nil }); err != nil {
							break
						}
					}
					err = errors.Join(err, inApp.isEmpty(n))
				}
				if err != nil {
					t.Error(err)
					return
				}
				changes[i]++
			}
		})
	}
	senders.Wait()
	close(done)
	changing.Wait()
	eventually.Holds(t, "all messages of the flow went out", s.idleOutbox)
	for n := range people {
		// What came to an inbox while its person was to get none would show after the opt-in.
		if want := map[bool]int{true: 0, false: 2}[never(n)]; never(n) || faithful(n) {
			ok(t, consent(n, "in_app", true))
			eventually.Holds(t, fmt.Sprintf("person %d has %d messages", n, want), func() bool { return inApp.count(n) == want })
		}
	}
	s.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, fault := range p.mu.faults[:min(len(p.mu.faults), 20)] {
		t.Error(fault)
	}
	total := 0
	for n := range people {
		for _, channel := range channels {
			got := p.mu.taken[channel+" "+address(n, channel)]
			total += len(got)
			want := map[string]int{}
			switch {
			case channel == "in_app":
				continue
			case never(n):
			case !faithful(n):
				continue
			case channel == "email" || channel == "im":
				want["campaign"] = 1
			case channel == "sms":
				want["campaign"], want["omni"], want["flow"] = 1, 1, 1
			case channel == "whatsapp":
				want["campaign"], want["flow"], want["flow_omni"] = 1, 1, 1
			case channel == "push":
				want["push"] = 3
			}
			if channel == "email" && faithful(n) {
				want["flow"] = 1
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("person %d got by %s %v, expected %v", n, channel, got, want)
			}
		}
	}
	made := 0
	for _, n := range changes {
		made += n
	}
	t.Logf("%d messages reached people; %d consents and blocks were changed; %v, %d forms were sent", total, made, p.mu.answers, form.taken)
	for message := range toUnsubscribed {
		if p.mu.answers[message] == 0 {
			t.Errorf("nobody got %q", message)
		}
	}
	if made < people || total < people*4 {
		t.Error("too little happened to show anything")
	}
}

// longestDenied returns the address on a channel that has been unsubscribed or suppressed for the longest
// time, with suppressed only of those that are suppressed; "" if there is none.
func (p *providers) longestDenied(channel string, suppressed bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	address, since := "", time.Now()
	for key, x := range p.mu.permissions {
		at := x.deniedAt
		if suppressed {
			at = x.suppressedAt
		}
		// Each of them comes by turns: a form asks an address once an hour.
		if name, of, _ := strings.Cut(key, " "); name == channel && !at.IsZero() && at.Before(since) && !p.mu.asked[of+fmt.Sprint(suppressed)] {
			address, since = of, at
		}
	}
	p.mu.asked[address+fmt.Sprint(suppressed)] = address != ""
	return address
}

// writes reports a text that a person wrote, as a provider does.
func (s *server) writes(id, from, text string, secret webhook.Secret) error {
	body, err := json.Marshal([]obj{{"type": "reply", "channel": "sms", "from": from, "to": "+4930123456", "text": text, "id": id}})
	if err != nil {
		return err
	}
	req, err := http.NewRequest("POST", s.origin+"/inbound/"+s.creds.AccountID+"/generic", bytes.NewReader(body))
	if err != nil {
		return err
	}
	now := time.Now()
	req.Header.Set(webhook.HeaderID, id)
	req.Header.Set(webhook.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(webhook.HeaderSignature, webhook.Sign(id, now, body, []webhook.Secret{secret}))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("a text was answered %d", res.StatusCode)
	}
	return nil
}

// attempt calls the console API, which must succeed, from any goroutine.
func (s *server) attempt(method, path string, body, data any) error {
	text := ""
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = string(b)
	}
	req, err := http.NewRequest(method, s.origin+"/console/api/v1"+path, strings.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s %s: %d %s %w", method, path, text, res.StatusCode, b, err)
	}
	if data == nil {
		return nil
	}
	var a struct{ Data json.RawMessage }
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	return json.Unmarshal(a.Data, data)
}
