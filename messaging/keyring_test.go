package messaging

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/resolver/domains"
)

// TestKeyRing: a key is read once, another of the same domain is another key,
// a broken one is an error each time, and the ring stays bounded.
func TestKeyRing(t *testing.T) {
	t.Parallel()
	var r keyRing
	one, two, err := email.GenerateKeys()
	if err != nil {
		t.Fatal(err)
	}
	of := func(d domains.Domain) *email.Key {
		t.Helper()
		keys, err := r.of(d)
		if err != nil || len(keys) != 1 {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		return keys[0]
	}
	d := domains.Domain{Name: "a.example", Selector: "s", PrivateKey: string(one)}
	first := of(d)
	if of(d) != first {
		t.Error("the key was read twice")
	}
	rolled := d
	rolled.PrivateKey = string(two)
	if of(rolled) == first {
		t.Error("a new key of the domain is not used")
	}
	if keys, err := r.of(domains.Domain{Name: "a.example"}); keys != nil || err != nil {
		t.Errorf("a domain without a key: %v %v", keys, err)
	}
	for range 2 {
		if _, err := r.of(domains.Domain{Name: "a.example", Selector: "s", PrivateKey: "x"}); err == nil {
			t.Error("a broken key is taken")
		}
	}
	for i := range maxRingKeys + 10 {
		of(domains.Domain{Name: "a.example", Selector: fmt.Sprint("s", i), PrivateKey: string(two)})
	}
	if len(r.keys) > maxRingKeys {
		t.Errorf("%d keys are kept", len(r.keys))
	}
}
