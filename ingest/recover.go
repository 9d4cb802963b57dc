package ingest

import (
	"errors"
	"io"
	"log/slog"
	"strings"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/panics"
)

const textPanic = "the server failed to answer the request; its log says why"

// recovering calls a handler. If that panics the request is answered 500 and its
// connection closed; the server continues.
func recovering(opts Options, handler fasthttp.RequestHandler) fasthttp.RequestHandler {
	opts.Metrics.GetOrCreateCounter(panics.Metric)
	return func(ctx *fasthttp.RequestCtx) {
		defer func() {
			if r := recover(); r != nil {
				path := string(ctx.Path())
				panics.Report(opts.Metrics, opts.Logger, string(ctx.Method())+" "+withoutValues(path), r)
				ctx.Response.Reset()
				opts.Refuse(ctx, path, fasthttp.StatusInternalServerError, textPanic)
				ctx.SetConnectionClose() // the body may not be read to its end
			}
		}()
		handler(ctx)
	}
}

// withoutValues cuts a path behind the name of what it is about, since what follows may
// be an id, an e-mail or a token.
func withoutValues(path string) string {
	keep := 1
	for prefix, parts := range map[string]int{"/console/api/v1/": 4, "/api/v1/": 3, "/v1/": 2} {
		if strings.HasPrefix(path, prefix) {
			keep = parts
		}
	}
	for i := range path {
		if path[i] != '/' || i == 0 {
			continue
		}
		if keep--; keep == 0 {
			return path[:i] + "/…"
		}
	}
	return path
}

// GuardStream returns a body for an answer which is read after its handler has
// returned. If reading it panics, that is reported and the answer breaks off.
func GuardStream(set *metrics.Set, log *slog.Logger, where string, body io.ReadCloser) io.ReadCloser {
	return &guardedStream{body, set, log, where}
}

type guardedStream struct {
	io.ReadCloser
	set   *metrics.Set
	log   *slog.Logger
	where string
}

// errStreamPanicked ends an answer whose body panicked.
var errStreamPanicked = errors.New("the body of an answer panicked")

// Read implements [io.Reader].
func (g *guardedStream) Read(p []byte) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			panics.Report(g.set, g.log, g.where, r)
			n, err = 0, errStreamPanicked
		}
	}()
	return g.ReadCloser.Read(p)
}
