package resolver

import "testing"

// TestDefaultSender: who names no sender sends from the oldest verified domain,
// whatever its name, and from the development domain without one.
func TestDefaultSender(t *testing.T) {
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
		r.must(CommandDomainAdd, Domain{Name: name})
	}
	expect("no-reply@muster.local")
	r.must(CommandDomainVerify, DomainName{Name: "ant.example"})
	expect("no-reply@ant.example")
	r.must(CommandDomainVerify, DomainName{Name: "zoo.example"})
	expect("no-reply@zoo.example")
	r.must(CommandDomainDelete, DomainName{Name: "zoo.example"})
	expect("no-reply@ant.example")
}
