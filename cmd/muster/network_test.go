package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/testlevel"
)

// signInFrom signs in with a header X-Forwarded-For and returns the status.
func (s *server) signInFrom(forwarded, password string) int {
	s.t.Helper()
	return s.call("POST", api.Prefix+"/session", fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, password), nil, "X-Forwarded-For", forwarded)
}

// failsUntilThrottled signs in with a wrong password from addresses until it is refused for a
// while: not before the seventh attempt, and some later on a machine that is so busy that the
// first attempts are forgiven meanwhile.
func (s *server) failsUntilThrottled(address func(attempt int) string) {
	s.t.Helper()
	for i := range 60 {
		switch have := s.signInFrom(address(i), "wrong"); {
		case have == 429 && i >= 6:
			return
		case have != 401:
			s.t.Fatalf("attempt %d is answered %d", i, have)
		}
	}
	s.t.Error("60 attempts are not throttled")
}

// TestTrustedProxies: behind a trusted proxy each client fails for itself; a client
// that is no proxy gets no other address by claiming one.
func TestTrustedProxies(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	s := serve(t, t.TempDir(), "--trusted-proxies", "127.0.0.0/8, ::1")
	// Further left is what the client itself sent.
	s.failsUntilThrottled(func(i int) string { return fmt.Sprintf("198.51.100.%d, 203.0.113.1", i) })
	if have := s.signInFrom("203.0.113.2", s.creds.ConsolePassword); have != 200 {
		t.Errorf("another client of the proxy is answered %d", have)
	}
	s.stop()

	s = serve(t, t.TempDir())
	s.failsUntilThrottled(func(i int) string { return fmt.Sprintf("203.0.113.%d", i) }) // without trusted proxies
	s.stop()

	code, _, errs := muster(t, "", "serve", "--data", t.TempDir(), "--trusted-proxies", "10.0.0.0/33")
	if code != exitUsage || !strings.Contains(errs, `--trusted-proxies: "10.0.0.0/33" is no network`) {
		t.Errorf("%d %s", code, errs)
	}
}
