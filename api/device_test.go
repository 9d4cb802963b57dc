package api

import (
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/handler"
)

// headerFrom is the header that says in tests where a call comes from.
const headerFrom = "X-Test-From"

// signsInFrom is a service whose calls come from addresses that a test gives.
type signsInFrom struct {
	*service
	body string // of a sign-in with the right password, but for the closing brace
}

// The form of a device's token: random bytes, the second it was made in, and a code.
const (
	tokenPrefix = "dev_"
	tokenRandom = 16
	tokenBytes  = tokenRandom + 8 + 32
	tokenTTL    = 365 * 24 * time.Hour
)

func newSignsInFrom(t *testing.T, change func(*Options)) *signsInFrom {
	s := newService(t, &memHistory{}, change)
	s.token = ""
	s.ops.Open(func(rc *fasthttp.RequestCtx) {
		if from := net.ParseIP(string(rc.Request.Header.Peek(headerFrom))); from != nil {
			rc.SetRemoteAddr(&net.TCPAddr{IP: from})
		}
		s.handler(rc)
	}, s.node.Err)
	return &signsInFrom{s, fmt.Sprintf(`{"email":%q,"password":%q`, s.creds.ConsoleEmail, s.creds.ConsolePassword)}
}

// right signs in with the right password and more of the body.
func (s *signsInFrom) right(from, more string, headers ...string) (int, answer) {
	s.t.Helper()
	return s.do("POST", "/session", s.body+more+"}", append([]string{headerFrom, from}, headers...)...)
}

// guess tries a wrong password with more of the body.
func (s *signsInFrom) guess(from, more string) int {
	s.t.Helper()
	status, _ := s.do("POST", "/session", fmt.Sprintf(`{"email":%q,"password":"wrong"%s}`, s.creds.ConsoleEmail, more), headerFrom, from)
	return status
}

// known signs in from a quiet address and returns the token of the device.
func (s *signsInFrom) known() string {
	s.t.Helper()
	status, a := s.right("198.51.100.1", "")
	var d struct {
		DeviceToken string `json:"device_token"`
	}
	a.into(s.t, &d)
	if status != 200 || !strings.HasPrefix(d.DeviceToken, "dev_") {
		s.t.Fatalf("%d %s", status, a.Data)
	}
	return d.DeviceToken
}

func showing(token string) string { return fmt.Sprintf(`,"device_token":%q`, token) }

// TestOwnerIsNotLockedOut: guesses from many addresses do not keep out a person who
// comes from another one, or from one of these with a known device.
func TestOwnerIsNotLockedOut(t *testing.T) {
	t.Parallel()
	s := newSignsInFrom(t, nil)
	token := s.known()
	for i := range 40 {
		for range 3 {
			s.guess(fmt.Sprintf("203.0.113.%d", i), "")
		}
	}
	if status := s.guess("203.0.113.7", ""); status != 429 {
		t.Fatalf("an address that guesses is answered %d", status)
	}
	if status, a := s.right("203.0.113.7", ""); status != 429 {
		t.Errorf("an unknown device at an address that guesses: %d %s", status, a.Message)
	}
	if status, a := s.right("198.51.100.2", ""); status != 200 {
		t.Errorf("an unknown device at a quiet address: %d %s", status, a.Message)
	}
	if status, a := s.right("203.0.113.7", showing(token)); status != 200 {
		t.Errorf("a known device at an address that guesses: %d %s", status, a.Message)
	}
	if status, a := s.right("203.0.113.8", "", "Cookie", "muster_device="+token); status != 200 {
		t.Errorf("a known device by its cookie: %d %s", status, a.Message)
	}
}

// TestDeviceCookie: a browser keeps its device out of reach of scripts and other
// sites, and stays known when its person takes another password.
func TestDeviceCookie(t *testing.T) {
	t.Parallel()
	s := newSignsInFrom(t, nil)
	deviceOf := func(a answer) string {
		t.Helper()
		for _, c := range a.header.Values("Set-Cookie") {
			if value, ok := strings.CutPrefix(c, "muster_device="); ok {
				for _, part := range []string{"; max-age=31536000", "; path=/console", "; HttpOnly", "; secure", "; SameSite=Strict"} {
					if !strings.Contains(c, part) {
						t.Errorf("the cookie lacks %q: %s", part, c)
					}
				}
				value, _, _ = strings.Cut(value, ";")
				return value
			}
		}
		t.Fatalf("no device in %q", a.header.Values("Set-Cookie"))
		return ""
	}
	status, a := s.right("198.51.100.1", `,"cookie":true`, "X-Forwarded-Proto", "https")
	if status != 200 || strings.Contains(string(a.Data), "device_token") {
		t.Fatalf("%d %s", status, a.Data)
	}
	first := deviceOf(a)
	var in struct {
		CSRFToken string `json:"csrf_token"`
	}
	a.into(t, &in)
	session := ""
	for _, c := range a.header.Values("Set-Cookie") {
		if strings.HasPrefix(c, handler.SessionCookie+"=") {
			session, _, _ = strings.Cut(c, ";")
		}
	}
	const other = "correct horse battery"
	status, a = s.do("PUT", "/password", fmt.Sprintf(`{"current_password":%q,"password":%q}`, s.creds.ConsolePassword, other), "Cookie", session, handler.HeaderCSRF, in.CSRFToken, "X-Forwarded-Proto", "https")
	if status != 200 {
		t.Fatalf("%d %s", status, a.Message)
	}
	second := deviceOf(a)
	s.body = fmt.Sprintf(`{"email":%q,"password":%q`, s.creds.ConsoleEmail, other)
	for range 30 {
		s.guess("203.0.113.1", "")
	}
	if status, a := s.right("203.0.113.1", "", "Cookie", "muster_device="+first); status != 429 {
		t.Errorf("a device of the old password is still known: %d %s", status, a.Message)
	}
	if status, a := s.right("203.0.113.1", "", "Cookie", "muster_device="+second); status != 200 {
		t.Errorf("the browser that changed the password: %d %s", status, a.Message)
	}
}

// TestDeviceIsNobodyElses: what is no device of this person does not help, and
// neither reveals whether a user has the e-mail.
func TestDeviceIsNobodyElses(t *testing.T) {
	t.Parallel()
	s := newSignsInFrom(t, nil)
	token := s.known()
	s.token = s.signIn()
	s.want("POST", "/users", `{"email":"ann@x.io","password":"correct horse battery","permissions":["segments:read"]}`, nil)
	s.token = ""
	status, a := s.do("POST", "/session", `{"email":"ann@x.io","password":"correct horse battery"}`, headerFrom, "198.51.100.9")
	var ann struct {
		DeviceToken string `json:"device_token"`
	}
	a.into(t, &ann)
	if status != 200 {
		t.Fatal(status)
	}
	for range 30 {
		s.guess("203.0.113.1", "")
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, tokenPrefix))
	ok(t, err)
	changed := func(i int) string {
		b := append([]byte{}, raw...)
		b[i] ^= 1
		return tokenPrefix + base64.RawURLEncoding.EncodeToString(b)
	}
	for name, x := range map[string]string{
		"another person's": ann.DeviceToken, "its random bytes changed": changed(0), "its time changed": changed(tokenRandom + 7), "its code changed": changed(tokenBytes - 1),
		"cut": token[:len(token)-1], "longer": token + "A", "no prefix": strings.TrimPrefix(token, tokenPrefix), "nonsense": "x",
	} {
		if status, a := s.right("203.0.113.1", showing(x)); status != 429 {
			t.Errorf("%s: %d %s", name, status, a.Message)
		}
	}
	// The answers for an e-mail that no user has are the same.
	for range 30 {
		s.do("POST", "/session", `{"email":"nobody@x.io","password":"wrong"}`, headerFrom, "203.0.113.2")
	}
	if status, _ := s.do("POST", "/session", `{"email":"nobody@x.io","password":"wrong"`+showing(token)+`}`, headerFrom, "203.0.113.2"); status != 429 {
		t.Errorf("an e-mail that no user has: %d", status)
	}
	s.clock.Advance(tokenTTL - 2*time.Hour)
	for range 30 {
		s.guess("203.0.113.1", "")
	}
	if status, a := s.right("203.0.113.1", showing(token)); status != 200 {
		t.Errorf("a device of almost a year: %d %s", status, a.Message)
	}
	s.clock.Advance(2 * time.Hour)
	for range 30 {
		s.guess("203.0.113.1", "")
	}
	if status, _ := s.right("203.0.113.1", showing(token)); status != 429 {
		t.Errorf("a device of a year: %d", status)
	}
}

// TestKnownDeviceIsThrottled: a stolen device is no way to guess.
func TestKnownDeviceIsThrottled(t *testing.T) {
	t.Parallel()
	s := newSignsInFrom(t, nil)
	token := s.known()
	for i := range 6 {
		if status := s.guess(fmt.Sprintf("203.0.113.%d", i), showing(token)); status != 401 {
			t.Fatalf("attempt %d is answered %d", i, status)
		}
	}
	if status := s.guess("203.0.113.9", showing(token)); status != 429 {
		t.Errorf("the seventh is answered %d", status)
	}
	if status, a := s.right("198.51.100.1", ""); status != 200 {
		t.Errorf("the person elsewhere: %d %s", status, a.Message)
	}
}

// TestInventedDevicesAreBounded: invented devices are looked up a few times, then
// no more.
func TestInventedDevicesAreBounded(t *testing.T) {
	t.Parallel()
	s := newSignsInFrom(t, nil)
	token := s.known()
	for range 30 {
		s.guess("203.0.113.1", "")
	}
	invented := tokenPrefix + base64.RawURLEncoding.EncodeToString(make([]byte, tokenBytes))
	s.guess("203.0.113.1", showing(invented)) // a device of 1970 is none
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, tokenPrefix))
	ok(t, err)
	raw[0] ^= 1
	invented = tokenPrefix + base64.RawURLEncoding.EncodeToString(raw)
	for range 11 {
		s.guess("203.0.113.1", showing(invented))
	}
	if status, _ := s.right("203.0.113.1", showing(token)); status != 429 {
		t.Errorf("after eleven inventions a device is looked up again: %d", status)
	}
	if status, a := s.right("203.0.113.2", showing(token)); status != 200 {
		t.Errorf("another address: %d %s", status, a.Message)
	}
}

// TestFloodLeavesRoom (Q1): a flood of sign-ins does not use the computations that
// known devices have.
func TestFloodLeavesRoom(t *testing.T) {
	t.Parallel()
	s := newSignsInFrom(t, func(o *Options) { o.SignIn.Checks, o.SignIn.Queue = 1, 1 })
	token := s.known()
	release, err := s.api.accounts.UnauthenticatedPasswords.Acquire(t.Context())
	ok(t, err)
	defer release()
	defer enqueue(t, s.api.accounts.UnauthenticatedPasswords)()
	if status, _ := s.right("198.51.100.2", ""); status != 503 {
		t.Errorf("a stranger in the flood: %d", status)
	}
	if status, a := s.right("198.51.100.2", showing(token)); status != 200 {
		t.Errorf("a known device in the flood: %d %s", status, a.Message)
	}
}
