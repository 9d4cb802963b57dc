package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// signInToken is that of the link which the first start printed.
func (s *server) signInToken() string {
	s.t.Helper()
	for line := range strings.Lines(s.log()) {
		if page, token, is := strings.Cut(strings.TrimSpace(line), "#sign-in="); is && page == s.creds.ConsoleURL {
			return token
		}
	}
	s.t.Fatalf("no line of the start has a sign-in link to %s:\n%s", s.creds.ConsoleURL, s.log())
	return ""
}

// TestTheConsoleIsServed follows what a first start prints: the page at console_url, at
// / and at a screen's address, and the link that signs the first user in.
func TestTheConsoleIsServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	get := func(url string) (int, string) {
		res, err := http.Get(url)
		ok(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		ok(t, err)
		return res.StatusCode, string(b)
	}
	for _, url := range []string{s.creds.ConsoleURL, s.origin, s.origin + "/console/segments/new"} {
		if status, body := get(url); status != 200 || !strings.HasPrefix(body, "<!doctype html>") {
			t.Errorf("%s: %d %.60q", url, status, body)
		}
	}
	if status, body := get(s.origin + "/console/api/v1/nothing"); status != 404 || !strings.HasPrefix(body, "{") {
		t.Errorf("a path of the API that there is not: %d %.60q", status, body)
	}
	body := fmt.Sprintf(`{"token":%q}`, s.signInToken())
	var d struct {
		Data struct{ Email, Token string }
	}
	if status := s.call("POST", "/console/api/v1/session/link", body, &d); status != 200 || d.Data.Email != s.creds.ConsoleEmail || d.Data.Token == "" {
		t.Errorf("the link: %d %+v", status, d)
	}
	if status := s.call("POST", "/console/api/v1/session/link", body, nil); status != 401 {
		t.Errorf("the link for the second time: %d", status)
	}
	s.stop()
	// Where there is a company, a start prints no link.
	s = serve(t, dir)
	if strings.Contains(s.log(), "sign-in=") {
		t.Errorf("a second start prints a link:\n%s", s.log())
	}
	s.stop()
}
