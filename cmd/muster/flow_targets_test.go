package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// TestFlowTargets: a flow with a webhook to a private address does not go live unless
// that is allowed; why a webhook failed stands on the enrolment's path, also when the
// address is refused only at the call.
func TestFlowTargets(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	dir, sink := t.TempDir(), newHookSink(t)
	refusing := freeAddr(t) // without a listener
	s := serve(t, dir)
	var made struct {
		ID string `json:"_id"`
	}
	create := func(url string) string {
		t.Helper()
		s.console("POST", "/flows", fmt.Sprintf(`{"name":"f","trigger":{"type":"api"},"reentry":"after_exit","steps":[{"id":"first","type":"tag","add":["x"],"next":"hook"},
			{"id":"hook","type":"webhook","url":%q,"attempts":1,"next":null}]}`, url), &made)
		return made.ID
	}
	publish := func(flow string) (status int, message string) {
		t.Helper()
		var a struct{ Message string }
		status = s.call("POST", api.Prefix+"/flows/"+flow+"/publish", "", &a, "Authorization", "Bearer "+s.token)
		return status, a.Message
	}
	flow := ""
	for url, says := range map[string]string{
		"http://127.0.0.1:8080/{{profile_id}}":  "leads to 127.0.0.1",
		"http://" + refusing + "/x":             "leads to 127.0.0.1",
		"http://[::1]:8080/":                    "leads to ::1",
		"https://10.0.0.7/a?b={{attributes.c}}": "leads to 10.0.0.7",
		"http://localhost:9000/":                "localhost",
		"https://billing.internal/":             ".internal",
		"http://[::ffff:192.168.0.1]/":          "192.168.0.1",
	} {
		flow = create(url)
		status, message := publish(flow)
		if status != 400 || !strings.Contains(message, "steps[1] (hook): url ") || !strings.Contains(message, says) || !strings.Contains(message, "--allow-private-webhooks") {
			t.Errorf("%s: %d %s", url, status, message)
		}
		var v struct {
			Valid  bool
			Faults []struct{ Step, Path string }
		}
		if s.console("GET", "/flows/"+flow+"/validate", "", &v); v.Valid || len(v.Faults) != 1 || v.Faults[0].Step != "hook" || v.Faults[0].Path != "steps[1].url" {
			t.Errorf("%s: %+v", url, v)
		}
		var f struct{ Status string }
		if s.console("GET", "/flows/"+flow, "", &f); f.Status != "draft" {
			t.Errorf("%s: the flow is %s", url, f.Status)
		}
	}
	// A merge tag in the host is refused whatever is allowed.
	for _, url := range []string{"https://{{attributes.host}}/", "https://{{attributes.host}}.example.com/", "https://example.com:{{attributes.port}}/"} {
		if status, message := publish(create(url)); status != 400 || !strings.Contains(message, "steps[1] (hook): url must have its host written out") {
			t.Errorf("%s: %d %s", url, status, message)
		}
	}
	if status, message := publish(create("https://example.com/{{profile_id}}")); status != 200 {
		t.Errorf("a public address: %d %s", status, message)
	}
	s.stop()

	s = serve(t, dir, "--allow-private-webhooks")
	s.console("GET", "/flows", "", nil) // signs in
	closed, open := create("http://"+refusing+"/x"), create(sink.url+"/x")
	for _, f := range []string{closed, open} {
		if status, message := publish(f); status != 200 {
			t.Fatalf("%d %s", status, message)
		}
	}
	enrol := func(flow string) {
		t.Helper()
		s.console("POST", "/flows/"+flow+"/trigger", `{"email":"a@x.io"}`, nil)
	}
	// last is the last step of the newest enrolment, once it has a result.
	last := func(flow, profile string, enrolments int) (result, reason string) {
		t.Helper()
		var d struct {
			Enrolments []struct {
				Path []struct {
					Result string
					Reason *string
				}
			}
		}
		eventually.Succeeds(t, func() error {
			s.console("GET", "/flows/"+flow+"/enrolments/"+profile, "", &d)
			if n := len(d.Enrolments); n == enrolments && len(d.Enrolments[n-1].Path) == 2 {
				if x := d.Enrolments[n-1].Path[1]; x.Result != "pending" {
					if d.Enrolments[n-1].Path[0].Reason != nil {
						t.Error("a step that did not fail has a reason")
					}
					if x.Reason != nil {
						reason = *x.Reason
					}
					result = x.Result
					return nil
				}
			}
			b, _ := json.Marshal(d)
			return fmt.Errorf("the enrolment does not end: %s", b)
		})
		return result, reason
	}
	profile := s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	enrol(closed)
	if result, reason := last(closed, profile, 1); result != "failed" || !strings.Contains(reason, "connection refused") {
		t.Errorf("without a listener: %s %q", result, reason)
	}
	s.stop()

	// What went live before is refused at the call.
	s = serve(t, dir)
	s.console("GET", "/flows", "", nil)
	if result, reason := last(closed, profile, 1); result != "failed" || !strings.Contains(reason, "connection refused") {
		t.Errorf("after a restart: %s %q", result, reason)
	}
	enrol(open)
	if result, reason := last(open, profile, 1); result != "failed" || !strings.Contains(reason, "leads to 127.0.0.1") {
		t.Errorf("a private address at the call: %s %q", result, reason)
	}
	s.stop()
}
