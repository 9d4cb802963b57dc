package oneline

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOf(t *testing.T) {
	long := strings.Repeat("ü", 3000)
	for s, want := range map[string]string{
		"":                             "",
		"name must be a string":        "name must be a string",
		"„ü“ 😀":                        "„ü“ 😀",
		"a\nb\r\nc\x00d\u2028e":        "a b  c d e",
		"a\xffb":                       "a?b",
		strings.Repeat("x", 1000):      strings.Repeat("x", 1000),
		"list " + long + " is no list": "list " + strings.Repeat("ü", 370) + " … " + strings.Repeat("ü", 119) + " is no list",
	} {
		if got := Of(s); got != want {
			t.Errorf("%.60q: %q", s, got)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("a\xffb")
	f.Add(strings.Repeat("\xf0\x9f\x98", 900))
	f.Fuzz(func(t *testing.T, s string) {
		got := Of(s)
		if len(got) > MaxBytes || !utf8.ValidString(got) || strings.IndexFunc(got, breaks) >= 0 || Of(got) != got {
			t.Errorf("%q", got)
		}
	})
}
