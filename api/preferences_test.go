package api

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/messages"
)

var preferencesLink = regexp.MustCompile(`http://127\.0\.0\.1:8080(/preferences/[A-Za-z0-9_-]+)`)

// topic makes a list that people see on their preference page.
func (m *mailing) topic(name, description string) string {
	m.t.Helper()
	public := true
	var l contacts.List
	m.command(contacts.CommandListCreate, contacts.ListSave{Name: "list of " + name, TopicSave: contacts.TopicSave{Public: &public, PublicName: &name, PublicDescription: &description}}, &l)
	return l.ID
}

// sendPage sends a new campaign with a link to the preference page to everybody.
func (m *mailing) sendPage() campaigns.Run {
	m.t.Helper()
	m.command(campaigns.CommandSave, campaigns.Campaign{Name: "news", Channel: 2, Type: 1, Date: "2026-01-01"}, &m.campaign)
	content, err := compose.PrepareEmail(campaigns.Content{Subject: "s", Sender: "news@" + domains.Development, HTML: `<p>Hi</p><a href="{{preferences_url}}">preferences</a>`})
	ok(m.t, err)
	r, err := m.dispatcher.Send(m.t.Context(), m.account, campaigns.Start{ID: m.campaign.ID, Everybody: true, Plan: campaigns.Plan{BatchSize: 10}, Variants: []campaigns.Content{content}}, audit.Author{})
	ok(m.t, err)
	return r
}

// page is the path of the preference page in the newest e-mail to an address.
func (m *mailing) page(to string) string {
	m.t.Helper()
	found := preferencesLink.FindStringSubmatch(m.mail(to).HTML)
	if found == nil {
		m.t.Fatalf("no link to the preference page in %s", m.mail(to).HTML)
	}
	return found[1]
}

// says is which page a form is of.
func says(page string) string {
	if found := regexp.MustCompile(`name="page" value="([^"]*)"`).FindStringSubmatch(page); found != nil {
		return found[1]
	}
	return ""
}

// form are all choices of a page, those that are ticked among them.
func form(page string) (shown, chosen []string) {
	for _, f := range regexp.MustCompile(`name="shown" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		shown = append(shown, f[1])
	}
	for _, f := range regexp.MustCompile(`name="chosen" value="([^"]*)" checked`).FindAllStringSubmatch(page, -1) {
		chosen = append(chosen, f[1])
	}
	return shown, chosen
}

// body is the form of a page with other choices.
func body(page string, chosen []string) string {
	shown, was := form(page)
	return url.Values{"action": {"save"}, "page": {says(page)}, "shown": shown, "was": was, "chosen": chosen}.Encode()
}

func (m *mailing) consents(profile string) (log []record.ConsentEntry) {
	m.t.Helper()
	m.want("GET", "/profiles/"+profile+"/consents", "", &log)
	return log
}

// TestPreferencePage: a captured mail's link leads to the page, which says what there is and
// what it changed; the log of consents has the evidence; the next campaign leaves out who
// opted out.
func TestPreferencePage(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	ada := m.contact("ada@x.io")
	m.contact("bob@x.io")
	weekly, monthly := m.topic("Weekly <b>tips</b>", "Once a week"), m.topic("Monthly", "")
	hidden := false
	var plain contacts.List
	m.command(contacts.CommandListCreate, contacts.ListSave{Name: "internal", TopicSave: contacts.TopicSave{Public: &hidden}}, &plain)
	m.command(contacts.CommandListAdd, contacts.ListAdd{ListID: weekly, Create: contacts.Create{Email: "ada@x.io"}}, nil)
	if r := m.sendPage(); r.Sent != 2 {
		t.Fatalf("%+v", r)
	}
	path := m.page("ada@x.io")
	res, page := m.visit("GET", path, browser, "")
	csp := res.Header.Get("Content-Security-Policy")
	if res.StatusCode != 200 || !strings.Contains(res.Header.Get("Cache-Control"), "no-store") || res.Header.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "form-action 'self'") {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	if strings.Contains(page, "ada@x.io") || strings.Contains(page, "<script") || strings.Contains(page, "<b>") || strings.Contains(page, "internal") || !strings.Contains(page, "Weekly &lt;b&gt;tips") || !strings.Contains(page, "Once a week") {
		t.Errorf("%s", page)
	}
	shown, chosen := form(page)
	if want := []string{"topic:" + weekly, "topic:" + monthly, "channel:email"}; !slices.Equal(shown, want) || !slices.Equal(chosen, []string{want[0], want[2]}) {
		t.Fatalf("%q, of them %q", shown, chosen)
	}
	// A look changes nothing, nor does the form as it is, nor a choice that was not shown.
	strange := url.Values{"action": {"save"}, "page": {says(page)}, "shown": {"topic:" + plain.ID, "topic:lst_none", "channel:pigeon"}, "chosen": {"topic:" + plain.ID}}.Encode()
	for _, b := range []string{body(page, chosen), "action=save&page=" + says(page), strange} {
		if res, page := m.visit("POST", path, browser, b); res.StatusCode != 200 || !strings.Contains(page, "Nothing was changed") {
			t.Errorf("%d %s", res.StatusCode, page)
		}
	}
	if log := m.consents(ada); len(log) != 1 || log[0].Source != "manual" {
		t.Fatalf("%+v", log)
	}
	for i := range 2 { // a repeat changes nothing
		res, page := m.visit("POST", path, browser, body(page, []string{"topic:" + monthly, "channel:email"}))
		if res.StatusCode != 200 || strings.Contains(page, "<li>Weekly &lt;b&gt;tips&lt;/b&gt;: off</li><li>Monthly: on</li>") != (i == 0) {
			t.Errorf("%d %s", res.StatusCode, page)
		}
	}
	if l := m.profile("ada@x.io").Lists; !slices.Equal(l, []string{monthly}) {
		t.Errorf("on %v", l)
	}
	m.command(resolver.CommandSettingsSet, func() resolver.Settings {
		s := resolver.DefaultSettings()
		s.PreferencePage = &resolver.PreferencePage{Title: "What about <i>it</i>?", Text: "One line.\nTwo."}
		return s
	}(), nil)
	if _, page := m.visit("GET", path, browser, ""); !strings.Contains(page, "What about &lt;i&gt;it&lt;/i&gt;?</h1>") || !strings.Contains(page, "One line.\nTwo.") {
		t.Errorf("%s", page)
	}
	m.command(resolver.CommandSettingsSet, func() resolver.Settings {
		s := resolver.DefaultSettings()
		s.PreferencePage = &resolver.PreferencePage{Title: "What about <i>it</i>?"}
		return s
	}(), nil)
	if _, page := m.visit("GET", path, browser, ""); !strings.Contains(page, "What about &lt;i&gt;it&lt;/i&gt;?</h1>") || !strings.Contains(page, "Choose what you want to hear about") {
		t.Errorf("without a text of its own: %s", page)
	}
	m.clock.Advance(time.Minute)
	if res, page := m.visit("POST", path, browser, "action=everything"); res.StatusCode != 200 || !strings.Contains(page, "<li>Monthly: off</li><li>E-mail: off</li>") {
		t.Errorf("%d %s", res.StatusCode, page)
	}
	log := m.consents(ada)
	i := slices.IndexFunc(log, func(x record.ConsentEntry) bool { return x.Channel != nil && *x.Channel == "email" })
	if x := log[i]; x.Status != "unsubscribed" || x.Source != "preferences" || *x.CampaignID != m.campaign.ID || *x.MessageID != m.mail("ada@x.io").SendID || !strings.HasSuffix(*x.Client, "/24") ||
		!strings.HasPrefix(*x.Wording, "Unsubscribe from everything\nWhat about") {
		t.Errorf("%+v", x)
	}
	if _, n := m.run(); n.Unsubscribed != 1 {
		t.Errorf("%d unsubscribed by the campaign", n.Unsubscribed)
	}
	res, b := m.service.send("GET", Prefix+"/export/consents", "", "Authorization", "Bearer "+m.token)
	if export := string(b); res.StatusCode != 200 || strings.Count(export, ada) != len(log) || !strings.Contains(export, `"source":"preferences"`) {
		t.Errorf("%d %s", res.StatusCode, export)
	}
	if r := m.sendPage(); r.Sent != 1 || r.Skipped["unsubscribed"] != 1 {
		t.Errorf("%+v", r)
	}
	// A contact who joins again by the page is mailed again.
	m.clock.Advance(time.Minute)
	_, page = m.visit("GET", path, browser, "")
	m.visit("POST", path, browser, body(page, []string{"channel:email"}))
	if r := m.sendPage(); r.Sent != 2 {
		t.Errorf("%+v", r)
	}
}

// TestOldPreferencePages: a form that was open for long changes only what the person touched,
// and one of a page that says something else by now changes nothing.
func TestOldPreferencePages(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	ada := m.contact("ada@x.io")
	topic := m.topic("Weekly", "")
	m.command(contacts.CommandListAdd, contacts.ListAdd{ListID: topic, Create: contacts.Create{Email: "ada@x.io"}}, nil)
	path := "/preferences/" + m.tokenOf(ada, tracking.Preferences)
	_, page := m.visit("GET", path, browser, "")
	m.command(contacts.CommandConsentSet, contacts.ConsentSet{ID: ada, Channel: "email", Status: "unsubscribed"}, nil)
	if res, answer := m.visit("POST", path, browser, body(page, []string{"channel:email"})); res.StatusCode != 200 || !strings.Contains(answer, "<li>Weekly: off</li></ul>") {
		t.Errorf("%d %s", res.StatusCode, answer)
	}
	if p := m.profile("ada@x.io"); p.Consent("email").Status != "unsubscribed" || len(p.Lists) > 0 {
		t.Errorf("%+v", p)
	}
	_, page = m.visit("GET", path, browser, "")
	name := "Offers of others"
	m.command(contacts.CommandListUpdate, contacts.ListSave{ID: topic, Name: "n", TopicSave: contacts.TopicSave{PublicName: &name}}, nil)
	res, answer := m.visit("POST", path, browser, body(page, []string{"topic:" + topic}))
	if res.StatusCode != 409 || !strings.Contains(answer, "Nothing was saved") || !strings.Contains(answer, name) || len(m.profile("ada@x.io").Lists) > 0 {
		t.Errorf("%d %s", res.StatusCode, answer)
	}
	if res, _ := m.visit("POST", path, browser, body(answer, []string{"topic:" + topic})); res.StatusCode != 200 || len(m.profile("ada@x.io").Lists) != 1 {
		t.Errorf("%d", res.StatusCode)
	}
}

// TestPreferenceLinks: what is no link of a person's page leads to a page without data, and
// so does the link of an erased person.
func TestPreferenceLinks(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	ada := m.contact("ada@x.io")
	m.contact("bob@x.io")
	m.topic("Secret topic", "")
	m.sendPage()
	path := m.page("ada@x.io")
	token := strings.TrimPrefix(path, "/preferences/")
	raw := []byte(token)
	raw[20] ^= 1
	for name, c := range map[string]struct {
		method, path, body string
		status             int
	}{
		"tampered":         {"GET", "/preferences/" + string(raw), "", 404},
		"tampered, POST":   {"POST", "/preferences/" + string(raw), "action=everything", 404},
		"cut short":        {"GET", path[:len(path)-1], "", 404},
		"no token":         {"GET", "/preferences/", "", 404},
		"another path":     {"GET", "/t/" + token, "", 404},
		"another method":   {"PUT", path, "", 405},
		"too large":        {"POST", path, strings.Repeat("x", 65<<10), 413},
		"no action":        {"POST", path, "", 400},
		"another action":   {"POST", path, "action=erase", 400},
		"no form":          {"POST", path, "action=%zz", 400},
		"one click":        {"POST", path, "List-Unsubscribe=One-Click", 400},
		"a link of others": {"GET", "/preferences/" + m.adas(tracking.Unsubscribe), "", 404},
		"its kind":         {"GET", "/preferences/" + m.adas(tracking.Preferences), "", 200},
	} {
		m.clock.Advance(time.Minute)
		res, page := m.visit(c.method, c.path, browser, c.body)
		if res.StatusCode != c.status || c.status != 200 && strings.Contains(page, "Secret topic") {
			t.Errorf("%s: %d %s", name, res.StatusCode, page)
		}
	}
	if p := m.profile("ada@x.io"); p.Consent("email").Status != "subscribed" {
		t.Errorf("%+v", p.Consents)
	}
	// So often in a minute, whatever it asks for.
	m.clock.Advance(time.Minute)
	for i := range 31 {
		res, _ := m.visit("POST", path, browser, "action=everything")
		if want := 200; (res.StatusCode == want) != (i < 30) || i == 30 && (res.StatusCode != 429 || res.Header.Get("Retry-After") == "") {
			t.Fatalf("submit %d: %d", i, res.StatusCode)
		}
	}
	m.clock.Advance(time.Minute)

	m.command(resolver.CommandContactErase, resolver.ContactErase{ID: ada}, nil)
	for _, method := range []string{"GET", "POST"} {
		m.clock.Advance(time.Minute)
		if res, page := m.visit(method, path, browser, "action=everything"); res.StatusCode != 410 || !strings.Contains(page, "erased") || strings.Contains(page, "Secret topic") {
			t.Errorf("%s: %d %s", method, res.StatusCode, page)
		}
	}
}

// TestPreferencesOfAMergedProfile: the link of a message to a profile that became part of
// another is that one's.
func TestPreferencesOfAMergedProfile(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	topic := m.topic("News", "")
	var r contacts.Reply
	m.command(contacts.CommandCreate, contacts.Create{ExternalID: "7", ListID: topic}, &r)
	path := "/preferences/" + m.tokenOf(r.ID, tracking.Preferences)
	m.contact("ada@x.io")
	m.event(`{"event_type":"seen","user":{"email":"ada@x.io","external_id":"7"}}`)
	res, page := m.visit("GET", path, browser, "")
	if _, chosen := form(page); res.StatusCode != 200 || !slices.Equal(chosen, []string{"topic:" + topic, "channel:email"}) {
		t.Fatalf("%d %s", res.StatusCode, page)
	}
	m.visit("POST", path, browser, "action=everything")
	if p := m.profile("ada@x.io"); p.Consent("email").Status != "unsubscribed" || len(p.Lists) > 0 {
		t.Errorf("%+v %v", p.Consents, p.Lists)
	}
}

// adas is a token of the profile of ada@x.io.
func (m *mailing) adas(kind tracking.Kind) string { return m.tokenOf(m.profiles["ada@x.io"], kind) }

func (m *mailing) tokenOf(profile string, kind tracking.Kind) (token string) {
	m.t.Helper()
	ok(m.t, m.node.Read(m.t.Context(), m.account, func(v *resolver.View) error {
		o, _ := v.Profiles().ResolveText(profile)
		key, err := compose.AccountKey(v, m.account)
		token = key.Token(tracking.Claims{Kind: kind, Account: m.account, Send: tracking.ID(compose.SealSend(key, messages.ProfileSend(o)))})
		return err
	}))
	return token
}
