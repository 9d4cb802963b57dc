package openapi

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
)

// The page is a few files that load nothing but the document.
//
//go:embed page/index.html page/reference.css page/reference.js
var page embed.FS

// contentPolicy lets the page load its own files and the document, and nothing
// else from anywhere.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Operations lists what Register adds.
func Operations() operation.Group {
	return operation.Group{Surface: operation.SurfacePublic, Tag: "Operations", Title: "Operations", Operations: []operation.Operation{
		{Method: "GET", Path: "/openapi.json", ID: "openapi", Summary: "This document", About: "With an ETag; `If-None-Match` is answered 304.",
			Header: []operation.Parameter{operation.Query("If-None-Match", shape.Text(`"3f9a7c2e"`, "The ETag that is known."))},
			Other: shape.Pairs("200", shape.Pairs("description", "OpenAPI 3.1.", "headers", shape.Ordered{operation.Header("ETag", "Changes with the document.", `"3f9a7c2e"`)}, "content", shape.Pairs("application/json", shape.Pairs("schema", shape.Pairs("type", "object")))),
				"304", operation.Plain("Unchanged.", "", "", nil))},
		{Method: "GET", Path: "/reference", ID: "reference", Summary: "The reference as a page", Other: shape.Pairs("200", operation.Plain("For a browser; it loads nothing from elsewhere.", "text/html", "", nil))},
	}}
}

// Register adds the document of all operations at /openapi.json and the page at
// /reference. The groups are those of the service's other parts.
func Register(r *router.Router, groups []operation.Group) error {
	add := func(path string, h fasthttp.RequestHandler) {
		r.GET(path, h)
		r.HEAD(path, h)
	}
	// Made at the first request: most processes never get one, and a start need not
	// wait for it.
	document := sync.OnceValues(func() (*file, error) {
		b, err := operation.Document(append(slices.Clone(groups), Operations()))
		if err != nil {
			return nil, err
		}
		return newFile("application/json", b), nil
	})
	add("/openapi.json", func(rc *fasthttp.RequestCtx) {
		f, err := document()
		if err != nil { // a fault of a description, which tests find
			rc.Error("the document cannot be made: "+err.Error(), fasthttp.StatusInternalServerError)
			return
		}
		f.serve(rc)
	})
	for _, f := range []struct{ path, file, media string }{
		{"/reference", "index.html", "text/html; charset=utf-8"},
		{"/reference/reference.css", "reference.css", "text/css; charset=utf-8"},
		{"/reference/reference.js", "reference.js", "text/javascript; charset=utf-8"},
	} {
		body, err := page.ReadFile("page/" + f.file)
		if err != nil {
			return fmt.Errorf("openapi: %w", err)
		}
		add(f.path, newFile(f.media, body).serve)
	}
	return nil
}

// file is a body that never changes while the process runs. Clients may keep it,
// and ask each time whether it is the same.
type file struct {
	media string
	body  []byte
	tag   string // the ETag, with its quotes
}

func newFile(media string, body []byte) *file {
	sum := sha256.Sum256(body)
	return &file{media: media, body: body, tag: `"` + hex.EncodeToString(sum[:16]) + `"`}
}

func (f *file) serve(rc *fasthttp.RequestCtx) {
	h := &rc.Response.Header
	h.Set(fasthttp.HeaderETag, f.tag)
	h.Set(fasthttp.HeaderCacheControl, "no-cache")
	h.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	if strings.HasPrefix(f.media, "text/html") {
		h.Set(fasthttp.HeaderContentSecurityPolicy, contentPolicy)
		h.Set("Referrer-Policy", "no-referrer")
	}
	if known(string(rc.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), f.tag) {
		rc.SetStatusCode(fasthttp.StatusNotModified)
		return
	}
	rc.SetContentType(f.media)
	rc.Response.SetBodyRaw(f.body)
}

// known reports whether the header If-None-Match names the tag. Tags are compared
// weakly, as the header demands.
func known(header, tag string) bool {
	for _, t := range strings.Split(header, ",") {
		if t = strings.TrimPrefix(strings.TrimSpace(t), "W/"); t == tag || t == "*" {
			return true
		}
	}
	return false
}
