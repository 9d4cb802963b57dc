package api

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/operation/operationtest"
)

// TestStrangeFieldsAreRefused: no call of the console takes a field or a parameter
// that it does not have; the refusal names it, and nothing is done.
func TestStrangeFieldsAreRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	tries := 0
	for _, g := range s.api.groups() {
		if g.Surface != operation.SurfaceConsole {
			continue
		}
		for i := range g.Routes {
			for _, q := range operationtest.Refused(t, g.Surface.Prefix, &g.Routes[i].Operation) {
				// What it takes depends on the service.
				q.Path = strings.Replace(q.Path, "push-credentials/none", "push-credentials/webpush", 1)
				status, a := s.do(q.Method, q.Path, q.Body)
				if status != 400 || !strings.Contains(a.Message, q.Names) {
					t.Errorf("%s %s %s: %d %s", q.Method, q.Path, q.Body, status, a.Message)
				}
				tries++
			}
		}
	}
	if tries < 200 {
		t.Errorf("only %d requests were made", tries)
	}
	for _, x := range []struct{ method, path, body, field, want string }{
		{"POST", "/lists", `{"nam":"x"}`, "nam", "nam is not a field of this call. Did you mean name?"},
		{"PATCH", "/profiles/none", `{"firstName":"x"}`, "firstName", "firstName is not a field of this call. Did you mean first_name?"},
		{"POST", "/segments/preview", `{"defintion":{}}`, "defintion", "defintion is not a field of this call. Did you mean definition?"},
		{"GET", "/profiles?emial=a@x.io", "", "emial", "emial is not a parameter of this call. Did you mean email?"},
	} {
		if status, a := s.do(x.method, x.path, x.body); status != 400 || a.field() != x.field || a.Message != x.want {
			t.Errorf("%s %s %s: %d %q %s", x.method, x.path, x.body, status, a.field(), a.Message)
		}
	}
}
