package flowcrash

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/sink"
)

// hookServers are how many receivers of webhooks there are: the server bounds
// the calls to one host, and some hang.
const hookServers = 4

// stepFlaky is the id of steps whose calls fail for good now and then.
const stepFlaky = "flaky"

// hookTimeout is how long the server waits for an answer, see flowDefs.
const hookTimeout = 2 * time.Second

// hooks are the receivers of webhooks.
type hooks struct {
	desk  *desk
	sinks []*sink.Sink
}

func newHooks(seed uint64) (*hooks, error) {
	h := &hooks{desk: newDesk(seed)}
	for range hookServers {
		s, err := sink.Webhooks(h.serve)
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		h.sinks = append(h.sinks, s)
	}
	return h, nil
}

func (h *hooks) close() (err error) {
	for _, s := range h.sinks {
		err = errors.Join(err, s.Close())
	}
	return err
}

// url is where a step's calls go.
func (h *hooks) url(flow, step string) string {
	n := (len(flow) + len(step)) % len(h.sinks)
	return fmt.Sprintf("http://%s/%s/%s", h.sinks[n].Addr, flow, step)
}

func (h *hooks) manner(id, step string) manner {
	n := h.desk.draw(id, 100)
	if step == stepFlaky {
		switch {
		case n < 20:
			return errorEver
		case n < 40:
			return refuses
		}
		return takes
	}
	switch {
	case n < 6:
		return errorFirst
	case n < 10:
		return dropsFirst
	case n < 12:
		return hangsFirst
	}
	return takes
}

func (h *hooks) serve(w http.ResponseWriter, r *http.Request) {
	var body struct{ Profile, Key string }
	flow, step, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&body); err != nil {
		return // cut off by a kill: it did not arrive
	}
	id := r.Header.Get("webhook-id")
	m := h.manner(id, step)
	x, n, first := h.desk.arrive(id, effect{flow, step, body.Profile, body.Key}, m)
	switch {
	case m == errorEver, m == errorFirst && first:
		w.WriteHeader(http.StatusInternalServerError)
	case m == refuses:
		w.WriteHeader(http.StatusBadRequest)
	case m == hangsFirst && first:
		t := time.NewTimer(10 * hookTimeout)
		defer t.Stop()
		select {
		case <-r.Context().Done():
		case <-t.C:
		}
		panic(http.ErrAbortHandler)
	case m == dropsFirst && first:
		panic(http.ErrAbortHandler)
	default:
		// Noted before it is answered: a server that is killed meanwhile rightly
		// repeats it.
		h.desk.answered(x, n)
		w.WriteHeader(http.StatusOK)
	}
}
