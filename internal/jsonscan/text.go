package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain returns the position of the first quotation mark, backslash or control
// character from i on (the length of src if there is none) and a word that is
// non-zero if a byte before it is not ASCII.
//
// Eight bytes are tested at once: a byte's high bit comes up in m when the byte
// is below 0x20, or zero after the exclusive or. A borrow can only spoil bytes
// above a true hit, and the lowest hit is the one that is used.
func plain(src []byte, i int) (int, uint64) {
	var high uint64
	for i+8 <= len(src) {
		w := binary.LittleEndian.Uint64(src[i:])
		m := ((w - 0x20*ones) | ((w ^ '"'*ones) - ones) | ((w ^ '\\'*ones) - ones)) &^ w & highs
		if m != 0 {
			n := bits.TrailingZeros64(m)
			return i + n>>3, (high | w&(1<<(n&56)-1)) & highs
		}
		high |= w
		i += 8
	}
	for ; i < len(src); i++ {
		c := src[i]
		if c < 0x20 || c == '"' || c == '\\' {
			break
		}
		high |= uint64(c)
	}
	return i, high & highs
}

// Text reads the string at i, which must be a quotation mark, and returns its
// characters unescaped: a part of the source if nothing is escaped. A fault has
// an empty path; the text is then nil.
func (s *Scanner) Text(i int) ([]byte, int) {
	src := s.src
	if uint(i) >= uint(len(src)) || src[i] != '"' {
		return nil, s.Fail(i, "expected a string")
	}
	i++
	j, high := plain(src, i)
	if uint(j) < uint(len(src)) && src[j] == '"' && high == 0 {
		return src[i:j:j], j + 1
	}
	return s.slowText(i, j, high)
}

// slowText is Text for strings that hold escapes or more than ASCII. i is the
// position behind the quotation mark; up to j the string is plain.
func (s *Scanner) slowText(i, j int, high uint64) ([]byte, int) {
	mark, copied := len(s.out), i
	faulty := false
	for {
		if j >= len(s.src) || s.src[j] < 0x20 {
			return nil, s.Fail(j, "a control character in a string must be escaped")
		}
		if s.src[j] == '"' {
			break
		}
		r, next := s.escape(j)
		if next < 0 {
			return nil, next
		}
		if r < 0 {
			faulty = true
			r = utf8.RuneError
		}
		s.out = append(s.out, s.src[copied:j]...)
		s.out = utf8.AppendRune(s.out, r)
		copied = next
		var h uint64
		j, h = plain(s.src, next)
		high |= h
	}
	if high != 0 && !utf8.Valid(s.src[i:j]) {
		return nil, s.failUTF8(i, j)
	}
	if faulty {
		s.out = s.out[:mark]
		return nil, j + 1
	}
	if copied == i {
		return s.src[i:j:j], j + 1
	}
	s.out = append(s.out, s.src[copied:j]...)
	return s.out[mark:len(s.out):len(s.out)], j + 1
}

// escape reads the escape sequence whose backslash is at j and returns the
// character and the position behind. The character is negative, and a fault is
// set, if it is one that cannot be kept. The fault has no path yet.
func (s *Scanner) escape(j int) (rune, int) {
	switch s.Byte(j + 1) {
	case '"':
		return '"', j + 2
	case '\\':
		return '\\', j + 2
	case '/':
		return '/', j + 2
	case 'b':
		return '\b', j + 2
	case 'f':
		return '\f', j + 2
	case 'n':
		return '\n', j + 2
	case 'r':
		return '\r', j + 2
	case 't':
		return '\t', j + 2
	case 'u':
	default:
		return 0, s.Fail(j+1, "unknown escape sequence")
	}
	r := hex4(s.src, j+2)
	if r < 0 {
		return 0, s.Fail(min(j+2, len(s.src)), `\u must be followed by four hexadecimal digits`)
	}
	next := j + 6
	switch {
	case r == 0:
		s.setFault(FaultNUL)
		return -1, next
	case r < 0xd800 || r > 0xdfff:
		return r, next
	case r < 0xdc00 && s.Byte(next) == '\\' && s.Byte(next+1) == 'u':
		low := hex4(s.src, next+2)
		if low >= 0xdc00 && low <= 0xdfff {
			return (r-0xd800)<<10 + (low - 0xdc00) + 0x10000, next + 6
		}
	}
	s.setFault(FaultSurrogate)
	return -1, next
}

func hex4(src []byte, i int) rune {
	if i+4 > len(src) {
		return -1
	}
	var r rune
	for _, c := range src[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// failUTF8 reports the first invalid byte of src[i:j].
func (s *Scanner) failUTF8(i, j int) int {
	for i < j {
		r, n := utf8.DecodeRune(s.src[i:j])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return s.Fail(i, "a string must be valid UTF-8")
}

// setFault notes the first fault.
func (s *Scanner) setFault(kind FaultKind) {
	if s.fault.Kind == FaultNone {
		s.fault = Fault{Kind: kind}
	}
}

const hexDigits = "0123456789abcdef"

// AppendQuoted appends text, which must be valid UTF-8, as a JSON string in
// canonical form, quotation marks included.
func AppendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	for {
		n, _ := plain(text, 0)
		dst = append(dst, text[:n]...)
		if n == len(text) {
			return append(dst, '"')
		}
		dst = appendEscaped(dst, rune(text[n]))
		text = text[n+1:]
	}
}

// appendEscaped appends one character of a string in canonical form.
func appendEscaped(dst []byte, r rune) []byte {
	switch r {
	case '"':
		return append(dst, '\\', '"')
	case '\\':
		return append(dst, '\\', '\\')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if r < 0x20 {
		return append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
	}
	return utf8.AppendRune(dst, r)
}
