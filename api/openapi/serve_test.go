package openapi_test

import (
	"strings"
	"testing"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/openapi"
)

func get(t *testing.T, r *router.Router, path string, headers ...string) *fasthttp.Response {
	t.Helper()
	rc := &fasthttp.RequestCtx{}
	rc.Request.SetRequestURI(path)
	for i := 0; i < len(headers); i += 2 {
		rc.Request.Header.Set(headers[i], headers[i+1])
	}
	r.Handler(rc)
	return &rc.Response
}

func TestServed(t *testing.T) {
	r := router.New()
	ok(t, openapi.Register(r, groups()))
	for path, media := range map[string]string{
		"/openapi.json": "application/json", "/reference": "text/html; charset=utf-8",
		"/reference/reference.css": "text/css; charset=utf-8", "/reference/reference.js": "text/javascript; charset=utf-8",
	} {
		res := get(t, r, path)
		if res.StatusCode() != 200 || string(res.Header.ContentType()) != media || len(res.Body()) == 0 {
			t.Errorf("%s: %d %s", path, res.StatusCode(), res.Header.ContentType())
		}
		tag := string(res.Header.Peek("ETag"))
		for _, header := range []string{tag, `"other", W/` + tag, "*"} {
			if again := get(t, r, path, "If-None-Match", header); again.StatusCode() != 304 || len(again.Body()) > 0 {
				t.Errorf("%s with If-None-Match %s: %d", path, header, again.StatusCode())
			}
		}
		if again := get(t, r, path, "If-None-Match", `"other"`); again.StatusCode() != 200 {
			t.Errorf("%s with another tag: %d", path, again.StatusCode())
		}
	}
}

// TestPageIsSelfContained: the page loads nothing from elsewhere, and has no code
// or style that its own policy would refuse.
func TestPageIsSelfContained(t *testing.T) {
	r := router.New()
	ok(t, openapi.Register(r, groups()))
	res := get(t, r, "/reference")
	policy := string(res.Header.Peek("Content-Security-Policy"))
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	for _, path := range []string{"/reference", "/reference/reference.css", "/reference/reference.js"} {
		body := string(get(t, r, path).Body())
		for _, bad := range []string{"http://", "https://", "//cdn", "style=\"", " onclick", "<style", "@import", "innerHTML", "eval("} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %q", path, bad)
			}
		}
	}
}
