package target

import (
	"testing"

	"github.com/valyala/fasthttp"
)

func TestCheck(t *testing.T) {
	for uri, want := range map[string]string{
		"/a/b": "", "/a/%C3%A9?q=%C3%A9&r=a+b": "", "/a?x": "", "/": "", "/a/%ff": "path", "/a/%00": "path", "/a%0ab": "path", "/a/%C2%85": "path",
		"/a?q=%ff": "q", "/a?ok=1&q=a%00b": "q", "/a?q=%0a": "q", "/a?q=%7f": "q", "/a?%ff=1": "query", "/a?%00": "query", "/a?q=1&q=%ff": "q", "/a?q=%ED%A0%80": "q",
	} {
		var rc fasthttp.RequestCtx
		rc.Request.SetRequestURI(uri)
		if got := Check(&rc); got != want {
			t.Errorf("%s: %q, want %q", uri, got, want)
		}
	}
}
