package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
)

// signInFrom signs in with a header X-Forwarded-For and returns the status.
func (s *server) signInFrom(forwarded, password string) int {
	s.t.Helper()
	return s.call("POST", api.Prefix+"/session", fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, password), nil, "X-Forwarded-For", forwarded)
}

// TestTrustedProxies: behind a trusted proxy each client fails for itself; a client
// that is no proxy gets no other address by claiming one.
func TestTrustedProxies(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--trusted-proxies", "127.0.0.0/8, ::1")
	for i := range 7 {
		// Further left is what the client itself sent.
		if want, have := map[bool]int{true: 401, false: 429}[i < 6], s.signInFrom(fmt.Sprintf("198.51.100.%d, 203.0.113.1", i), "wrong"); have != want {
			t.Errorf("attempt %d is answered %d, want %d", i, have, want)
		}
	}
	if have := s.signInFrom("203.0.113.2", s.creds.ConsolePassword); have != 200 {
		t.Errorf("another client of the proxy is answered %d", have)
	}
	s.stop()

	s = serve(t, t.TempDir())
	for i := range 7 {
		if want, have := map[bool]int{true: 401, false: 429}[i < 6], s.signInFrom(fmt.Sprintf("203.0.113.%d", i), "wrong"); have != want {
			t.Errorf("without trusted proxies attempt %d is answered %d, want %d", i, have, want)
		}
	}
	s.stop()

	code, _, errs := muster(t, "", "serve", "--data", t.TempDir(), "--trusted-proxies", "10.0.0.0/33")
	if code != exitUsage || !strings.Contains(errs, `--trusted-proxies: "10.0.0.0/33" is no network`) {
		t.Errorf("%d %s", code, errs)
	}
}
