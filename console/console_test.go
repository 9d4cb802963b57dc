package console

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// page is a router with a small page, an operation of the API, and its own NotFound.
func page(t *testing.T, tree fstest.MapFS) *router.Router {
	t.Helper()
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS, r.HandleMethodNotAllowed = false, false, false, true
	r.NotFound = func(rc *fasthttp.RequestCtx) { rc.Error("nothing here", 404) }
	r.POST("/console/api/v1/app-secret", func(rc *fasthttp.RequestCtx) { rc.SetBodyString("secret") })
	ok(t, register(r, tree))
	return r
}

func small() fstest.MapFS {
	return fstest.MapFS{
		"index.html":      {Data: []byte("<!doctype html><title>Muster</title>" + strings.Repeat(" ", 2000))},
		"assets/main.js":  {Data: []byte(strings.Repeat("let a = 1;\n", 500))},
		"assets/logo.png": {Data: []byte("\x89PNG")},
		".gitkeep":        {},
	}
}

func ask(r *router.Router, method, path string, headers ...string) *fasthttp.Response {
	var rc fasthttp.RequestCtx
	rc.Request.Header.SetMethod(method)
	rc.Request.SetRequestURI(path)
	for i := 0; i < len(headers); i += 2 {
		rc.Request.Header.Set(headers[i], headers[i+1])
	}
	r.Handler(&rc)
	out := &fasthttp.Response{}
	rc.Response.CopyTo(out)
	return out
}

func TestScreensAnswerTheDocument(t *testing.T) {
	r := page(t, small())
	for _, path := range []string{"/console", "/console/", "/console/segments", "/console/segments/seg_1/edit", "/console/apiary"} {
		res := ask(r, "GET", path)
		if res.StatusCode() != 200 || !bytes.HasPrefix(res.Body(), []byte("<!doctype html>")) || string(res.Header.ContentType()) != "text/html; charset=utf-8" {
			t.Errorf("%s: %d %q", path, res.StatusCode(), res.Header.ContentType())
		}
	}
	for _, path := range []string{"/console/api", "/console/api/v1/none", "/console/assets/none.js", "/console/old.html", "/consoles", "/segments"} {
		if res := ask(r, "GET", path); res.StatusCode() != 404 {
			t.Errorf("%s: %d, want 404", path, res.StatusCode())
		}
	}
	if res := ask(r, "POST", "/console/segments"); res.StatusCode() != 404 {
		t.Errorf("POST of a screen: %d", res.StatusCode())
	}
	// That a path of the API takes another method is still said.
	if res := ask(r, "GET", "/console/api/v1/app-secret"); res.StatusCode() != 405 {
		t.Errorf("GET of a path that takes POST: %d, want 405", res.StatusCode())
	}
	if res := ask(r, "GET", "/"); res.StatusCode() != 302 || string(res.Header.Peek("Location")) != "/console" {
		t.Errorf("/: %d to %q", res.StatusCode(), res.Header.Peek("Location"))
	}
}

func TestFilesAreCompressedAndKept(t *testing.T) {
	r := page(t, small())
	plain := ask(r, "GET", "/console/assets/main.js")
	zipped := ask(r, "GET", "/console/assets/main.js", "Accept-Encoding", "br, gzip")
	if string(zipped.Header.Peek("Content-Encoding")) != "gzip" || len(zipped.Body())*4 > len(plain.Body()) || string(zipped.Header.Peek("Vary")) != "Accept-Encoding" {
		t.Errorf("%d bytes compressed to %d; headers %s", len(plain.Body()), len(zipped.Body()), &zipped.Header)
	}
	z, err := gzip.NewReader(bytes.NewReader(zipped.Body()))
	ok(t, err)
	b, err := io.ReadAll(z)
	ok(t, err)
	if !bytes.Equal(b, plain.Body()) {
		t.Error("the compressed body is another")
	}
	tag, zippedTag := string(plain.Header.Peek("ETag")), string(zipped.Header.Peek("ETag"))
	if tag == "" || tag == zippedTag {
		t.Errorf("tags %s and %s", tag, zippedTag)
	}
	res := ask(r, "GET", "/console/assets/main.js", "If-None-Match", `"x", W/`+tag)
	if res.StatusCode() != 304 || len(res.Body()) > 0 {
		t.Errorf("unchanged: %d with %d bytes", res.StatusCode(), len(res.Body()))
	}
	if res := ask(r, "GET", "/console/assets/main.js", "If-None-Match", `"x"`); res.StatusCode() != 200 {
		t.Errorf("changed: %d", res.StatusCode())
	}
	if res := ask(r, "GET", "/console/assets/logo.png", "Accept-Encoding", "gzip"); len(res.Header.Peek("Content-Encoding")) > 0 || string(res.Header.ContentType()) != "image/png" {
		t.Errorf("a picture: %s", &res.Header)
	}
}

func TestHeadersForbidOtherHosts(t *testing.T) {
	r := page(t, small())
	for _, path := range []string{"/console", "/console/segments", "/console/assets/main.js"} {
		h := &ask(r, "GET", path).Header
		policy := string(h.Peek("Content-Security-Policy"))
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self';", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy lacks %s: %s", path, part, policy)
			}
		}
		if strings.Contains(policy, "http") || string(h.Peek("X-Content-Type-Options")) != "nosniff" || string(h.Peek("Referrer-Policy")) != "no-referrer" || string(h.Peek("Cache-Control")) != "no-cache" {
			t.Errorf("%s: %s", path, h)
		}
	}
}

func TestAPageThatCannotBeServedIsRefused(t *testing.T) {
	for says, tree := range map[string]fstest.MapFS{
		"run make console":  {"assets/main.js": {}},
		"add it to mediaTy": {"index.html": {}, "a.exe": {}},
	} {
		err := register(router.New(), tree)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want one that says %q", err, says)
		}
	}
}

// TestTheEmbeddedPageIsWhole looks at the page that the binary has: the document names
// only files that are there, and no other host.
func TestTheEmbeddedPageIsWhole(t *testing.T) {
	r := router.New()
	r.NotFound = func(rc *fasthttp.RequestCtx) { rc.Error("nothing here", 404) }
	ok(t, Register(r))
	document := string(ask(r, "GET", "/console").Body())
	named := 0
	for _, mark := range []string{`src="`, `href="`} {
		for _, rest := range strings.Split(document, mark)[1:] {
			path, _, _ := strings.Cut(rest, `"`)
			named++
			if res := ask(r, "GET", path); res.StatusCode() != 200 || !strings.HasPrefix(path, "/console/") {
				t.Errorf("the document names %s: %d", path, res.StatusCode())
			}
		}
	}
	if named < 2 {
		t.Errorf("the document names %d files; is it built?", named)
	}
	if strings.Contains(document, "<script>") || strings.Contains(document, "<style") {
		t.Error("the document has a script or a style of its own, which its policy forbids")
	}
}

const mostFirstLoad = 350 << 10

// TestFirstLoadIsSmall adds up what the document loads before anything is shown.
func TestFirstLoadIsSmall(t *testing.T) {
	r := router.New()
	r.NotFound = func(rc *fasthttp.RequestCtx) { rc.Error("nothing here", 404) }
	ok(t, Register(r))
	zipped := func(path string) int { return len(ask(r, "GET", path, "Accept-Encoding", "gzip").Body()) }
	total := zipped("/console")
	document := string(ask(r, "GET", "/console").Body())
	for _, mark := range []string{`src="`, `href="`} {
		for _, rest := range strings.Split(document, mark)[1:] {
			path, _, _ := strings.Cut(rest, `"`)
			total += zipped(path)
		}
	}
	t.Logf("the first load is %d bytes", total)
	if total > mostFirstLoad {
		t.Errorf("the first load is %d bytes, more than %d; load what only some screens need when they are opened", total, mostFirstLoad)
	}
}

// Every page of a customer loads the script.
func TestInAppScriptIsSmall(t *testing.T) {
	const limit = 6 << 10
	if n := len(InAppScript()); n > limit {
		t.Errorf("dist/muster-inapp.js has %d bytes, more than %d", n, limit)
	}
}
