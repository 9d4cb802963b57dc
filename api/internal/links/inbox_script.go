package links

import (
	"net/http"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/console"
)

// scriptName is the name of the script that shows in-app messages, below [InAppPath].
const scriptName = "muster-inapp.js"

// inAppScript answers with the script that shows in-app messages on a page.
func (a *API) inAppScript(rc *fasthttp.RequestCtx) {
	if !rc.IsGet() && !rc.IsHead() {
		rc.Response.Header.Set(fasthttp.HeaderAllow, "GET, HEAD")
		handler.WriteProblem(rc, &handler.Problem{Status: http.StatusMethodNotAllowed, Message: "this path takes GET"})
		return
	}
	h := &rc.Response.Header
	h.Set(fasthttp.HeaderCacheControl, "public, max-age=3600")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set(fasthttp.HeaderAccessControlAllowOrigin, "*")
	rc.SetContentType("text/javascript; charset=utf-8")
	rc.SetBody(console.InAppScript())
}
