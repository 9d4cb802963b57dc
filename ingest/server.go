package ingest

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/valyala/fasthttp"
)

// NewServer returns a server whose limits fit a [Handler] with the same
// options. handler may route to others as well: a body that they leave unread
// is drained, within bounds, so that the next request of the connection begins
// where it should. Bodies are streamed: a handler that calls
// [fasthttp.RequestCtx.PostBody] reads without a limit and should call
// [ReadBody] instead.
func NewServer(opts Options, handler fasthttp.RequestHandler) *fasthttp.Server {
	opts = opts.withDefaults()
	return &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			handler(ctx)
			drain(ctx, opts.DrainBytes)
		},
		ErrorHandler:       badHTTP,
		Name:               opts.ServerName,
		Concurrency:        opts.Connections,
		ReadBufferSize:     opts.HeaderBytes,
		ReadTimeout:        opts.ReadTimeout,
		WriteTimeout:       opts.WriteTimeout,
		IdleTimeout:        opts.IdleTimeout,
		MaxRequestBodySize: opts.BodyBytes,
		StreamRequestBody:  true,
		TCPKeepalive:       true,
		CloseOnShutdown:    true,
		Logger:             serverLog{opts.Logger},
		// A multipart body would be unpacked into temporary files.
		DisablePreParseMultipartForm: true,
		SecureErrorLogMessage:        true,
	}
}

// ErrBodyTooLarge means that a body is longer than the limit given.
var ErrBodyTooLarge = errors.New("body is too large")

// ReadBody reads a request's body of at most limit bytes into dst[:0] and
// returns it. Of a longer body, at most drainBytes are read and thrown away, so
// that the client gets to read the answer; the error then wraps
// [ErrBodyTooLarge]. It is for handlers beside this package's.
func ReadBody(ctx *fasthttp.RequestCtx, dst []byte, limit, drainBytes int) ([]byte, error) {
	h := Handler{opts: Options{BodyBytes: limit, DrainBytes: drainBytes}}
	w := work{received: dst}
	w.lease.budget = &budget{limit: int64(2*limit + firstRead)}
	body, refused := h.receive(ctx, &w)
	switch {
	case refused == nil:
		return body, nil
	case refused.status == 413:
		return nil, fmt.Errorf("%w: over %d bytes", ErrBodyTooLarge, limit)
	}
	return nil, errors.New(refused.text)
}

// badHTTP answers what is not a proper HTTP request, or came too slowly.
func badHTTP(ctx *fasthttp.RequestCtx, err error) {
	status, text := 400, "the request is not valid HTTP; fix it"
	var small *fasthttp.ErrSmallBuffer
	var timeout net.Error
	switch {
	case errors.As(err, &small):
		status, text = 431, "the head of the request is too long; send fewer or shorter headers"
	case errors.As(err, &timeout) && timeout.Timeout():
		status, text = 408, "the request did not arrive in time; send it again"
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		status, text = 413, "the body is too long; send the events in several requests"
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.Response.SetBody(appendFailure(nil, text))
}

// serverLog carries the server's own messages, about broken connections.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Printf(format string, args ...any) {
	l.log.Debug("http", "message", fmt.Sprintf(format, args...))
}
