package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/testlevel"
)

// badInput is a row of a page's table: a call, a value that it does not take, and the answer.
type badInput struct{ call, value, status, answer string }

// badInputs reads the table of the section "Bad input" of a page.
func badInputs(t *testing.T, page string) (rows []badInput) {
	t.Helper()
	text, err := os.ReadFile("../../docs/behaviour/" + page)
	ok(t, err)
	_, rest, found := strings.Cut(string(text), "\n## Bad input\n")
	if !found {
		t.Fatalf("%s has no section on bad input", page)
	}
	row := regexp.MustCompile("^\\| `([^`]+)` \\| `([^`]+)` \\| (\\d{3}), `([^`]+)` \\|$")
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || line == "| call | bad value | answer |" {
			continue
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%s: the row %s cannot be read", page, line)
		}
		rows = append(rows, badInput{m[1], m[2], m[3], m[4]})
	}
	if len(rows) < 15 {
		t.Fatalf("%s has %d rows", page, len(rows))
	}
	return rows
}

// expectAnswer sends a request, and expects the answer of a row.
func expectAnswer(t *testing.T, row badInput, req *http.Request) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	ok(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(t, err)
	if fmt.Sprint(res.StatusCode) != row.status || !strings.Contains(string(b), row.answer) {
		t.Errorf("%s %s: %d %s, want %s %s", row.call, row.value, res.StatusCode, b, row.status, row.answer)
	}
}

// TestBadInputOfOrders sends what the page on orders lists as bad input: the answers are those of
// the page, and nothing is an order, a refund or a cart.
func TestBadInputOfOrders(t *testing.T) {
	testlevel.SkipQuick(t, "starts a server")
	t.Parallel()
	s := serve(t, t.TempDir())
	profile := s.event(`{"event_type":"seen","user":{"email":"a@example.com"}}`)
	var totals struct{ Totals, Days []any }
	s.console("GET", "/revenue", "", &totals) // signs in
	for _, row := range badInputs(t, "orders.md") {
		if path, reads := strings.CutPrefix(row.call, "GET "); reads {
			req, err := http.NewRequest("GET", s.origin+api.Prefix+strings.Replace(path, "{id}", profile, 1)+"?"+row.value, nil)
			ok(t, err)
			req.Header.Set("Authorization", "Bearer "+s.token)
			expectAnswer(t, row, req)
			continue
		}
		req, err := http.NewRequest("POST", s.origin+"/api/v1/events", strings.NewReader(fmt.Sprintf(`{"event_type":%q,"user":{"email":"a@example.com"},"properties":%s}`, row.call, row.value)))
		ok(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-App-Id", s.creds.AppID)
		req.Header.Set("X-App-Secret", s.creds.AppSecret)
		expectAnswer(t, row, req)
	}
	var person struct {
		Cart   any
		Orders []any
	}
	s.console("GET", "/profiles/"+profile+"/orders", "", &person)
	s.console("GET", "/revenue", "", &totals)
	if person.Cart != nil || len(person.Orders)+len(totals.Totals)+len(totals.Days) != 0 {
		t.Errorf("%+v %+v", person, totals)
	}
}

// TestBadInputOfForms sends what the page on forms lists as bad input: the answers are those of the
// page, no form is made, and nothing is taken.
func TestBadInputOfForms(t *testing.T) {
	testlevel.SkipQuick(t, "starts a server")
	t.Parallel()
	s := serve(t, t.TempDir())
	const email = `{"name":"email","label":"E-mail","required":true}`
	var form struct {
		ID string `json:"_id"`
	}
	s.console("POST", "/forms", `{"name":"Newsletter","published":true,"fields":[`+email+`,{"name":"attributes.size","label":"Size","type":"number"}],
		"consent":{"text":"Send me news.","channels":["email"],"required":true}}`, &form)
	page, err := http.Get(s.origin + "/forms/" + form.ID)
	ok(t, err)
	text, err := io.ReadAll(page.Body)
	ok(t, err)
	page.Body.Close()
	version := regexp.MustCompile(`name="consent_version" value="([^"]*)"`).FindSubmatch(text)
	if version == nil {
		t.Fatalf("no version in %s", text)
	}
	for _, row := range badInputs(t, "forms.md") {
		var req *http.Request
		method, path, _ := strings.Cut(row.call, " ")
		path = strings.Replace(path, "{id}", form.ID, 1)
		if method == "page" {
			values, err := url.ParseQuery(row.value)
			ok(t, err)
			for name, value := range map[string]string{"email": "a@example.com", "consent": "1", "consent_version": string(version[1])} {
				if !values.Has(name) {
					values.Set(name, value)
				}
			}
			req, err = http.NewRequest("POST", s.origin+path, strings.NewReader(values.Encode()))
			ok(t, err)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		} else {
			body := row.value
			if method == "POST" && !strings.HasPrefix(body, `"name": `) {
				body = `"name": "Newsletter", ` + body
			}
			if method == "POST" && !strings.Contains(body, `"fields": `) {
				body = `"fields": [` + email + `], ` + body
			}
			req, err = http.NewRequest(method, s.origin+api.Prefix+path, strings.NewReader("{"+body+"}"))
			ok(t, err)
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+s.token)
		}
		expectAnswer(t, row, req)
	}
	var all []any
	s.console("GET", "/forms", "", &all)
	var stats struct {
		Total struct{ Submissions, Conversions int }
	}
	s.console("GET", "/forms/"+form.ID+"/stats", "", &stats)
	if len(all) != 1 || stats.Total.Submissions != 0 {
		t.Errorf("%d forms, %+v", len(all), stats)
	}
}

// TestBadInputOfMessages sends what the page on messages lists as bad input of campaigns, steps,
// push messages, devices and Twilio's webhook: the answers are those of the page, and nothing is made or sent.
func TestBadInputOfMessages(t *testing.T) {
	testlevel.SkipQuick(t, "starts a server")
	t.Parallel()
	s := serve(t, t.TempDir())
	profile := s.event(`{"event_type":"seen","user":{"external_id":"ann"}}`)
	var none []any
	s.console("GET", "/campaigns", "", &none) // signs in
	s.console("PUT", "/inbound-providers/twilio", `{"auth_token":"twilio-token"}`, nil)
	kinds := map[string]string{"WhatsApp": `"type":3,"service":"whatsapp"`, "in-app": `"type":4,"service":"in_app"`, "push": `"type":4`}
	steps := map[string]string{"WhatsApp": "whatsapp", "in-app": "in_app", "push": "push"}
	request := func(path, token, body string) *http.Request {
		req, err := http.NewRequest("POST", s.origin+path, strings.NewReader(body))
		ok(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		return req
	}
	for _, row := range badInputs(t, "messages.md") {
		kind, what, _ := strings.Cut(row.call, " ")
		switch what {
		case "campaign":
			expectAnswer(t, row, request(api.Prefix+"/campaigns", s.token, `{"name":"n","channel":2,"date":"2026-01-31",`+kinds[kind]+`,`+row.value+`}`))
		case "step":
			step := fmt.Sprintf(`{"id":"s","type":%q`, steps[kind])
			if strings.TrimSpace(row.value) != "" {
				step += "," + row.value
			}
			// Drafts may be incomplete: what is missing is said when the flow is published.
			flow := `{"name":"f","trigger":{"type":"event","event":"go"},"steps":[` + step + `}]}`
			var made struct {
				ID string `json:"_id"`
			}
			if s.attempt("POST", "/flows", json.RawMessage(flow), &made) != nil {
				expectAnswer(t, row, request(api.Prefix+"/flows", s.token, flow))
				continue
			}
			expectAnswer(t, row, request(api.Prefix+"/flows/"+made.ID+"/publish", s.token, ""))
			ok(t, s.attempt("DELETE", "/flows/"+made.ID, nil, nil))
		case "by Twilio":
			// Signed as Twilio signs, with the secret of the account or another one.
			path := "/inbound/" + s.creds.AccountID + "/twilio"
			form, err := url.ParseQuery(row.value)
			ok(t, err)
			secret := map[string]string{"signed": "twilio-token", "forged": "another"}[kind]
			req := request(path, "", form.Encode())
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("X-Twilio-Signature", twilioSignature(secret, s.origin+path, form))
			expectAnswer(t, row, req)
		default:
			expectAnswer(t, row, request("/api/v1"+strings.Replace(what, "{id}", profile, 1), s.creds.APIKey, "{"+row.value+"}"))
		}
	}
	for _, path := range []string{"/campaigns", "/outbox", "/flows", "/profiles/" + profile + "/devices"} {
		if s.console("GET", path, "", &none); len(none) != 0 {
			t.Errorf("%s: %v", path, none)
		}
	}
}
