package clip

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestText: the result is the longest beginning of whole characters that has room.
func TestText(t *testing.T) {
	const text = "aé€😀b"
	for limit := range len(text) + 3 {
		want := ""
		for i, r := range text {
			if end := i + utf8.RuneLen(r); end <= limit {
				want = text[:end]
			}
		}
		if have := Text(text, limit); have != want {
			t.Errorf("%d bytes of a string: %q instead of %q", limit, have, want)
		}
		if have := Text([]byte(text), limit); string(have) != want {
			t.Errorf("%d bytes of bytes: %q instead of %q", limit, have, want)
		}
	}
	if have := Text(strings.Repeat("\x80", 100), 50); len(have) != 46 {
		t.Errorf("of no UTF-8 %d bytes are left", len(have))
	}
}
