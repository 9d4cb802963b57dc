package flows

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/mail"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/bench/internal/sink"
	"github.com/musterhq/muster/internal/pause"
)

// probePath is where calls of probes arrive, with the probe's number behind.
const probePath = "/probe/"

// sinks take the calls and e-mails of flows and note when those of probes arrived.
type sinks struct {
	url          string // of calls
	calls, mails arrivals
	hooks, relay *sink.Sink
}

func newSinks() (*sinks, error) {
	s := &sinks{}
	var err error
	if s.hooks, err = sink.Webhooks(func(_ http.ResponseWriter, r *http.Request) { s.calls.note(r.URL.Path, probePath, time.Now()) }); err != nil {
		return nil, err
	}
	s.relay, err = sink.Mails(func(header mail.Header, _ net.Conn) error {
		s.mails.note(header.Get("Subject"), probeSubject, time.Now())
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.url = "http://" + s.hooks.Addr
	return s, nil
}

func (s *sinks) close() error { return errors.Join(s.hooks.Close(), s.relay.Close()) }

// arrivals are effects of one kind that arrived, by the number of their probe.
type arrivals struct {
	mu struct {
		sync.Mutex
		first map[int]time.Time
		all   uint64 // with those of no probe
		again int    // more than one of a probe
	}
}

// note takes down what arrived; it is a probe's when its name is the prefix and
// a number.
func (a *arrivals) note(name, prefix string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.all++
	text, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return
	}
	if _, known := a.mu.first[n]; known {
		a.mu.again++
		return
	}
	if a.mu.first == nil {
		a.mu.first = map[int]time.Time{}
	}
	a.mu.first[n] = at
}

// at is when a probe's arrived first.
func (a *arrivals) at(probe int) (t time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok = a.mu.first[probe]
	return t, ok
}

// counts are how many arrived, how many probes they belong to, and how many of
// probes came once more.
func (a *arrivals) counts() (all uint64, probes, again int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.all, len(a.mu.first), a.mu.again
}

// until waits until those of all these probes have arrived, or ctx ends.
func (a *arrivals) until(ctx context.Context, probes []int) error {
	for _, n := range probes {
		err := pause.Until(ctx, 5*time.Millisecond, func() (bool, error) {
			_, ok := a.at(n)
			return ok, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
