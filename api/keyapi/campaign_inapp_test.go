package keyapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/record"
)

// TestInAppIsAServiceOfPush: a campaign sends in-app messages by type 4 and the service in_app,
// and is another one once either is changed. There is no type 5.
func TestInAppIsAServiceOfPush(t *testing.T) {
	x := newSending(t)
	var c record.Campaign
	says := func(want string) {
		t.Helper()
		service := "none"
		if c.Service != nil {
			service = *c.Service
		}
		if got := fmt.Sprint(*c.Type, " ", service); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
	x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":4,"service":"in_app","date":"2026-01-01","subject":"s","body":"b"}`, &c)
	says("4 in_app")
	path := "/campaign/" + c.ID
	x.call("success", "PATCH", path, `{"subject":"t"}`, &c)
	says("4 in_app")
	x.call("success", "PATCH", path, `{"type":4}`, &c)
	says("4 in_app")
	x.call("success", "PATCH", path, `{"service":""}`, &c)
	says("4 none")
	x.call("success", "PATCH", path, `{"service":"in_app"}`, &c)
	says("4 in_app")
	x.call("success", "PATCH", path, `{"type":2}`, &c)
	says("2 none")
	for body, want := range map[string]string{
		`{"type":5}`: "type Input should be 1, 2, 3 or 4", `{"service":"in_app"}`: "service Input should be in_app with channel 2 and type 4 only",
		`{"type":3,"service":"in_app"}`: "service Input should be in_app with", `{"channel":1,"type":4,"service":"in_app"}`: "service Input should be in_app with",
		`{"type":4,"service":"whatsapp"}`: "service ",
	} {
		if m := x.call("failure", "PATCH", path, body, nil); !strings.HasPrefix(m, want) {
			t.Errorf("%s: %s", body, m)
		}
	}
}
