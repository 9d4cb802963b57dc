package main

import (
	"regexp"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api"
)

// TestStarting: until the service is open each surface says so in its own form, and
// when to come back.
func TestStarting(t *testing.T) {
	t.Parallel()
	const text = "the server is starting; try again in a moment"
	ops := api.NewOps(nil, refuse)
	for path, want := range map[string]struct {
		status int
		body   string
	}{
		"/api/v1/events":              {503, `\{"success":false,"profile_id":"","error":"` + text + `"\}`},
		"/api/v1/events/batch":        {503, `\{"success":false,"profile_id":"","error":"` + text + `"\}`},
		"/api/v1/events/import":       {503, `\{"success":false,"profile_id":"","error":"` + text + `"\}`},
		"/api/v1/push/segments":       {503, `\{"status":"failure","message":"` + text + `","data":\{\}\}`},
		"/api/v1/events/live":         {503, `\{"status":"failure","message":"` + text + `","data":\{\}\}`},
		"/api/v1/eventsx":             {503, `\{"status":"failure","message":"` + text + `","data":\{\}\}`},
		"/v1/events":                  {503, `\{"status":"error","code":"[a-z_]+","message":"` + text + `","request_id":"req_[0-9a-f]+"\}`},
		"/console/api/v1/segments":    {503, `\{"status":"failure","message":"` + text + `","data":\{\}\}\n`},
		"/t/x":                        {503, text + "\n"},
		"/healthz":                    {200, "alive\n"},
		"/readyz":                     {503, "starting\n"},
		"/cluster/v1/forward/x":       {503, text + "\n"},
		"/cluster/v1/command/0?x=/v1": {503, text + "\n"},
	} {
		rc := &fasthttp.RequestCtx{}
		rc.Request.SetRequestURI(path)
		ops.Handle(rc)
		if have := string(rc.Response.Body()); rc.Response.StatusCode() != want.status || !regexp.MustCompile("^"+want.body+"$").MatchString(have) {
			t.Errorf("%s: %d %s, want %d %s", path, rc.Response.StatusCode(), have, want.status, want.body)
		}
		if retry := len(rc.Response.Header.Peek("Retry-After")) > 0; retry != (want.status == 503) {
			t.Errorf("%s: Retry-After is %v", path, retry)
		}
	}
}
