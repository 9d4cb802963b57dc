package rawjson

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Equal reports whether the raw string, quotes included, stands for s.
func Equal(raw []byte, s string) bool {
	if len(raw) < 2 || raw[0] != '"' {
		return false
	}
	body := raw[1 : len(raw)-1]
	// Every escape is longer than what it stands for.
	if len(body) < len(s) {
		return false
	}
	if string(body) == s {
		return bytes.IndexByte(body, '\\') < 0
	}
	if len(body) == len(s) {
		return false
	}
	for len(body) > 0 {
		if body[0] != '\\' {
			if len(s) == 0 || s[0] != body[0] {
				return false
			}
			body, s = body[1:], s[1:]
			continue
		}
		r, n := unescape(body)
		if n == 0 {
			return false
		}
		got, size := utf8.DecodeRuneInString(s)
		if got != r || size == 0 || r == utf8.RuneError && size != 3 {
			return false
		}
		body, s = body[n:], s[size:]
	}
	return len(s) == 0
}

// Text returns what the raw string stands for: the bytes between the quotes
// where nothing is escaped, else the decoded string appended to buf[:0]. ok is
// false when raw is no valid string (a lone surrogate is none).
func Text(raw, buf []byte) (text []byte, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil, false
	}
	if body := raw[1 : len(raw)-1]; bytes.IndexByte(body, '\\') < 0 {
		return body, true
	}
	return Unquote(buf[:0], raw)
}

// Unquote appends what the raw string stands for to dst. ok is false when raw
// is no valid string (a lone surrogate is none).
func Unquote(dst, raw []byte) (text []byte, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return dst, false
	}
	body := raw[1 : len(raw)-1]
	for {
		i := bytes.IndexByte(body, '\\')
		if i < 0 {
			return append(dst, body...), true
		}
		dst = append(dst, body[:i]...)
		r, n := unescape(body[i:])
		if n == 0 {
			return dst, false
		}
		dst = utf8.AppendRune(dst, r)
		body = body[i+n:]
	}
}

// unescape decodes the escape at the start of b and returns its length, 0 when
// it is none.
func unescape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, ok := hex4(b[2:])
		switch {
		case !ok:
			return 0, 0
		case r < 0xD800 || r > 0xDFFF:
			return r, 6
		case r > 0xDBFF || len(b) < 12 || b[6] != '\\' || b[7] != 'u':
			return 0, 0
		}
		low, ok := hex4(b[8:])
		if !ok || low < 0xDC00 || low > 0xDFFF {
			return 0, 0
		}
		return 0x10000 + (r-0xD800)<<10 + (low - 0xDC00), 12
	}
	return 0, 0
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// AppendString appends s as a canonical JSON string: only the quote, the
// backslash and control characters are escaped, the shortest way. s is valid
// UTF-8.
func AppendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// Float returns the value of a raw number. ok is false when raw is no number
// or its magnitude is beyond float64; a number too small becomes 0.
func Float(raw []byte) (f float64, ok bool) {
	if KindOf(raw) != Number {
		return 0, false
	}
	// ParseFloat keeps nothing of its argument, so the conversion stays on the
	// stack for numbers of common length.
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}
