package main

import (
	"crypto/rand"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/keyapi"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/ingest/trackingapi"
	"github.com/musterhq/muster/internal/refusal"
)

// refuseWatched is refuse for requests that come to no handler at all, so that w does
// not see them otherwise.
func refuseWatched(w *refusal.Watcher) func(ctx *fasthttp.RequestCtx, path string, status int, text string) {
	return func(ctx *fasthttp.RequestCtx, path string, status int, text string) {
		refuse(ctx, path, status, text)
		w.Answered(ctx)
	}
}

// refuse answers what is not a proper HTTP request in the form of the surface that
// it asks for, in plain text where that is not known.
func refuse(ctx *fasthttp.RequestCtx, path string, status int, text string) {
	refusal.MarkStatus(ctx, status)
	below := func(prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }
	switch {
	case below("/api/v1/events") && !below("/api/v1/events/live"): // which is by API key
		ingest.Refuse(ctx, status, text)
	case trackingapi.Is([]byte(path)):
		trackingapi.Refuse(ctx, status, text)
	case below("/api/v1"):
		keyapi.RefuseA(ctx, status, text)
	case below("/v1"):
		keyapi.RefuseC(ctx, rand.Reader, status, text)
	case below(api.Prefix):
		api.Refuse(ctx, status, text)
	default:
		ctx.SetStatusCode(status)
		ctx.SetContentType("text/plain; charset=utf-8")
		ctx.SetBodyString(text + "\n")
	}
}
