package resolver

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/internal/identifier"
)

// TestErasureOfHostileHash: whatever stands where a hash should, it names no
// erasure. Apply must not fail on it: the record would stop every start.
func TestErasureOfHostileHash(t *testing.T) {
	var a account
	a.erasures = map[identifier.Hash]Erasure{}
	for n := range 200 {
		for _, c := range []string{"a", "0", "g", "\x00", "ü"} {
			if _, ok := a.erasureOf(ErasureLift{Hash: strings.Repeat(c, n) + "a"}); ok {
				t.Errorf("%d times %q is an erasure", n, c)
			}
		}
	}
}
