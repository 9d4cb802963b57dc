// Package identity knows the normal forms in which identifiers are compared.
// What a client sent is stored as given; two e-mail addresses or phone numbers
// are the same identifier when their normal forms are equal. external_id has
// none: it is compared as it is.
package identity

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// NormalizeEmail is s without surrounding white space, lower-cased rune by
// rune as Unicode maps them.
func NormalizeEmail(s string) string { return string(AppendNormalEmail(nil, []byte(s))) }

// AppendNormalEmail appends the normal form of an e-mail address to dst. It
// allocates nothing beyond dst's growth; dst and s must not overlap.
func AppendNormalEmail(dst, s []byte) []byte {
	start := len(dst)
	rest := bytes.TrimSpace(s)
	for _, c := range rest {
		if c >= utf8.RuneSelf {
			return appendLower(dst[:start], rest)
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

func appendLower(dst, s []byte) []byte {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		dst = utf8.AppendRune(dst, unicode.ToLower(r))
		s = s[n:]
	}
	return dst
}

// NormalizePhone is the digits of s, behind a plus sign when s has one before
// its first digit. It is empty when s has no digit. Digits are 0 to 9; no
// country code is guessed, so 0170… and +49170… are two numbers.
func NormalizePhone(s string) string { return string(AppendNormalPhone(nil, []byte(s))) }

// AppendNormalPhone appends the normal form of a phone number to dst. It
// allocates nothing beyond dst's growth; dst and s must not overlap.
func AppendNormalPhone(dst, s []byte) []byte {
	plus, digits := false, false
	for _, c := range s {
		switch {
		case c >= '0' && c <= '9':
			if !digits && plus {
				dst = append(dst, '+')
			}
			digits = true
			dst = append(dst, c)
		case c == '+':
			plus = true
		}
	}
	return dst
}

// PhoneSpellings returns the normal forms in which a phone number may be on file: with a
// plus sign, with 00 in its place, and with neither. The given one is the first; they are
// nil for a text without a digit. They are three identifiers, since without a plus it is
// unknown whether a number has a country code. What a refusal says, it says of all three.
func PhoneSpellings(s string) []string {
	normal := NormalizePhone(s)
	digits := strings.TrimPrefix(normal, "+")
	if digits == normal {
		digits = strings.TrimPrefix(normal, "00")
	}
	if digits == "" {
		return nil
	}
	out := []string{normal}
	for _, other := range []string{"+" + digits, "00" + digits, digits} {
		if other != normal {
			out = append(out, other)
		}
	}
	return out
}
