package trackingapi

import (
	"github.com/valyala/fasthttp"
)

// allowedHeaders are those that SDKs in browsers send.
const allowedHeaders = "authorization, content-type, content-encoding, x-retry-count, anonymousid"

// preflight answers OPTIONS: a browser asks before it sends. The question does not carry the
// write key, so that the answer cannot depend on the source; the call itself does.
func preflight(ctx *fasthttp.RequestCtx) {
	header := &ctx.Response.Header
	if origin := ctx.Request.Header.Peek(fasthttp.HeaderOrigin); len(origin) > 0 {
		header.SetBytesV(fasthttp.HeaderAccessControlAllowOrigin, origin)
		header.Set(fasthttp.HeaderAccessControlAllowMethods, "GET, POST, OPTIONS")
		header.Set(fasthttp.HeaderAccessControlAllowHeaders, allowedHeaders)
		header.Set(fasthttp.HeaderAccessControlMaxAge, "86400")
	}
	header.Set(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
	ctx.SetStatusCode(fasthttp.StatusNoContent)
}

// shareWith lets a page read the answer.
func shareWith(ctx *fasthttp.RequestCtx, origin []byte) {
	if len(origin) > 0 {
		ctx.Response.Header.SetBytesV(fasthttp.HeaderAccessControlAllowOrigin, origin)
		ctx.Response.Header.Set(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
	}
}
