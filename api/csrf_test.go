package api

import (
	"fmt"
	"strings"
	"testing"
)

// TestCookieSession: a session in a cookie is out of reach of scripts and other
// sites, and changes nothing without the token they cannot know.
func TestCookieSession(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.token = ""
	signIn := func(headers ...string) (cookie string, csrf string) {
		t.Helper()
		status, a := s.do("POST", "/session", fmt.Sprintf(`{"email":%q,"password":%q,"cookie":true}`, s.creds.ConsoleEmail, s.creds.ConsolePassword), headers...)
		var d struct {
			Token     string
			CSRFToken string `json:"csrf_token"`
		}
		a.into(t, &d)
		if status != 200 || d.Token != "" || len(d.CSRFToken) != 43 {
			t.Fatalf("%d %s", status, a.Data)
		}
		return a.header.Get("Set-Cookie"), d.CSRFToken
	}
	cookie, csrf := signIn()
	for _, part := range []string{"muster_session=ses_", "; max-age=1209600", "; path=/console", "; HttpOnly", "; SameSite=Strict"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie lacks %q: %s", part, cookie)
		}
	}
	if strings.Contains(strings.ToLower(cookie), "secure") || strings.Contains(cookie, csrf) {
		t.Errorf("on a plain connection: %s", cookie)
	}
	if secure, _ := signIn("X-Forwarded-Proto", "https"); !strings.Contains(secure, "; secure") {
		t.Errorf("behind a proxy with TLS: %s", secure)
	}
	pair, _, _ := strings.Cut(cookie, ";")
	_, otherCSRF := signIn()
	body := `{"name":"Item viewed"}`
	for _, x := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
	}{
		{"reading needs no token", "GET", "/catalog", "", []string{"Cookie", pair}, 200},
		{"no token", "POST", "/catalog", body, []string{"Cookie", pair}, 403},
		{"empty token", "POST", "/catalog", body, []string{"Cookie", pair, "X-CSRF-Token", ""}, 403},
		{"another session's token", "POST", "/catalog", body, []string{"Cookie", pair, "X-CSRF-Token", otherCSRF}, 403},
		{"the session's own token", "POST", "/catalog", body, []string{"Cookie", pair, "X-CSRF-Token", strings.TrimPrefix(pair, "muster_session=")}, 403},
		{"a header beside the cookie wins", "POST", "/catalog", body, []string{"Cookie", pair, "X-CSRF-Token", csrf, "Authorization", "Bearer x"}, 401},
		{"the right token", "POST", "/catalog", body, []string{"Cookie", pair, "X-CSRF-Token", csrf}, 200},
		{"a cookie that is none", "GET", "/catalog", "", []string{"Cookie", "muster_session=x"}, 401},
		{"the token as cookie", "GET", "/catalog", "", []string{"Cookie", "muster_session=" + csrf}, 401},
	} {
		if status, a := s.do(x.method, x.path, x.body, x.headers...); status != x.status {
			t.Errorf("%s: %d %s", x.name, status, a.Message)
		}
	}
	// A page that was loaded again asks for the token.
	status, a := s.do("GET", "/session", "", "Cookie", pair)
	var d struct {
		Token, Email string
		CSRFToken    string `json:"csrf_token"`
		ExpiresAt    string `json:"expires_at"`
	}
	a.into(t, &d)
	if status != 200 || d.CSRFToken != csrf || d.Email != s.creds.ConsoleEmail || d.Token != "" || d.ExpiresAt != "2025-03-15T12:00:00.000Z" {
		t.Errorf("%d %s", status, a.Data)
	}
	if status, _ := s.do("DELETE", "/session", "", "Cookie", pair); status != 403 {
		t.Errorf("signed out by another site: %d", status)
	}
	status, a = s.do("DELETE", "/session", "", "Cookie", pair, "X-CSRF-Token", csrf)
	if dropped := a.header.Get("Set-Cookie"); status != 200 || !strings.Contains(dropped, "muster_session=;") || !strings.Contains(dropped, "expires=Tue, 10 Nov 2009") {
		t.Errorf("signed out: %d %q", status, dropped)
	}
	if status, _ := s.do("GET", "/catalog", "", "Cookie", pair); status != 401 {
		t.Errorf("after signing out: %d", status)
	}
}

// TestBearerNeedsNoCSRF: a program's header is not sent by a browser unasked.
func TestBearerNeedsNoCSRF(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.want("POST", "/catalog", `{"name":"Item viewed"}`, nil)
	if a := s.want("GET", "/session", "", nil); strings.Contains(string(a.Data), "csrf_token") {
		t.Errorf("have %s", a.Data)
	}
}
