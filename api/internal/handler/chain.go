package handler

import (
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

// Options configure a [Chain]. All must be set.
type Options struct {
	Node *node.Node
	// Now is the wall clock, Rand the source of tokens and secrets.
	Now  func() time.Time
	Rand io.Reader
	// Metrics counts answers by call and status. Logger takes faults of the service itself.
	Metrics *metrics.Set
	Logger  *slog.Logger
	// Memory is what bodies and large answers are taken from, PublicMemory the part of it
	// for callers without a session.
	Memory, PublicMemory *ingest.Memory
	// BodyBytes is the longest body of a request.
	BodyBytes int
	// ReadTimeout bounds a call whose operation has no other time.
	ReadTimeout time.Duration
	// Heartbeat is the pause between the signs of life of a stream.
	Heartbeat time.Duration
}

// Chain is what every call goes through: session, permission, body, handler, envelope.
type Chain struct {
	opts    Options
	stop    chan struct{} // closed when the service stops: streams end
	stopped sync.Once
}

// NewChain returns a chain with these options.
func NewChain(opts Options) *Chain { return &Chain{opts: opts, stop: make(chan struct{})} }

// Close ends streams. Calls under way are answered.
func (h *Chain) Close() { h.stopped.Do(func() { close(h.stop) }) }

// Instant is when a question to a state is asked: every event of the state has
// happened by then, whatever the clock says.
func (h *Chain) Instant(v *resolver.View) int64 {
	return max(h.opts.Now().UnixMilli(), v.LogTimeMs())
}
