package identifier

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestPlaceholders: a value is a placeholder where one is the same in lower case and without
// white space around, also where lower case has another length. A value that takes more bytes
// than each of them does in lower case is none.
func TestPlaceholders(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	// The Kelvin sign takes three bytes and İ two, in lower case both one.
	letters := []string{"a", "A", "k", "K", "\u212a", "i", "İ", "ß", "0", "-", " "}
	draw := func(most int) string {
		var b strings.Builder
		for range rng.IntN(most) {
			b.WriteString(letters[rng.IntN(len(letters))])
		}
		return b.String()
	}
	found := 0
	for range 2000 {
		values := []string{draw(4), draw(12), draw(70)}
		p := NewPlaceholders(values)
		for _, raw := range append([]string{draw(4), draw(12), draw(70)}, values...) {
			for _, raw := range []string{raw, " " + strings.ToUpper(raw) + "\t", strings.ReplaceAll(raw, "k", "\u212a")} {
				value, longest, same := strings.TrimSpace(raw), 0, false
				for _, v := range values {
					v = strings.ToLower(strings.TrimSpace(v))
					longest, same = max(longest, len(v)), same || v == strings.ToLower(value)
				}
				want := same && len(value) <= longest
				if p.Has([]byte(raw)) != want {
					t.Fatalf("%q among %q: expected %v", raw, values, want)
				}
				if want {
					found++
				}
			}
		}
	}
	if found < 2000 {
		t.Errorf("only %d values were placeholders", found)
	}
}
