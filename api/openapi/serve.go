package openapi

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

// The page is a few files that load nothing but the document.
//
//go:embed page/index.html page/reference.css page/reference.js
var page embed.FS

// contentPolicy lets the page load its own files and the document, and nothing
// else from anywhere.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Register adds the document at /openapi.json and the page at /reference.
func Register(r *router.Router) error {
	document, err := Document()
	if err != nil {
		return fmt.Errorf("openapi: %w", err)
	}
	add := func(path, media string, body []byte) {
		h := serve(media, body)
		r.GET(path, h)
		r.HEAD(path, h)
	}
	add("/openapi.json", "application/json", document)
	for _, f := range []struct{ path, file, media string }{
		{"/reference", "index.html", "text/html; charset=utf-8"},
		{"/reference/reference.css", "reference.css", "text/css; charset=utf-8"},
		{"/reference/reference.js", "reference.js", "text/javascript; charset=utf-8"},
	} {
		body, err := page.ReadFile("page/" + f.file)
		if err != nil {
			return fmt.Errorf("openapi: %w", err)
		}
		add(f.path, f.media, body)
	}
	return nil
}

// serve answers with a body that never changes while the process lives. Clients
// may keep it, and ask each time whether it is the same.
func serve(media string, body []byte) fasthttp.RequestHandler {
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return func(rc *fasthttp.RequestCtx) {
		h := &rc.Response.Header
		h.Set(fasthttp.HeaderETag, tag)
		h.Set(fasthttp.HeaderCacheControl, "no-cache")
		h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
		if strings.HasPrefix(media, "text/html") {
			h.Set(fasthttp.HeaderContentSecurityPolicy, contentPolicy)
			h.Set("Referrer-Policy", "no-referrer")
		}
		if known(string(rc.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), tag) {
			rc.SetStatusCode(fasthttp.StatusNotModified)
			return
		}
		rc.SetContentType(media)
		rc.Response.SetBodyRaw(body)
	}
}

// known tells whether the header If-None-Match names the tag. Tags are compared
// weakly, as the header demands.
func known(header, tag string) bool {
	for _, t := range strings.Split(header, ",") {
		if t = strings.TrimPrefix(strings.TrimSpace(t), "W/"); t == tag || t == "*" {
			return true
		}
	}
	return false
}
