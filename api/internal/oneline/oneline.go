package oneline

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxBytes is the longest message, in bytes.
const MaxBytes = 1000

// Of is s as one line of valid UTF-8 with at most [MaxBytes] bytes. Of a longer
// text the beginning and the end stay: in between stands what was quoted.
func Of(s string) string {
	if len(s) > MaxBytes {
		const gap, end = " … ", MaxBytes / 4
		s = cutBack(s[:MaxBytes-end-len(gap)]) + gap + cutFront(s[len(s)-end:])
	}
	if utf8.ValidString(s) && strings.IndexFunc(s, breaks) < 0 {
		return s
	}
	// What was no UTF-8 may get longer by this, a control character shorter.
	return strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '?'
		case breaks(r):
			return ' '
		}
		return r
	}, s)
}

// breaks reports whether a character could end a line, or is none that is seen.
func breaks(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// cutBack and cutFront drop a part of a character at an end.
func cutBack(s string) string {
	for i := 0; i < utf8.UTFMax && s != ""; i++ {
		if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

func cutFront(s string) string {
	for i := 0; i < utf8.UTFMax && s != "" && !utf8.RuneStart(s[0]); i++ {
		s = s[1:]
	}
	return s
}
