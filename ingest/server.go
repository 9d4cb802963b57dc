package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/panics"
)

// Server is an HTTP server that hands on only what is properly framed, bounds its
// connections, and continues after a panic of a handler.
type Server struct {
	*fasthttp.Server
	opts     Options
	counters *connCounters

	mu struct {
		sync.Mutex
		listeners []*listener
		down      bool
	}
}

// NewServer returns a server whose limits fit a [Handler] with the same
// options. handler may route to others as well: a body that they leave unread
// is drained, within bounds, so that the next request of the connection begins
// where it should. Bodies are streamed: a handler that calls
// [fasthttp.RequestCtx.PostBody] reads without a limit and should call
// [ReadBody] instead.
func NewServer(opts Options, handler fasthttp.RequestHandler) *Server {
	opts = opts.withDefaults()
	handler = recovering(opts, handler)
	s := &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			if longHead(&ctx.Request.Header, opts.HeaderBytes) && (opts.Internal == nil || !opts.Internal(ctx)) {
				opts.Refuse(ctx, string(ctx.Path()), 431, textLongHead)
				ctx.SetConnectionClose() // as where the head does not even fit
			} else {
				handler(ctx)
			}
			drain(ctx, opts.DrainBytes, opts.DrainTime)
		},
		ErrorHandler: func(ctx *fasthttp.RequestCtx, err error) { badHTTP(ctx, err, opts.Refuse) },
		Name:         opts.ServerName,
		// The listener bounds connections; the library would hold up all others while
		// it turns one away.
		Concurrency:        2*opts.Connections + 1,
		ReadBufferSize:     opts.HeaderBytes + opts.HeaderRoom,
		ReadTimeout:        opts.HeadTimeout,
		WriteTimeout:       opts.WriteTimeout,
		IdleTimeout:        opts.IdleTimeout,
		MaxRequestBodySize: opts.BodyBytes,
		StreamRequestBody:  true,
		CloseOnShutdown:    true,
		Logger:             serverLog{opts.Logger, opts.Metrics},
		// A multipart body would be unpacked into temporary files.
		DisablePreParseMultipartForm: true,
		SecureErrorLogMessage:        true,
	}
	return &Server{Server: s, opts: opts, counters: newConnCounters(opts.Metrics)}
}

// Serve serves the connections of ln until the server is shut down, and none if it was shut
// down before. ln may be one of TLS.
func (s *Server) Serve(ln net.Listener) error {
	l := newListener(ln, s.opts, s.counters)
	s.mu.Lock()
	s.mu.listeners = append(s.mu.listeners, l)
	down := s.mu.down
	s.mu.Unlock()
	if down {
		return l.Close()
	}
	return s.Server.Serve(l)
}

// Shutdown is [Server.ShutdownWithContext] without an end.
func (s *Server) Shutdown() error { return s.ShutdownWithContext(context.Background()) }

// ShutdownWithContext ends [Server.Serve], also where it is only about to begin, and waits until
// the requests under way are answered, at most until ctx is done.
func (s *Server) ShutdownWithContext(ctx context.Context) error {
	s.mu.Lock()
	s.mu.down = true
	listeners := s.mu.listeners
	s.mu.Unlock()
	var err error
	for _, l := range listeners {
		// The library knows only those that it has begun to serve.
		err = errors.Join(err, l.Close())
	}
	return errors.Join(err, s.Server.ShutdownWithContext(ctx))
}

var (
	// ErrBodyTooLarge means that a body is longer than the limit given.
	ErrBodyTooLarge = errors.New("body is too large")
	// ErrNoMemory means that the requests under way take all memory there is; the
	// answer is 503 with Retry-After.
	ErrNoMemory = errors.New(errNoMemory.text)
)

// readBodyTime is the longest that a body of a handler beside this package's may
// take to come.
const readBodyTime = time.Minute

// ReadBody reads a request's body of at most limit bytes. Its bytes, and room for
// what is made of them, are taken from memory until the answer is written. What
// is left of a body that is refused, the server drains. The error wraps
// [ErrBodyTooLarge] or [ErrNoMemory], or says what is wrong with the body. It is
// for handlers beside this package's.
func ReadBody(ctx *fasthttp.RequestCtx, memory *Memory, limit int) ([]byte, error) {
	body, err := ReceiveBody(ctx, memory, limit)
	if err == nil && !memory.Hold(ctx, len(body)) {
		return nil, ErrNoMemory
	}
	return body, err
}

// ReceiveBody is ReadBody for a body of which nothing is made: it is taken from
// memory once.
func ReceiveBody(ctx *fasthttp.RequestCtx, memory *Memory, limit int) ([]byte, error) {
	body, refused := receive(ctx, nil, limit, leaseOf(ctx, memory), readBodyTime)
	switch refused {
	case nil:
		return body, nil
	case errTooLarge:
		return nil, fmt.Errorf("%w: over %d bytes", ErrBodyTooLarge, limit)
	case errNoMemory:
		return nil, ErrNoMemory
	}
	return nil, &bodyError{refused}
}

// badHTTP answers what is not a proper HTTP request, or came too slowly.
func badHTTP(ctx *fasthttp.RequestCtx, err error, refuse func(ctx *fasthttp.RequestCtx, path string, status int, text string)) {
	status, text := 400, "the request is not valid HTTP; fix it"
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	switch {
	case errors.As(err, &small):
		status, text = 431, textLongHead
	case errors.As(err, &timeout) && timeout.Timeout():
		status, text = 408, "the request did not arrive in time; send it again"
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		status, text = 413, "the body is too long; send less"
	}
	// The library knows the address when the whole head was in order.
	if uri := ctx.Request.Header.RequestURI(); len(uri) > 1 {
		path, _, _ := strings.Cut(string(uri), "?")
		refuse(ctx, path, status, text)
		return
	}
	path := ""
	if c := connOf(ctx); c != nil {
		path = c.framing.path()
	}
	refuse(ctx, path, status, text)
	ctx.SetStatusCode(status) // whatever the form: to proxies it is no answer of the surface
}

// serverLog carries the server's own messages, about broken connections.
type serverLog struct {
	log     *slog.Logger
	metrics *metrics.Set
}

func (l serverLog) Printf(format string, args ...any) {
	for _, arg := range args {
		if err, ok := arg.(error); ok && errors.As(err, new(*fasthttp.ErrBodyStreamWritePanic)) {
			panics.Report(l.metrics, l.log, "the body of an answer", err)
			return
		}
	}
	l.log.Debug("http", "message", fmt.Sprintf(format, args...))
}
