package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// TestFormsAreKept: people sign up by the hosted page and by an embedded form; a person on file
// confirms by the link of a captured message; after a kill nothing of it is lost or counted
// twice, a segment has the people and a flow has enrolled them.
func TestFormsAreKept(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	s.sendToAll()
	var list, old, form, segment, flow struct {
		ID  string `json:"_id"`
		URL string `json:"url"`
	}
	ok(t, s.surfaceA("POST", "/lists", map[string]any{"name": "news"}, &list))
	ok(t, s.surfaceA("POST", "/contacts", map[string]any{"email": "old@example.com", "first_name": "Olga"}, &old))
	ok(t, s.surfaceA("POST", "/forms", map[string]any{"name": "Newsletter", "published": true, "list_ids": []string{list.ID}, "allowed_origins": []string{"https://shop.example"},
		"fields":  []map[string]any{{"name": "email", "label": "E-mail", "required": true}, {"name": "first_name", "label": "First name"}, {"name": "attributes.size", "label": "Size", "type": "number"}},
		"consent": map[string]any{"text": "Send me <news>.", "channels": []string{"email"}, "required": true}}, &form))
	ok(t, s.surfaceA("POST", "/segments", map[string]any{"name": "Signed up", "definition": map[string]any{"kind": "activity", "event": "signup_form_submitted", "did": true}}, &segment))
	ok(t, s.surfaceA("POST", "/custom-flows", map[string]any{"name": "Welcome", "trigger": map[string]any{"type": "list_joined", "list_id": list.ID}, "steps": []map[string]any{{"id": "w", "type": "wait", "seconds": 3600}}}, &flow))
	ok(t, s.surfaceA("POST", "/custom-flows/"+flow.ID+"/publish", nil, nil))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	visit := func(origin, path string, values url.Values) (int, string) {
		t.Helper()
		method, body := "GET", ""
		if values != nil {
			method, body = "POST", values.Encode()
		}
		req, err := http.NewRequest(method, s.origin+path, strings.NewReader(body))
		ok(t, err)
		req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
		if values != nil {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		res, err := client.Do(req)
		ok(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		ok(t, err)
		return res.StatusCode, string(b)
	}
	path := "/forms/" + form.ID
	hidden := func(page, name string) string {
		t.Helper()
		found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("no %s in %s", name, page)
		}
		return found[1]
	}
	status, page := visit("", path, nil)
	if status != 200 || strings.Contains(page, "<script") || !strings.Contains(page, "Send me &lt;news&gt;.") {
		t.Fatal(status, page)
	}
	says := hidden(page, "consent_version")
	send := func(email, token, origin string) (int, string) {
		t.Helper()
		v := url.Values{"email": {email}, "first_name": {"Ann"}, "attributes.size": {"42"}, "consent": {"1"}, "consent_version": {says}}
		if token != "" {
			v.Set("form_token", token)
		}
		return visit(origin, path, v)
	}
	token := hidden(page, "form_token")
	if status, answer := send("bot@example.com", token, ""); status != 200 || !strings.Contains(answer, "Thank you") { // too fast for a person
		t.Fatal(status, answer)
	}
	time.Sleep(1100 * time.Millisecond) // the least that a person takes, by the server's own clock
	_, taken := send("ann@example.com", token, "null")
	for range 2 {
		if status, again := send("ann@example.com", token, "null"); status != 200 || again != taken {
			t.Fatal(status, again)
		}
	}
	if status, answer := send("old@example.com", "", "https://shop.example"); status != 200 || answer != taken {
		t.Errorf("%d: a known address is told apart: %s", status, answer)
	}
	if status, _ := send("eve@example.com", "", "https://evil.example"); status != 403 {
		t.Errorf("another site: %d", status)
	}
	for name, v := range map[string]url.Values{
		"check this e-mail": {"email": {"none"}, "consent": {"1"}, "consent_version": {says}}, "tick this": {"email": {"a@example.com"}, "consent_version": {says}},
		"write a number": {"email": {"a@example.com"}, "attributes.size": {"big"}, "consent": {"1"}, "consent_version": {says}},
	} {
		if status, page := visit("", path, v); status != 400 || !strings.Contains(page, name) {
			t.Errorf("%s: %d %s", name, status, page)
		}
	}
	if status, _ := visit("", path, url.Values{"email": {"a@example.com"}, "consent": {"1"}}); status != 409 && status != 429 {
		t.Errorf("a consent that was not read: %d", status)
	}
	for _, none := range []string{"/forms/frm_none", path + "0", "/forms/"} {
		if status, _ := visit("", none, nil); status != 404 {
			t.Errorf("%s: %d", none, status)
		}
	}
	var contact struct {
		FirstName string `json:"first_name"`
	}
	ok(t, s.surfaceA("GET", "/contacts/"+old.ID, nil, &contact))
	if contact.FirstName != "Olga" {
		t.Error("a known person was changed without a confirmation")
	}
	s.kill()
	s = serve(t, dir)
	var captured []struct{ HTML string }
	eventually.Succeeds(t, func() error {
		s.console("GET", "/outbox?channel=email&to=old@example.com&limit=1", "", &captured)
		if len(captured) == 0 {
			return fmt.Errorf("no message yet")
		}
		return nil
	})
	link := regexp.MustCompile(`https?://[^/"]+(/t/[A-Za-z0-9_-]+)`).FindStringSubmatch(captured[0].HTML)
	if link == nil {
		t.Fatalf("no link in %s", captured[0].HTML)
	}
	if status, page := visit("", link[1], nil); status != 200 || !strings.Contains(page, "Confirm") {
		t.Fatal(status, page)
	}
	for range 2 {
		if status, page := visit("", link[1], url.Values{}); status != 200 || !strings.Contains(page, "confirmed") {
			t.Fatal(status, page)
		}
	}
	ok(t, s.surfaceA("GET", "/contacts/"+old.ID, nil, &contact))
	if contact.FirstName != "Ann" {
		t.Errorf("after the confirmation: %+v", contact)
	}
	send("ann@example.com", token, "null") // the same page again, after the kill
	var stats struct {
		Total struct{ Views, Submissions, Conversions, Unconfirmable int }
		Days  []struct{ Views int }
	}
	ok(t, s.surfaceA("GET", "/forms/"+form.ID+"/stats", nil, &stats))
	if x := stats.Total; x.Submissions != 2 || x.Conversions != 2 || x.Unconfirmable != 0 {
		t.Errorf("%+v", x)
	}
	// Days and total have the views of just now alike, which are not recorded yet.
	visit("", path, nil)
	ok(t, s.surfaceA("GET", "/forms/"+form.ID+"/stats", nil, &stats))
	views := 0
	for _, d := range stats.Days {
		views += d.Views
	}
	if views == 0 || views != stats.Total.Views {
		t.Errorf("%d views on days, %d in total", views, stats.Total.Views)
	}
	eventually.Succeeds(t, func() error {
		var in struct{ Members []string }
		if err := s.surfaceA("GET", "/segments/"+segment.ID+"/members", nil, &in); err != nil {
			return err
		}
		if len(in.Members) != 2 {
			return fmt.Errorf("%d in the segment", len(in.Members))
		}
		return nil
	})
	var enrolled struct{ Enrolments []any }
	ok(t, s.surfaceA("GET", "/custom-flows/"+flow.ID+"/enrolments", nil, &enrolled))
	if len(enrolled.Enrolments) != 2 {
		t.Errorf("%d enrolled", len(enrolled.Enrolments))
	}
	s.stop()
}
