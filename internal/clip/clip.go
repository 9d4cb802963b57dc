// Package clip shortens texts.
package clip

import "unicode/utf8"

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
