package refusal

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
)

// Header names a request, in the answer alone.
const Header = "X-Request-Id"

// statusMisdirected is what a node answers another that asks it by mistake, and no
// client.
const statusMisdirected = 421

// Watcher counts and logs. Its methods may be called from any goroutine.
type Watcher struct {
	counters [len(surfaces)][]*metrics.Counter // by reason
	lines    []throttle                        // by reason
	log      *slog.Logger
	now      func() time.Time
	prefix   string // of this process's ids
	number   atomic.Uint64
}

// New returns a watcher that counts in set. The error is that of rand, which makes
// ids of different processes differ.
func New(set *metrics.Set, log *slog.Logger, now func() time.Time, rand io.Reader) (*Watcher, error) {
	var b [8]byte
	if _, err := io.ReadFull(rand, b[:]); err != nil {
		return nil, fmt.Errorf("ids of requests: source of randomness: %w", err)
	}
	w := &Watcher{log: log, now: now, prefix: "req_" + hex.EncodeToString(b[:]), lines: make([]throttle, len(reasons))}
	for i, surface := range surfaces {
		for _, r := range reasons {
			w.counters[i] = append(w.counters[i], set.NewCounter(fmt.Sprintf(`muster_requests_refused_total{surface=%q,reason=%q}`, surface, r.name)))
		}
	}
	return w, nil
}

// Watch returns a handler that calls next and then [Watcher.Answered].
func (w *Watcher) Watch(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(rc *fasthttp.RequestCtx) {
		next(rc)
		w.Answered(rc)
	}
}

// Answered looks at an answer. A request that was refused is counted, once, and the
// answer gets its id. Of one that was not, nothing but the status and the mark are
// looked at.
func (w *Watcher) Answered(rc *fasthttp.RequestCtx) {
	r, marked := rc.UserValue(mark{}).(*Reason)
	status := rc.Response.StatusCode()
	if !marked && status < 400 || status == statusMisdirected {
		return
	}
	id := string(rc.Response.Header.Peek(Header))
	if id != "" && !marked {
		return // it was counted where it was refused, on this node or on another
	}
	if !marked {
		r = ofStatus(status)
	}
	surface := surfaceOf(rc.Path())
	if surface < 0 {
		return
	}
	if id == "" {
		id = w.nextID()
		rc.Response.Header.Set(Header, id)
	}
	rc.RemoveUserValue(mark{})
	w.counters[surface][r.at].Inc()
	if before, ok := w.lines[r.at].take(w.now()); ok {
		level := slog.LevelInfo
		if r.ours {
			level = slog.LevelWarn
		}
		w.log.Log(context.Background(), level, "request refused", "request", id, "surface", surfaces[surface], "reason", r.name, "status", status, "not_logged", before)
	}
}

// nextID is the prefix and a number of eight digits or more, hexadecimal.
func (w *Watcher) nextID() string {
	n := strconv.FormatUint(w.number.Add(1), 16)
	return w.prefix + "00000000"[min(len(n), 8):] + n
}
