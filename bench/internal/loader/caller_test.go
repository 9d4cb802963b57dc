package loader

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// An event counts as accepted only with status 202 and a profile, and a connection
// that broke or that the server closes is renewed.
func TestCaller(t *testing.T) {
	calls := 0
	answers := []struct {
		status int
		body   string
		close  bool
		want   string // profile; empty for a refusal
	}{
		{202, `{"success":true,"profile_id":"prf_1","error":null}`, false, "prf_1"},
		{202, `{"success":true,"profile_id":"prf_2","error":null}`, true, "prf_2"},
		{200, `{"success":true,"profile_id":"prf_3","error":null}`, false, ""},
		{202, `{"success":false,"error":"no"}`, false, ""},
		{202, `{"success":true,"error":null}`, false, ""},
		{202, `no JSON`, false, ""},
	}
	address := serveFunc(t, func(ctx *fasthttp.RequestCtx) {
		a := answers[calls]
		ctx.SetStatusCode(a.status)
		ctx.SetBodyString(a.body)
		if a.close {
			ctx.SetConnectionClose()
		}
	})
	c := Caller{DialTimeout: time.Minute, Timeout: time.Minute}
	defer c.Close()
	for i, want := range answers {
		calls = i
		a, err := c.Post(Target{Address: address, Path: "/"}, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if c.Connected() == want.close {
			t.Errorf("call %d: connected: %v", i, c.Connected())
		}
		if got, err := c.Profile(a); got != want.want || (err == nil) != (want.want != "") {
			t.Errorf("call %d: profile %q, %v", i, got, err)
		}
	}
	c.Close()
	if _, err := c.Do("127.0.0.1:1", nil); err == nil || c.Connected() {
		t.Errorf("without a listener: %v", err)
	}
}
