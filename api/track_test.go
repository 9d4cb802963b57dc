package api

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

// mailing is a service that sends campaigns into a capture.
type mailing struct {
	*service
	capture    *capture.Store
	dispatcher *messaging.Dispatcher
	account    uint64
	set        *metrics.Set
	campaign   campaigns.Campaign
	profiles   map[string]string // by e-mail
	events     refusable
}

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

func newMailing(t *testing.T) *mailing {
	t.Helper()
	m := &mailing{profiles: map[string]string{}}
	var err error
	m.capture, err = capture.Open(capture.Options{Dir: t.TempDir()})
	ok(t, err)
	t.Cleanup(func() { ok(t, m.capture.Close()) })
	m.service = newService(t, &memHistory{}, func(o *Options) {
		m.set = o.Metrics
		m.events.events, o.Providers.Events = o.Providers.Events, &m.events
		m.dispatcher, err = messaging.New(t.Context(), messaging.Options{
			Node: o.Node, Mailer: messaging.CaptureMailer{Store: m.capture}, Capture: m.capture, PublicURL: "http://127.0.0.1:8080", Now: o.Now, Metrics: metrics.NewSet(),
		})
		ok(t, err)
		t.Cleanup(m.dispatcher.Close)
	})
	m.account, _ = resolver.ParseAppID([]byte(m.creds.AppID))
	return m
}

func (m *mailing) command(name string, args, reply any) {
	m.t.Helper()
	b, err := m.node.Command(m.t.Context(), m.account, name, args)
	ok(m.t, err)
	if reply != nil {
		ok(m.t, json.Unmarshal(b, reply))
	}
}

func (m *mailing) contact(email string) string {
	m.t.Helper()
	var r contacts.Reply
	m.command(contacts.CommandCreate, contacts.Create{Email: email, FirstName: "Ada Lovelace"}, &r)
	m.profiles[email] = r.ID
	return r.ID
}

func (m *mailing) profile(email string) (p *view.Profile) {
	m.t.Helper()
	ok(m.t, m.node.Read(m.t.Context(), m.account, func(v *resolver.View) (err error) {
		o, _ := v.Profiles().Find(resolver.IdentityEmail, email)
		p, err = v.Profiles().Get(o)
		return err
	}))
	return p
}

// send sends a new campaign to everybody.
func (m *mailing) send() campaigns.Run {
	m.t.Helper()
	m.command(campaigns.CommandSave, campaigns.Campaign{Name: "news", Channel: 2, Type: 1, Date: "2026-01-01"}, &m.campaign)
	content, err := compose.PrepareEmail(campaigns.Content{Subject: "s", Sender: "news@" + domains.Development,
		HTML: `<p>Hi</p><a href="https://shop.example/a?name={{first_name}}&x=1">A</a><a href="https://shop.example/b">B</a><a href="{{unsubscribe_url}}">no more</a>`})
	ok(m.t, err)
	r, err := m.dispatcher.Send(m.t.Context(), m.account, campaigns.Start{ID: m.campaign.ID, Everybody: true, Plan: campaigns.Plan{BatchSize: 10}, Variants: []campaigns.Content{content}}, audit.Author{})
	ok(m.t, err)
	return r
}

// mail is the newest e-mail to an address.
func (m *mailing) mail(to string) capture.Message {
	m.t.Helper()
	list, _, err := m.capture.List(capture.Filter{Channel: "email", To: to}, 0, 0)
	ok(m.t, err)
	if len(list) == 0 {
		m.t.Fatalf("nothing was sent to %s", to)
	}
	return list[0]
}

var trackedLink = regexp.MustCompile(`http://127\.0\.0\.1:8080(/t/[A-Za-z0-9_-]+)`)

// links are the paths of a mail's links: two clicks, unsubscribe and the picture.
func (m *mailing) links(to string) (clicks []string, unsubscribe, pixel string) {
	m.t.Helper()
	found := trackedLink.FindAllStringSubmatch(m.mail(to).HTML, -1)
	if len(found) != 4 {
		m.t.Fatalf("links %v in %s", found, m.mail(to).HTML)
	}
	return []string{found[0][1], found[1][1]}, found[2][1], found[3][1]
}

// visit follows a link without following where it leads.
func (m *mailing) visit(method, path, agent, body string) (*http.Response, string) {
	m.t.Helper()
	m.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, b := m.service.send(method, path, body, "User-Agent", agent, "Content-Type", "application/x-www-form-urlencoded")
	return res, string(b)
}

func (m *mailing) run() (r campaigns.Run, n campaigns.Numbers) {
	m.t.Helper()
	ok(m.t, m.node.Read(m.t.Context(), m.account, func(v *resolver.View) error {
		r, _ = v.Campaigns().Run(m.campaign.ID)
		n = v.Campaigns().Numbers(m.campaign)
		return nil
	}))
	return r, n
}

// TestLinksOfACampaignAreFollowed: a captured mail's links, end to end: open,
// click, unsubscribe, and the next campaign leaves out who did.
func TestLinksOfACampaignAreFollowed(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.contact("ada@x.io")
	m.contact("bob@x.io")
	if r := m.send(); r.Sent != 2 {
		t.Fatalf("%+v", r)
	}
	clicks, unsubscribe, pixel := m.links("ada@x.io")

	res, body := m.visit("GET", pixel, browser, "")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "image/gif" || !strings.Contains(res.Header.Get("Cache-Control"), "no-store") || body != string(tracking.Pixel()) {
		t.Errorf("the picture: %d %v", res.StatusCode, res.Header)
	}
	if res, body := m.visit("HEAD", pixel, browser, ""); res.StatusCode != 200 || body != "" {
		t.Errorf("HEAD: %d", res.StatusCode)
	}
	m.visit("GET", pixel, "Barracuda Sentinel", "") // a machine's: an event and no more
	if r, n := m.run(); r.Opens != 1 || n.Opened != 1 {
		t.Errorf("%d opens by %d", r.Opens, n.Opened)
	}

	for i, want := range []string{"https://shop.example/a?name=Ada%20Lovelace&x=1", "https://shop.example/b"} {
		res, _ := m.visit("GET", clicks[i], browser, "")
		if res.StatusCode != 302 || res.Header.Get("Location") != want {
			t.Errorf("click %d: %d %q", i, res.StatusCode, res.Header.Get("Location"))
		}
	}
	if res, _ := m.visit("HEAD", clicks[1], browser, ""); res.StatusCode != 302 || res.Header.Get("Location") != "https://shop.example/b" {
		t.Errorf("HEAD of a click: %d", res.StatusCode)
	}
	if r, n := m.run(); r.Clicks != 2 || n.Clicked != 1 || !slices.Equal(r.ByLink, []uint64{1, 1}) {
		t.Errorf("%+v %+v", r, n)
	}
	for _, path := range []string{pixel, clicks[0]} {
		if res, _ := m.visit("POST", path, browser, ""); res.StatusCode != 405 || res.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST: %d", res.StatusCode)
		}
	}

	// Looking at the page does nothing: scanners follow links.
	if res, body := m.visit("GET", unsubscribe, browser, ""); res.StatusCode != 200 || !strings.Contains(body, `<form method="post">`) {
		t.Errorf("the page: %d %s", res.StatusCode, body)
	}
	if s := m.profile("ada@x.io").Consent("email").Status; s != "subscribed" {
		t.Fatalf("a look at the page made it %s", s)
	}
	header := m.mail("ada@x.io").Headers["List-Unsubscribe"]
	if header != "<http://127.0.0.1:8080"+unsubscribe+">" {
		t.Errorf("List-Unsubscribe: %s", header)
	}
	for range 2 { // a mail program may repeat it
		if res, body := m.visit("POST", unsubscribe, "", "List-Unsubscribe=One-Click"); res.StatusCode != 200 || !strings.Contains(body, "unsubscribed") {
			t.Errorf("one click: %d %s", res.StatusCode, body)
		}
	}
	p := m.profile("ada@x.io")
	if c := p.Consent("email"); c.Status != "unsubscribed" || c.Source != "one-click" {
		t.Errorf("%+v", c)
	}
	if _, n := m.run(); n.Unsubscribed != 1 {
		t.Errorf("%+v", n)
	}
	if r := m.send(); r.Sent != 1 || r.Skipped["unsubscribed"] != 1 {
		t.Errorf("the next campaign: %+v", r)
	}
	var history struct {
		Events []struct {
			EventType  string `json:"event_type"`
			Properties map[string]any
		}
	}
	m.want("GET", "/profiles/"+m.profiles["ada@x.io"]+"/events", "", &history)
	seen := map[string]int{}
	for _, e := range history.Events {
		seen[e.EventType]++
		if e.EventType == "email_opened" && e.Properties["agent"] == "machine" {
			seen["machine"]++
		}
	}
	for typ, n := range map[string]int{"email_sent": 1, "email_opened": 2, "machine": 1, "email_clicked": 2, "email_unsubscribed": 1} {
		if seen[typ] != n {
			t.Errorf("%d events %s, expected %d: %v", seen[typ], typ, n, seen)
		}
	}
}

func TestALinkCountsSoOftenAMinute(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.contact("ada@x.io")
	m.send()
	clicks, _, pixel := m.links("ada@x.io")
	const linkPerMinute = 30 // as often one link counts
	for range linkPerMinute + 10 {
		if res, _ := m.visit("GET", pixel, browser, ""); res.StatusCode != 200 {
			t.Fatal(res.StatusCode)
		}
		if res, _ := m.visit("GET", clicks[0], browser, ""); res.StatusCode != 302 {
			t.Fatal(res.StatusCode)
		}
	}
	if r, _ := m.run(); r.Opens != linkPerMinute || r.Clicks != linkPerMinute {
		t.Errorf("%d opens, %d clicks", r.Opens, r.Clicks)
	}
	m.clock.Advance(time.Minute)
	m.visit("GET", pixel, browser, "")
	if r, _ := m.run(); r.Opens != linkPerMinute+1 {
		t.Errorf("%d opens a minute later", r.Opens)
	}
}

// TestTrackingIsAnsweredWhenNothingIsRecorded: a reader has no part in our
// troubles.
func TestTrackingIsAnsweredWhenNothingIsRecorded(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.contact("ada@x.io")
	m.send()
	clicks, _, pixel := m.links("ada@x.io")
	m.api.Close() // recording has ended
	if res, _ := m.visit("GET", pixel, browser, ""); res.StatusCode != 200 {
		t.Errorf("the picture: %d", res.StatusCode)
	}
	if res, _ := m.visit("GET", clicks[0], browser, ""); res.StatusCode != 302 {
		t.Errorf("the click: %d", res.StatusCode)
	}
	if n := m.api.opts.Metrics.GetOrCreateCounter(`muster_tracked_total{result="lost"}`).Get(); n != 2 {
		t.Errorf("%d lost", n)
	}
}

// TestLinksOfAnErasedPersonAreGone: they are answered as links that are none, and the
// server's log has no fault.
func TestLinksOfAnErasedPersonAreGone(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.contact("ada@x.io")
	m.send()
	clicks, unsubscribe, pixel := m.links("ada@x.io")
	m.command(resolver.CommandContactErase, resolver.ContactErase{ID: m.profiles["ada@x.io"]}, nil)
	_, want := m.visit("GET", tracking.Path+"x", browser, "")
	for _, path := range []string{clicks[0], unsubscribe, pixel} {
		if res, b := m.visit("GET", path, browser, ""); res.StatusCode != 404 || string(b) != string(want) {
			t.Errorf("GET %s: %d %s", path, res.StatusCode, b)
		}
	}
	if res, b := m.visit("POST", unsubscribe, browser, "List-Unsubscribe=One-Click"); res.StatusCode != 404 {
		t.Errorf("POST: %d %s", res.StatusCode, b)
	}
}

// TestForgedLinksAllLookAlike: whatever is wrong with a link, the answer is the
// same, and leads nowhere.
func TestForgedLinksAllLookAlike(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.contact("ada@x.io")
	m.send()
	clicks, _, pixel := m.links("ada@x.io")
	var key tracking.Key
	ok(t, m.node.Read(t.Context(), m.account, func(v *resolver.View) (err error) { key, err = compose.AccountKey(v, m.account); return err }))
	send := func(campaign, ordinal uint32) tracking.ID {
		return tracking.ID(compose.SealSend(key, messages.CampaignSend(campaign, ordinal, 0)))
	}
	flip := []byte(clicks[0])
	flip[20] ^= 1
	other, err := tracking.DeriveKey([]byte("another secret of some length"), m.account)
	ok(t, err)
	deleted := campaigns.Campaign{}
	m.command(campaigns.CommandSave, campaigns.Campaign{Name: "gone", Channel: 1}, &deleted)
	m.command(campaigns.CommandDelete, campaigns.Ref{ID: deleted.ID}, nil)
	_, want := m.visit("GET", tracking.Path+"x", browser, "")
	for name, path := range map[string]string{
		"changed":         string(flip),
		"cut":             pixel[:len(pixel)-1],
		"longer":          pixel + "A",
		"a path in it":    pixel + "/x",
		"empty":           tracking.Path,
		"another's key":   tracking.Path + other.Token(tracking.Claims{Kind: tracking.Click, Account: m.account, Send: send(0, 0)}),
		"unknown account": tracking.Path + key.Token(tracking.Claims{Kind: tracking.Click, Account: 4711, Send: send(0, 0)}),
		"unknown kind":    tracking.Path + key.Token(tracking.Claims{Kind: 9, Account: m.account, Send: send(0, 0)}),
		"no such link":    tracking.Path + key.Token(tracking.Claims{Kind: tracking.Click, Account: m.account, Send: send(0, 0), Link: 7}),
		"no campaign":     tracking.Path + key.Token(tracking.Claims{Kind: tracking.Open, Account: m.account, Send: send(9, 0)}),
		"no recipient":    tracking.Path + key.Token(tracking.Claims{Kind: tracking.Open, Account: m.account, Send: send(0, 99)}),
		"deleted":         tracking.Path + key.Token(tracking.Claims{Kind: tracking.Click, Account: m.account, Send: send(deleted.Number, 0)}),
		"nothing":         tracking.Path + key.Token(tracking.Claims{Kind: tracking.Open, Account: m.account}),
	} {
		for _, method := range []string{"GET", "POST"} {
			res, body := m.visit(method, path, browser, "")
			if res.StatusCode != 404 || body != want || res.Header.Get("Location") != "" || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
				t.Errorf("%s, %s: %d %s", name, method, res.StatusCode, body)
			}
		}
	}
	if r, _ := m.run(); r.Opens+r.Clicks != 0 {
		t.Errorf("%+v", r)
	}
}

// askToConfirm makes subscriptions wait for a confirmation.
func (m *mailing) askToConfirm() {
	m.t.Helper()
	var s resolver.Settings
	ok(m.t, m.node.Read(m.t.Context(), m.account, func(v *resolver.View) error { s = v.Settings(); return nil }))
	s.DoubleOptIn = true
	m.command(resolver.CommandSettingsSet, s, nil)
}

// confirmPath returns the path of the double opt-in link for the address email. The profile is
// the one whose e-mail is of.
func (m *mailing) confirmPath(of, email string) (path string) {
	m.t.Helper()
	ok(m.t, m.node.Read(m.t.Context(), m.account, func(v *resolver.View) error {
		key, err := compose.AccountKey(v, m.account)
		o, _ := v.Profiles().Find(resolver.IdentityEmail, of)
		path = compose.Links{Account: m.account, Key: key}.ConfirmURL(o, v.Profiles().EmailHash(email), "")
		return err
	}))
	return path
}

// TestDoubleOptInIsConfirmedByAButton: the link shows a page, the button ends the
// wait.
func TestDoubleOptInIsConfirmedByAButton(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.askToConfirm()
	m.contact("ada@x.io")
	path := m.confirmPath("ada@x.io", "ada@x.io")
	if r := m.send(); r.Sent != 0 || r.Skipped["pending"] != 1 {
		t.Fatalf("%+v", r)
	}
	if res, body := m.visit("GET", path, browser, ""); res.StatusCode != 200 || !strings.Contains(body, `<form method="post">`) || m.profile("ada@x.io").SuppressionReason("email") != "pending" {
		t.Fatalf("%d %s", res.StatusCode, body)
	}
	for range 2 {
		if res, body := m.visit("POST", path, browser, ""); res.StatusCode != 200 || !strings.Contains(body, "confirmed") {
			t.Fatalf("%d %s", res.StatusCode, body)
		}
	}
	if p := m.profile("ada@x.io"); p.SuppressionReason("email") != "" || p.Consent("email").Status != "subscribed" {
		t.Errorf("%+v", p.ContactInfo)
	}
	if r := m.send(); r.Sent != 1 {
		t.Errorf("%+v", r)
	}
}

// TestConfirmationOfAnotherAddress: a link to confirm is good for the address that it was sent
// to. Where that has been replaced, a page says so, and the new address stays unconfirmed.
func TestConfirmationOfAnotherAddress(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.askToConfirm()
	m.contact("old@x.io")
	link := func(email string) string { return m.confirmPath("old@x.io", email) }
	newest := func(email string) {
		m.command(contacts.CommandUpdate, contacts.Update{ID: m.profile("old@x.io").ID.String(), Email: &email}, nil)
	}
	opens := func(path, want, blocked string) {
		t.Helper()
		status := map[string]int{"no longer fits": 410}[want]
		for _, method := range []string{"GET", "POST"} {
			res, body := m.visit(method, path, browser, "")
			if status == 410 && (res.StatusCode != status || !strings.Contains(body, want) || strings.Contains(body, "<form")) || status == 0 && res.StatusCode != 200 {
				t.Errorf("%s: %d %s", method, res.StatusCode, body)
			}
		}
		if got := m.profile("old@x.io").SuppressionReason("email"); got != blocked {
			t.Errorf("the block is %q, expected %q", got, blocked)
		}
	}
	older := link("") // as builds before made them
	newest("new@x.io")
	opens(link("old@x.io"), "no longer fits", "pending")
	opens(older, "no longer fits", "pending")
	newest("old@x.io")
	opens(older, "no longer fits", "pending") // it may have been sent to either
	newest("new@x.io")
	opens(link("NEW@x.io"), "", "")
	opens(link("old@x.io"), "no longer fits", "")

	m.contact("one@x.io")
	if res, body := m.visit("POST", m.confirmPath("one@x.io", ""), browser, ""); res.StatusCode != 200 || m.profile("one@x.io").SuppressionReason("email") != "" {
		t.Errorf("a link of an older build: %d %s", res.StatusCode, body)
	}
}

// FuzzPublicPaths: whatever is asked of the links, nothing breaks and no person is
// led elsewhere.
func FuzzPublicPaths(f *testing.F) {
	for _, s := range []string{"GET /t/", "POST /t/%2e%2e", "HEAD /t/AAAA", "PUT /t/x", "POST /inbound/acc_0000000000000001/ses", "POST /inbound/acc_x/mail/token", "GET /t//evil.example", "GET /t/\x00", "POST /inbound//generic",
		"GET /t/AgAAAAAAAAAHAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		f.Add(s, "body")
	}
	s := newService(f, &memHistory{}, nil)
	f.Fuzz(func(t *testing.T, line, body string) {
		method, path, _ := strings.Cut(line, " ")
		if method != "GET" && method != "POST" && method != "HEAD" && method != "PUT" {
			method = "GET"
		}
		if !strings.HasPrefix(path, "/t/") && !strings.HasPrefix(path, "/inbound/") {
			path = "/t/" + path
		}
		req, err := http.NewRequestWithContext(t.Context(), method, "http://muster.test/", strings.NewReader(body))
		if err != nil {
			return
		}
		req.URL.Opaque = "//muster.test" + strings.Map(func(r rune) rune {
			if r <= ' ' || r == 0x7f || r == '#' {
				return -1
			}
			return r
		}, path)
		res, err := (&http.Client{Transport: s.client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
		if err != nil {
			return // no request that HTTP knows
		}
		defer res.Body.Close()
		if res.StatusCode < 400 || res.StatusCode >= 500 || res.Header.Get("Location") != "" {
			t.Errorf("%s %q: %d %v", method, path, res.StatusCode, res.Header)
		}
	})
}
