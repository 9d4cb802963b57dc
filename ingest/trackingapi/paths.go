package trackingapi

import (
	"strings"

	"github.com/valyala/fasthttp"
)

// SDKs differ in what they take a path for.
type dialect int

const (
	segmentDialect dialect = iota
	posthogDialect
)

// endpoint is what a path means.
type endpoint struct {
	call    Call // callOfBody where the body says it
	dialect dialect
	// metrics says that the body is figures of the SDK itself, which are dropped.
	metrics bool
}

// endpoints are the paths that take POST. Those of one letter are analytics.js's: the first
// letter of the call, b for a batch and m for its own figures.
var endpoints = map[string]endpoint{
	"/v1/batch": {call: callOfBody}, "/v1/b": {call: callOfBody}, "/batch": {call: callOfBody}, "/b": {call: callOfBody}, "/v1/import": {call: callOfBody},
	"/v1/track": {call: CallTrack}, "/v1/t": {call: CallTrack},
	"/v1/identify": {call: CallIdentify}, "/v1/i": {call: CallIdentify},
	"/v1/page": {call: CallPage}, "/v1/p": {call: CallPage},
	"/v1/screen": {call: CallScreen}, "/v1/s": {call: CallScreen},
	"/v1/group": {call: CallGroup}, "/v1/g": {call: CallGroup},
	"/v1/alias": {call: CallAlias}, "/v1/a": {call: CallAlias},
	"/v1/merge": {call: CallMerge},
	"/v1/m":     {metrics: true},
	"/batch/":   {call: callOfBody, dialect: posthogDialect}, "/capture": {call: callOfBody, dialect: posthogDialect}, "/capture/": {call: callOfBody, dialect: posthogDialect},
	"/i/v0/e": {call: callOfBody, dialect: posthogDialect}, "/i/v0/e/": {call: callOfBody, dialect: posthogDialect}, "/e": {call: callOfBody, dialect: posthogDialect}, "/e/": {call: callOfBody, dialect: posthogDialect},
}

// Is reports whether a path is one of the tracking API.
func Is(path []byte) bool {
	if _, ok := endpoints[string(path)]; ok {
		return true
	}
	_, ok := settingsKey(string(path))
	return ok
}

// settingsKey is the write key in the path of settings.
func settingsKey(path string) (key string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1/projects/")
	if !ok {
		return "", false
	}
	key, ok = strings.CutSuffix(rest, "/settings")
	return key, ok && key != "" && !strings.Contains(key, "/")
}

// Before answers the paths of the tracking API and hands on all others. It stands before a
// router, since to that a path is the same with a slash at its end, as PostHog's have it.
// The handlers answer other methods themselves.
func (h *Handler) Before(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		if e, ok := endpoints[string(ctx.Path())]; ok { // not copied: events come often
			h.serve(ctx, e)
			return
		}
		if key, ok := settingsKey(string(ctx.Path())); ok {
			h.settings(ctx, key)
			return
		}
		next(ctx)
	}
}
