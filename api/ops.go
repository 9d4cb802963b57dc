package api

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/internal/exposition"
)

// opsOperations are what [Ops] answers by itself.
func opsOperations() operation.Group {
	line := func(status, about, example string) shape.Member {
		var headers shape.Ordered
		if status == "503" {
			headers = shape.Ordered{operation.RetryAfter}
		}
		return shape.Pair(status, operation.Plain(about, "text/plain", example, headers))
	}
	return operation.Group{Surface: operation.SurfacePublic, Tag: "Operations", Title: "Operations", About: "Health, metrics, and this reference.", Operations: []operation.Operation{
		{Method: "GET", Path: "/healthz", ID: "healthz", Summary: "Is the process alive?", Other: shape.Ordered{line("200", "It is.", "alive\n")}},
		{Method: "GET", Path: "/readyz", ID: "readyz", Summary: "May requests be sent here?", Other: shape.Ordered{line("200", "They may.", "ready\n"), line("503", "Starting, stopping, or failed; the text says which.", "starting\n")}},
		{Method: "GET", Path: "/metrics", ID: "metrics", Summary: "Metrics for Prometheus", Other: shape.Ordered{line("200", "In the text format of Prometheus.", "muster_ready 1\n")}},
	}}
}

// Ops answers /healthz, /readyz and /metrics from the moment the service
// listens. Until it is opened every other path is answered 503.
type Ops struct {
	metrics *metrics.Set
	refuse  Refuser
	inner   atomic.Pointer[inner]
	state   atomic.Int32
	loading atomic.Pointer[func() []int]
	opens   sync.Once
	opened  chan struct{} // closed by Open
	held    atomic.Int32  // requests that wait for it
	// patience is startPatience but in tests.
	patience time.Duration
}

const (
	// startPatience is how long a request that comes while the service starts waits for
	// it before it is refused. Clients that try again at once would otherwise take the
	// processor that the start needs.
	startPatience = 500 * time.Millisecond
	// maxHeld bounds the requests that wait; more are refused at once.
	maxHeld = 4096
)

type inner struct {
	handler fasthttp.RequestHandler
	failed  func() error
}

const (
	opsStarting = iota
	opsServing
	opsStopping
)

// Refuser answers a request that comes to no handler in the form of the path that it
// asks for.
type Refuser func(ctx *fasthttp.RequestCtx, path string, status int, text string)

// NewOps returns an Ops whose /metrics writes set and the process's own
// numbers. refuse answers until it is opened; nil does so in the console's form.
func NewOps(set *metrics.Set, refuse Refuser) *Ops {
	if refuse == nil {
		refuse = func(ctx *fasthttp.RequestCtx, _ string, status int, text string) { Refuse(ctx, status, text) }
	}
	return &Ops{metrics: set, refuse: refuse, opened: make(chan struct{}), patience: startPatience}
}

// Open lets requests through to handler. failed says why the service cannot go
// on, nil while it can.
func (o *Ops) Open(handler fasthttp.RequestHandler, failed func() error) {
	o.inner.Store(&inner{handler, failed})
	o.state.Store(opsServing)
	o.opens.Do(func() { close(o.opened) })
}

// await waits for Open for a while, and returns what it opened, nil if it did not.
func (o *Ops) await() *inner {
	defer o.held.Add(-1)
	if o.held.Add(1) <= maxHeld {
		t := time.NewTimer(o.patience)
		defer t.Stop()
		select {
		case <-o.opened:
		case <-t.C:
		}
	}
	return o.inner.Load()
}

// Loading has /readyz tell which partitions of the log are being loaded: a
// service that routes what it does not hold is ready without them.
func (o *Ops) Loading(partitions func() []int) { o.loading.Store(&partitions) }

// Drain makes /readyz answer 503, so that no new requests are sent here. Those
// that come are still answered.
func (o *Ops) Drain() { o.state.Store(opsStopping) }

// Handle answers a request.
func (o *Ops) Handle(ctx *fasthttp.RequestCtx) {
	in := o.inner.Load()
	switch string(ctx.Path()) {
	case "/healthz":
		o.text(ctx, fasthttp.StatusOK, "alive\n")
	case "/readyz":
		status, text := o.ready(in)
		o.text(ctx, status, text)
	case "/metrics":
		if !ctx.IsGet() && !ctx.IsHead() {
			o.refuse(ctx, "/metrics", fasthttp.StatusMethodNotAllowed, "use GET")
			return
		}
		ctx.SetContentType("text/plain; version=0.0.4; charset=utf-8")
		var samples bytes.Buffer
		o.metrics.WritePrometheus(&samples)
		metrics.WriteProcessMetrics(&samples)
		exposition.Write(ctx, samples.Bytes()) //nolint:errcheck // it writes to memory
	default:
		if in == nil {
			in = o.await()
		}
		if in == nil {
			o.refuse(ctx, string(ctx.Path()), fasthttp.StatusServiceUnavailable, "the server is starting; try again in a moment")
			ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "2")
			return
		}
		in.handler(ctx)
	}
}

func (o *Ops) ready(in *inner) (status int, text string) {
	loading := ""
	if f := o.loading.Load(); f != nil {
		if list := (*f)(); len(list) > 0 {
			loading = fmt.Sprintf(", loading partitions %v", list)
		}
	}
	switch {
	case in == nil:
		return fasthttp.StatusServiceUnavailable, "starting" + loading + "\n"
	case in.failed() != nil:
		return fasthttp.StatusServiceUnavailable, fmt.Sprintf("failed: %s\n", in.failed())
	case o.state.Load() == opsStopping:
		return fasthttp.StatusServiceUnavailable, "stopping\n"
	}
	return fasthttp.StatusOK, "ready" + loading + "\n"
}

func (o *Ops) text(ctx *fasthttp.RequestCtx, status int, text string) {
	ctx.SetStatusCode(status)
	ctx.SetContentType("text/plain; charset=utf-8")
	if status == fasthttp.StatusServiceUnavailable {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, "1")
	}
	if status == fasthttp.StatusMethodNotAllowed {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, "GET")
	}
	io.WriteString(ctx, text) //nolint:errcheck // it writes to memory
}

// Refuse answers a request that came to no call in the console's form.
func Refuse(ctx *fasthttp.RequestCtx, status int, message string) {
	handler.WriteProblem(ctx, &handler.Problem{Status: status, Message: message})
}
