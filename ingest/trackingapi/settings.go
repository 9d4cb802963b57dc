package trackingapi

import (
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/internal/refusal"
)

// settings answers analytics.js, which asks what it is to do before it sends anything: to
// send everything here. A page then needs AnalyticsBrowser.load({writeKey, cdnURL}) alone.
func (h *Handler) settings(ctx *fasthttp.RequestCtx, key string) {
	origin := ctx.Request.Header.Peek(fasthttp.HeaderOrigin)
	if ctx.IsOptions() {
		preflight(ctx)
		return
	}
	f := errGetOnly
	if ctx.IsGet() || ctx.IsHead() {
		source, bad := h.authenticate(key)
		if f = bad; f == nil && len(origin) > 0 && source.Public && !source.OriginAllowed(string(origin)) {
			f = errOrigin
		}
		if f == nil {
			shareWith(ctx, origin)
			ctx.SetContentType("application/json")
			ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-cache")
			ctx.Response.SetBody(h.settingsOf(ctx, key))
			return
		}
	}
	shareWith(ctx, origin) // so that the page learns why
	refusal.MarkStatus(ctx, f.status)
	if f == errGetOnly {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, "GET, HEAD, OPTIONS")
	}
	h.writeFailure(ctx, f)
}

func (h *Handler) settingsOf(ctx *fasthttp.RequestCtx, key string) []byte {
	protocol := "http"
	if h.opts.Secure(ctx) {
		protocol = "https"
	}
	host := ctx.Request.Header.Peek("X-Forwarded-Host")
	if len(host) == 0 {
		host = ctx.Host()
	}
	b := append([]byte(nil), `{"integrations":{"Segment.io":{"apiKey":`...)
	b = jsonscan.AppendQuoted(b, []byte(key))
	b = append(b, `,"apiHost":`...)
	b = jsonscan.AppendQuoted(b, append(append([]byte(nil), host...), "/v1"...))
	b = append(b, `,"protocol":"`...)
	b = append(b, protocol...)
	return append(b, `","unbundledIntegrations":[],"addBundledMetadata":true,"maybeBundledConfigIds":{},"versionSettings":{"version":"4.4.7","componentTypes":["browser"]}}},`+
		`"plan":{"track":{"__default":{"enabled":true,"integrations":{}}},"identify":{"__default":{"enabled":true}},"group":{"__default":{"enabled":true}}},`+
		`"edgeFunction":{},"analyticsNextEnabled":true,"middlewareSettings":{},"enabledMiddleware":{},"metrics":{"sampleRate":0},"legacyVideoPluginsEnabled":false,"remotePlugins":[]}`...)
}
