package webhook

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrFull says that too many turns wait; try again when some have ended.
var ErrFull = errors.New("too many deliveries wait")

// ErrClosed says that the Limiter is closed.
var ErrClosed = errors.New("limiter is closed")

// LimiterOptions bound a Limiter. Zero means the default.
type LimiterOptions struct {
	// Global is how many turns run at once: 256 by default.
	Global int
	// PerEndpoint is how many turns of one endpoint run at once: 1 by default, with which
	// deliveries also end in order. With more they start in order.
	PerEndpoint int
	// MaxWaiting is how many turns wait over all endpoints: 65,536 by default.
	MaxWaiting int
	// MaxWaitingPerEndpoint keeps a slow endpoint from taking all places: 1,024 by default.
	MaxWaitingPerEndpoint int
}

// Validate says what is wrong with the options.
func (o LimiterOptions) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"Global", o.Global}, {"PerEndpoint", o.PerEndpoint}, {"MaxWaiting", o.MaxWaiting}, {"MaxWaitingPerEndpoint", o.MaxWaitingPerEndpoint}} {
		if f.value < 0 {
			return fmt.Errorf("webhook: LimiterOptions.%s is %d; give a positive number, or 0 for the default", f.name, f.value)
		}
	}
	return nil
}

// Limiter gives turns to deliveries: those of one endpoint in order of their
// reservation and a few at a time, endpoints by turns, so that an endpoint with
// a long line or slow answers takes no more than its share (W3).
//
// Reserve takes the place in line and does not wait, so that one goroutine can
// fix the order of many deliveries; each delivery then waits for its turn.
type Limiter struct {
	opts LimiterOptions

	mu struct {
		sync.Mutex
		lines   map[string]*line
		ready   list.List // of *line: with somebody waiting and room for one more
		running int
		waiting int
		full    uint64
		closed  bool
	}
}

// line is what is known of one endpoint while it has turns. Guarded by Limiter.mu.
type line struct {
	endpoint string
	waiting  list.List     // of *Turn
	inReady  *list.Element // nil when not in ready
	running  int
}

// Turn is a place in line, then the right to deliver. Release must be called once
// it is no longer needed, also when Wait failed; more than once is harmless.
type Turn struct {
	l       *Limiter
	line    *line
	granted chan struct{} // closed when granted, or when the Limiter closes

	// Guarded by Limiter.mu.
	waiting *list.Element // nil once granted or given up
	running bool
	closed  bool
}

// NewLimiter makes a Limiter.
func NewLimiter(opts LimiterOptions) (*Limiter, error) {
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	set := func(v *int, def int) {
		if *v == 0 {
			*v = def
		}
	}
	set(&opts.Global, 256)
	set(&opts.PerEndpoint, 1)
	set(&opts.MaxWaiting, 1<<16)
	set(&opts.MaxWaitingPerEndpoint, 1024)
	l := &Limiter{opts: opts}
	l.mu.lines = make(map[string]*line)
	return l, nil
}

// Reserve takes a place in the endpoint's line, or fails with ErrFull or ErrClosed.
func (l *Limiter) Reserve(endpoint string) (*Turn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return nil, fmt.Errorf("webhook: %w", ErrClosed)
	}
	ln := l.mu.lines[endpoint]
	if l.mu.waiting >= l.opts.MaxWaiting || ln != nil && ln.waiting.Len() >= l.opts.MaxWaitingPerEndpoint {
		l.mu.full++
		return nil, fmt.Errorf("webhook: %w", ErrFull)
	}
	if ln == nil {
		ln = &line{endpoint: endpoint}
		l.mu.lines[endpoint] = ln
	}
	t := &Turn{l: l, line: ln, granted: make(chan struct{})}
	t.waiting = ln.waiting.PushBack(t)
	l.mu.waiting++
	l.settle(ln)
	l.grant()
	return t, nil
}

// Acquire is Reserve and Wait in one. After an error there is nothing to release.
func (l *Limiter) Acquire(ctx context.Context, endpoint string) (*Turn, error) {
	t, err := l.Reserve(endpoint)
	if err != nil {
		return nil, err
	}
	if err := t.Wait(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// Wait waits for the turn. When it fails, the place is given up.
func (t *Turn) Wait(ctx context.Context) error {
	select {
	case <-t.granted:
	default:
		select {
		case <-t.granted:
		case <-ctx.Done():
			t.Release()
			return fmt.Errorf("webhook: waiting for a turn: %w", ctx.Err())
		}
	}
	t.l.mu.Lock()
	closed := t.closed
	t.l.mu.Unlock()
	if closed {
		return fmt.Errorf("webhook: waiting for a turn: %w", ErrClosed)
	}
	return nil
}

// Release ends the turn, or gives up the place in line.
func (t *Turn) Release() {
	l := t.l
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case t.waiting != nil:
		t.line.waiting.Remove(t.waiting)
		t.waiting = nil
		l.mu.waiting--
	case t.running:
		t.running = false
		t.line.running--
		l.mu.running--
	default:
		return
	}
	l.settle(t.line)
	l.grant()
}

// settle puts a line where it belongs: into ready, out of it, or away.
func (l *Limiter) settle(ln *line) {
	able := ln.waiting.Len() > 0 && ln.running < l.opts.PerEndpoint
	switch {
	case able && ln.inReady == nil:
		ln.inReady = l.mu.ready.PushBack(ln)
	case !able && ln.inReady != nil:
		l.mu.ready.Remove(ln.inReady)
		ln.inReady = nil
	}
	if ln.waiting.Len() == 0 && ln.running == 0 {
		delete(l.mu.lines, ln.endpoint)
	}
}

// grant gives turns while there is room, one line after the other.
func (l *Limiter) grant() {
	for l.mu.running < l.opts.Global {
		front := l.mu.ready.Front()
		if front == nil {
			return
		}
		ln := l.mu.ready.Remove(front).(*line)
		ln.inReady = nil
		t := ln.waiting.Remove(ln.waiting.Front()).(*Turn)
		t.waiting = nil
		t.running = true
		ln.running++
		l.mu.running++
		l.mu.waiting--
		close(t.granted)
		l.settle(ln)
	}
}

// LimiterStats are gauges and a counter.
type LimiterStats struct {
	Running   int
	Waiting   int
	Endpoints int    // with turns that wait or run
	Full      uint64 // reservations refused with ErrFull
}

// Stats reads the Limiter's figures.
func (l *Limiter) Stats() LimiterStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return LimiterStats{Running: l.mu.running, Waiting: l.mu.waiting, Endpoints: len(l.mu.lines), Full: l.mu.full}
}

// Close wakes everyone who waits with ErrClosed and refuses new turns. Those that
// run go on until they are released.
func (l *Limiter) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.closed = true
	for _, ln := range l.mu.lines {
		for e := ln.waiting.Front(); e != nil; e = ln.waiting.Front() {
			t := ln.waiting.Remove(e).(*Turn)
			t.waiting = nil
			t.closed = true
			l.mu.waiting--
			close(t.granted)
		}
		l.settle(ln)
	}
}
