// Package clip shortens texts.
package clip

import (
	"strings"
	"unicode/utf8"
)

// Valid is [Text] of any bytes: what is no UTF-8 among them becomes U+FFFD first.
func Valid(text string, limit int) string {
	return Text(strings.ToValidUTF8(text, "\uFFFD"), limit)
}

// Text returns text if it has at most limit bytes, else its beginning: as many whole
// characters as have room. Of a text that is no UTF-8 it cuts at most three bytes more
// than it must. It shares memory with text.
func Text[T ~string | ~[]byte](text T, limit int) T {
	if len(text) <= limit {
		return text
	}
	n := limit
	for n > 0 && n > limit-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
