package resolver

import (
	"testing"

	"github.com/musterhq/muster/resolver/domains"
)

// TestDefaultSender: a message without a sender goes out from the oldest verified
// domain, whatever its name, and from the development domain without one.
func TestDefaultSender(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	expect := func(want string) {
		t.Helper()
		if got := r.view().DefaultSender(); got != want {
			t.Errorf("the sender is %s, want %s", got, want)
		}
	}
	expect("no-reply@muster.local")
	for _, name := range []string{"unverified.example", "zoo.example", "ant.example"} {
		r.now++
		r.must(domains.CommandAdd, domains.Domain{Name: name})
	}
	expect("no-reply@muster.local")
	r.must(domains.CommandVerify, domains.Name{Name: "ant.example"})
	expect("no-reply@ant.example")
	r.must(domains.CommandVerify, domains.Name{Name: "zoo.example"})
	expect("no-reply@zoo.example")
	r.must(domains.CommandDelete, domains.Name{Name: "zoo.example"})
	expect("no-reply@ant.example")
}
