package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestAdvertisedAddress: an address that leads to another server is refused, one that
// leads nowhere, or not yet, is spoken of.
func TestAdvertisedAddress(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	self := newSelfCall(false)
	server := fasthttp.Server{Handler: self.before(func(rc *fasthttp.RequestCtx) { rc.SetStatusCode(http.StatusServiceUnavailable) })}
	go server.Serve(ln)
	t.Cleanup(func() { ok(t, server.Shutdown()) })
	answers := func(status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://"+ln.Addr().String()+r.URL.Path)
			w.WriteHeader(status)
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	t.Cleanup(func() { ok(t, silent.Close()) })
	for what, x := range map[string]struct {
		self             selfCall
		addr             string
		unreached, wrong string
	}{
		"this process":       {self, ln.Addr().String(), "", ""},
		"another process":    {newSelfCall(false), ln.Addr().String(), "503", ""},
		"no listener":        {self, freeAddr(t), "connection refused", ""},
		"a silent listener":  {self, silent.Addr().String(), "deadline exceeded", ""},
		"a proxy":            {self, answers(502), "502", ""},
		"another server":     {self, answers(404), "", "leads to another server, which answers 404"},
		"one that redirects": {self, answers(307), "", "leads to another server, which answers 307"},
		"one that takes all": {self, answers(200), "", "leads to another server, which answers 200"},
		"no address":         {self, "a b:1", "", "--advertise a b:1"},
	} {
		unreached, err := x.self.check(t.Context(), x.addr)
		for _, e := range []struct {
			err  error
			want string
		}{{unreached, x.unreached}, {err, x.wrong}} {
			if (e.err != nil) != (e.want != "") || e.err != nil && !strings.Contains(e.err.Error(), e.want) {
				t.Errorf("%s: %v %v, want %q and %q", what, unreached, err, x.unreached, x.wrong)
			}
		}
	}
}
