package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
)

// inboxes reads people's inboxes as a page does.
type inboxes struct {
	s    *server
	keys inAppKeys
}

func newInboxes(t *testing.T, s *server) *inboxes {
	t.Helper()
	x := &inboxes{s: s}
	ok(t, s.surfaceA("POST", "/in-app/secret", nil, &x.keys))
	return x
}

// person is the external id of a person.
func (x *inboxes) person(n int) string { return fmt.Sprintf("person-%d", n) }

func (x *inboxes) read(n int) (in inbox, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return in, readInbox(ctx, x.s.origin, personToken(x.keys.Secret, x.keys.Issuer, x.person(n), time.Hour), &in)
}

// count is how many messages a person sees, -1 if the inbox cannot be read.
func (x *inboxes) count(n int) int {
	in, err := x.read(n)
	if err != nil {
		return -1
	}
	return len(in.Messages)
}

// isEmpty expects that a person sees nothing.
func (x *inboxes) isEmpty(n int) error {
	in, err := x.read(n)
	if err == nil && len(in.Messages) > 0 {
		err = fmt.Errorf("the inbox of %s has %+v", x.person(n), in.Messages)
	}
	return err
}

// openForm is a hosted form with double opt-in that a person has opened.
type openForm struct {
	address string
	values  url.Values // hidden fields of the page as it was opened last
	taken   int        // submissions
}

func newOpenForm(t *testing.T, s *server) *openForm {
	t.Helper()
	var made struct {
		ID string `json:"_id"`
	}
	ok(t, s.surfaceA("POST", "/forms", obj{"name": "News", "published": true, "double_opt_in": true,
		"fields": []obj{{"name": "email", "label": "E-mail", "required": true}}, "consent": obj{"text": "Send me news.", "channels": []string{"email"}, "required": true}}, &made))
	f := &openForm{address: s.origin + "/forms/" + made.ID}
	ok(t, f.open())
	return f
}

// open opens the page. What it says counts for one submission.
func (f *openForm) open() error {
	page, err := browse("GET", f.address, nil)
	if err != nil {
		return err
	}
	f.values = url.Values{"consent": {"1"}}
	for _, name := range []string{"form_token", "consent_version"} {
		found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
		if found == nil {
			return fmt.Errorf("no %s in %s", name, page)
		}
		f.values.Set(name, found[1])
	}
	return nil
}

// slowest is somewhat longer than the rate of submissions from one address has between two.
const slowest = 3500 * time.Millisecond

// send sends the form with an e-mail, at most once in [slowest].
func (f *openForm) send(email string) error {
	f.values.Set("email", email)
	if _, err := browse("POST", f.address, f.values); err != nil {
		return err
	}
	f.taken++
	return f.open()
}

// leaveAll has a person unsubscribe from everything on the preference page.
func (s *server) leaveAll(id string) error {
	var link struct{ URL string }
	if err := s.attempt("GET", "/profiles/"+id+"/preferences-link", nil, &link); err != nil {
		return err
	}
	page, err := browse("POST", s.origin+link.URL[strings.Index(link.URL, "/preferences/"):], url.Values{"action": {"everything"}})
	if err == nil && !strings.Contains(page, `role="status"`) {
		err = fmt.Errorf("the preference page says %s", page)
	}
	return err
}

// browse calls a page as a browser does.
func browse(method, address string, values url.Values) (string, error) {
	req, err := http.NewRequest(method, address, strings.NewReader(values.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	if values != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %s", method, address, res.StatusCode, b)
	}
	return string(b), err
}
