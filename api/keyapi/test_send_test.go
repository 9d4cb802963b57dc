package keyapi

import (
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
)

type testSendAnswer struct {
	Channel, Subject string
	Results          []testResult
}

// statuses are the results in one line.
func (a *testSendAnswer) statuses() string {
	var out []string
	for _, r := range a.Results {
		text := r.To + " " + r.Status
		if r.Reason != nil {
			text += " " + *r.Reason
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// TestTestSend: a test has the content as it is being edited, rendered for a person, is
// marked, goes to its addresses alone, and counts for nothing.
func TestTestSend(t *testing.T) {
	t.Parallel()
	var sent []*email.Message
	h := &rowHistory{}
	s := newServiceWith(t, h, sendingWith(t, func(m *email.Message) outcome.Result {
		if m.To.Addr == "broken@people.example" {
			return outcome.New(outcome.Temporary, "451", "try again later")
		}
		sent = append(sent, m)
		return outcome.New(outcome.Accepted, "", "")
	}))
	p := person{s, s.token}
	var ann, gone, x struct {
		ID string `json:"_id"`
	}
	p.must("POST", "/contacts", `{"email":"ann@people.example","first_name":"Ann & Co"}`, &ann)
	p.must("POST", "/contacts", `{"email":"gone@people.example"}`, &gone)
	p.must("POST", "/contacts", `{"email":"left@people.example"}`, &x)
	p.must("POST", "/profiles/"+x.ID+"/consent", `{"channel":"email","status":"unsubscribed"}`, nil)
	p.must("DELETE", "/profiles/"+gone.ID, "", nil)
	p.must("POST", "/campaigns", `{"name":"n","channel":1,"subject":"Hi {{first_name}}","body":"<p>old</p>","sender":"news@muster.local"}`, &x)
	var credits struct {
		Left int `json:"email_credits"`
	}
	p.must("GET", "/credits", "", &credits)
	events := func() (n int) { // about messages: the erasure continues meanwhile
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, r := range h.rows {
			if strings.HasPrefix(r.typ, "email_") {
				n++
			}
		}
		return n
	}
	before, left := events(), credits.Left

	var a testSendAnswer
	body := `"body":"<p>{{first_name}}, <a href=\"https://shop.example/a\">look</a> <a href=\"{{unsubscribe_url}}\">bye</a></p>"`
	p.must("POST", "/campaigns/"+x.ID+"/test-send", `{"to":["me@office.example","ME@office.example","left@people.example","Gone@people.example","broken@people.example"],"email":"ANN@people.example",`+body+`}`, &a)
	if want := "me@office.example sent, left@people.example skipped unsubscribed, Gone@people.example skipped erased, broken@people.example failed "; !strings.HasPrefix(a.statuses(), want) ||
		!strings.Contains(a.statuses(), "try again later") || a.Subject != "[Test] Hi Ann & Co" || a.Channel != "email" {
		t.Errorf("%s; %+v", a.statuses(), a)
	}
	if len(sent) != 1 {
		t.Fatalf("%d messages", len(sent))
	}
	m := sent[0]
	if m.Subject != a.Subject || m.HTML != `<p>Ann &amp; Co, <a href="https://shop.example/a">look</a> <a href="#unsubscribe">bye</a></p>` || m.To.Addr != "me@office.example" ||
		m.From.Addr != "news@muster.local" || len(m.Headers) != 1 || m.Headers[0].Name != "X-Muster-Test" || m.Unsubscribe.URL != "" || m.FeedbackID != "" {
		t.Errorf("%+v", m)
	}
	_, id, parsed := compose.ParseSend(m.SendID)
	if !parsed || !id.IsTest() {
		t.Errorf("the message is called %q", m.SendID)
	}

	// Nothing of it is kept or counted.
	var c struct{ Subject, Body, Status string }
	p.must("GET", "/campaigns/"+x.ID, "", &c)
	var stats struct{ Sent, Failed int }
	p.must("GET", "/campaigns/"+x.ID+"/stats", "", &stats)
	p.must("GET", "/credits", "", &credits)
	if c.Body != "<p>old</p>" || c.Status != "draft" || stats.Sent+stats.Failed != 0 || credits.Left != left || events() != before {
		t.Errorf("the campaign is %+v, its numbers %+v, credits %d, events %d", c, stats, credits.Left, events()-before)
	}

	// A session may omit the address, an API key may not.
	sent = nil
	p.must("POST", "/campaigns/"+x.ID+"/test-send", "", &a)
	if len(sent) != 1 || !strings.Contains(sent[0].To.Addr, "@") || sent[0].Subject != "[Test] Hi " || sent[0].HTML != "<p>old</p>" {
		t.Fatalf("%s %+v", a.statuses(), sent)
	}
	call := "/campaign/" + x.ID + "/test-send"
	res, b := s.with(s.creds.APIKey, "POST", "/api/v1"+call, `{}`)
	if says := failureOf(t, res.StatusCode, b); !strings.HasPrefix(says, "to Field required") {
		t.Error(says)
	}
	s.a("POST", call, `{"to":["me@office.example"],"subject":"Only by key"}`, &a)
	if a.Subject != "[Test] Only by key" {
		t.Errorf("%+v", a)
	}

	path := "/campaigns/" + x.ID + "/test-send"
	for _, bad := range []struct {
		body        string
		status      int
		field, says string
	}{
		{`{"to":[]}`, 400, "to", "Field required"},
		{`{"to":["a@b.c","d@b.c","e@b.c","f@b.c","g@b.c","h@b.c"]}`, 400, "to", "at most 5"},
		{`{"to":["nobody"]}`, 400, "to[0]", "valid e-mail address"},
		{`{"to":["a@b.example"],"sender":"x@elsewhere.example"}`, 409, "sender", "not verified"},
		{`{"to":["a@b.example"],"profile_id":"` + gone.ID + `"}`, 404, "profile_id", "no such person"},
		{`{"to":["a@b.example"],"profile_id":"` + ann.ID + `","email":"ann@people.example"}`, 400, "profile_id", "left out"},
		{`{"to":["a@b.example"],"body":"{{nonsense}}"}`, 400, "body", "nonsense"},
		{`{"to":["a@b.example"],"template_id":"tpl_none","body":""}`, 404, "template_id", "no such template"},
		{`{"to":["a@b.example"],"list_id":[]}`, 400, "list_id", "not a field"},
	} {
		p.refused("POST", path, bad.body, bad.status, bad.field, bad.says)
	}
	var push struct {
		ID string `json:"_id"`
	}
	p.must("POST", "/campaigns", `{"name":"n","channel":2,"type":4,"date":"2025-01-01","subject":"S","body":"B"}`, &push)
	p.refused("POST", "/campaigns/"+push.ID+"/test-send", `{"to":["+4917012345"]}`, 409, "", "devices")

	// What is refused takes no place: three were sent above.
	for i := 3; i < testsPerMinute; i++ {
		p.must("POST", path, `{"to":["me@office.example"]}`, nil)
	}
	p.refused("POST", path, `{"to":["me@office.example"]}`, 429, "", "Too many")
	s.clock.Advance(time.Minute)
	p.must("POST", path, `{"to":["me@office.example"]}`, nil)
}
