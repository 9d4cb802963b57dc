package surface

import (
	"cmp"
	"net/http"
	"time"

	"github.com/musterhq/muster/bench/internal/gate"
	"github.com/musterhq/muster/bench/internal/server"
)

// Site is where a load's requests go, and how they are made. It is for the
// loads of the crash and chaos runs.
type Site struct {
	Credentials server.Credentials
	// Origin is where the next request, or the next connection of a worker that
	// keeps one, goes: http://HOST:PORT of a node. Nil is that of the credentials.
	Origin func() string
	// Gate holds requests back while no node serves. Nil never does.
	Gate *gate.Gate
	// Timeout bounds one attempt, Pause is the time between two. Defaults 30 s and
	// 5 ms.
	Timeout, Pause time.Duration
	// Tries bounds the attempts at one request. Default 20,000.
	Tries int
}

// WithDefaults returns the site with the defaults in place of zero values.
func (s Site) WithDefaults() Site {
	if s.Gate == nil {
		s.Gate = gate.New()
		s.Gate.Lift()
	}
	s.Timeout, s.Pause, s.Tries = cmp.Or(s.Timeout, 30*time.Second), cmp.Or(s.Pause, 5*time.Millisecond), cmp.Or(s.Tries, 20_000)
	return s
}

// Next are the credentials with the next origin in their addresses.
func (s *Site) Next() server.Credentials {
	c := s.Credentials
	if s.Origin != nil {
		c = c.At(s.Origin())
	}
	return c
}

// Uncertain reports whether an answer's status leaves open what was done, or asks
// for another attempt.
func Uncertain(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}
