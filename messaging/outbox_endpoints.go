package messaging

import (
	"math/bits"
	"net/http"
	"sync"
	"time"

	"github.com/musterhq/muster/messaging/webhook"
)

// The pauses of an endpoint that does not work: after pauseAfter attempts in a row
// without an answer, or with one that speaks of the receiver and not of the event
// (429 and 5xx), one attempt is made at a time, with a pause before it that doubles
// from pauseBase to pauseCap. Without it, each of 100,000 queued deliveries would be
// tried 15 times.
const (
	pauseAfter = 5
	pauseBase  = time.Second
	pauseCap   = time.Minute
)

// maxEndpointsKnown bounds what is remembered of endpoints that are not in use.
const maxEndpointsKnown = 4096

// hookTurns bounds how many webhooks are under way to one endpoint, and lets
// endpoints pause that do not work. It is safe for concurrent use.
type hookTurns struct {
	perEndpoint int
	rand        func() uint64

	mu struct {
		sync.Mutex
		of map[hookTarget]*hookState
	}
}

type hookTarget struct {
	account  uint64
	endpoint string
}

type hookState struct {
	running int
	down    int   // attempts in a row that found the receiver not working
	untilMs int64 // no attempt begins before
}

func newHookTurns(perEndpoint int, rand func() uint64) *hookTurns {
	h := &hookTurns{perEndpoint: perEndpoint, rand: rand}
	h.mu.of = map[hookTarget]*hookState{}
	return h
}

// room is how many more webhooks may begin. An ordered endpoint does not pause: its
// one delivery waits by itself.
func (h *hookTurns) room(t hookTarget, ordered bool, nowMs int64) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.mu.of[t]
	switch {
	case ordered:
		if s == nil || s.running == 0 {
			return 1
		}
		return 0
	case s == nil:
		return h.perEndpoint
	case s.down < pauseAfter:
		return h.perEndpoint - s.running
	case nowMs < s.untilMs:
		return 0
	}
	return 1 - s.running
}

// begin takes a turn, which end or leave gives back.
func (h *hookTurns) begin(t hookTarget) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.mu.of[t]
	if s == nil {
		if len(h.mu.of) >= maxEndpointsKnown {
			for k, s := range h.mu.of {
				if s.running == 0 {
					delete(h.mu.of, k)
				}
			}
		}
		s = new(hookState)
		h.mu.of[t] = s
	}
	s.running++
}

// leave gives a turn back.
func (h *hookTurns) leave(t hookTarget) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.mu.of[t]
	s.running--
	if s.running == 0 && s.down == 0 {
		delete(h.mu.of, t)
	}
}

// learn takes note of how an attempt went.
func (h *hookTurns) learn(t hookTarget, r webhook.Result, nowMs int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.mu.of[t]
	if s == nil {
		return
	}
	if r.Class != webhook.Retry || r.Status != 0 && r.Status != http.StatusTooManyRequests && r.Status < 500 {
		s.down = 0
		return
	}
	if s.down++; s.down < pauseAfter {
		return
	}
	pause := pauseCap
	if n := s.down - pauseAfter; n < 6 {
		pause = pauseBase << n
	}
	// Half of it is drawn, so that receivers which failed together are not called together.
	hi, _ := bits.Mul64(uint64(pause/2), h.rand())
	pause = max(pause/2+time.Duration(hi), min(r.RetryAfter, time.Hour))
	s.untilMs = nowMs + pause.Milliseconds()
}
