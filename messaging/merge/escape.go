package merge

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escaper is what happens to a value at one place.
type escaper uint8

const (
	escText      escaper = iota + 1 // plain text
	escHeader                       // one line
	escHTML                         // character references
	escCSS                          // colours, lengths, names
	escJSONIn                       // inside of a JSON string
	escJSONValue                    // where a JSON value stands
	escURLWhole                     // at the start of a link
	escURLScheme                    // in a link before its scheme is decided
	escURLPath                      // in a link before ? and #
	escURLQuery                     // in a link after ? or #
	escURLOpaque                    // in a mailto, tel or sms link before ?
	escComment                      // in an HTML comment

	// A link inside of an HTML attribute gets character references on top.
	escInHTML escaper = 0x80
)

func (e escaper) append(dst []byte, v string) []byte {
	switch e &^ escInHTML {
	case escText:
		return appendText(dst, v)
	case escHeader:
		return appendHeader(dst, v)
	case escHTML:
		return appendHTML(dst, v)
	case escCSS:
		return appendCSS(dst, v)
	case escJSONIn:
		return appendJSONString(dst, v)
	case escJSONValue:
		return appendJSONValue(dst, v)
	case escURLWhole:
		v = cleanURL(v)
		if !safeScheme(v) {
			return append(dst, '#')
		}
		return appendURL(dst, v, "", e&escInHTML != 0)
	case escURLScheme:
		return appendURL(dst, v, ":", e&escInHTML != 0)
	case escURLPath:
		return appendURL(dst, v, "", e&escInHTML != 0)
	case escURLOpaque:
		return appendQuery(dst, v, "@+,")
	case escComment:
		return appendHTML(dst, strings.ReplaceAll(v, "-", " "))
	default:
		return appendQuery(dst, v, "")
	}
}

// appendRunes appends v rune by rune through f, which appends the replacement
// or returns false to keep the rune. Bytes that are not UTF-8 become U+FFFD.
func appendRunes(dst []byte, v string, f func(dst []byte, r rune) ([]byte, bool)) []byte {
	for _, r := range v {
		var done bool
		if dst, done = f(dst, r); !done {
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

func appendText(dst []byte, v string) []byte {
	return appendRunes(dst, v, func(dst []byte, r rune) ([]byte, bool) {
		return dst, unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
	})
}

func appendHeader(dst []byte, v string) []byte {
	return appendRunes(dst, strings.TrimSpace(v), func(dst []byte, r rune) ([]byte, bool) {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return append(dst, ' '), true
		}
		return dst, false
	})
}

func appendHTML(dst []byte, v string) []byte {
	return appendRunes(dst, v, func(dst []byte, r rune) ([]byte, bool) {
		switch r {
		case '&':
			return append(dst, "&amp;"...), true
		case '<':
			return append(dst, "&lt;"...), true
		case '>':
			return append(dst, "&gt;"...), true
		case '"':
			return append(dst, "&#34;"...), true
		case '\'':
			return append(dst, "&#39;"...), true
		case '`': // a quote to old mail clients
			return append(dst, "&#96;"...), true
		}
		return dst, unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
	})
}

// appendCSS keeps what colours, lengths, font names and numbers need. Without
// parentheses, quotes, colons, backslashes and semicolons no value can name a
// function or start another property.
func appendCSS(dst []byte, v string) []byte {
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte(" #.,%-_", c) >= 0:
			dst = append(dst, c)
		}
	}
	return dst
}

const hexDigits = "0123456789ABCDEF"

func appendJSONString(dst []byte, v string) []byte {
	return appendRunes(dst, v, func(dst []byte, r rune) ([]byte, bool) {
		switch r {
		case '"', '\\':
			return append(dst, '\\', byte(r)), true
		case '\n':
			return append(dst, `\n`...), true
		case '\r':
			return append(dst, `\r`...), true
		case '\t':
			return append(dst, `\t`...), true
		case '<', '>', '&', '\u2028', '\u2029': // JSON inside of HTML or JavaScript stays inside
		default:
			if r >= ' ' && r != 0x7f {
				return dst, false
			}
		}
		return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15]), true
	})
}

func appendJSONValue(dst []byte, v string) []byte {
	t := strings.TrimSpace(v)
	switch {
	case t == "":
		return append(dst, "null"...)
	case t == "true", t == "false", t == "null", isNumber(t):
		// Spaces keep it a token of its own beside what the author wrote.
		return append(append(append(dst, ' '), t...), ' ')
	}
	dst = append(dst, '"')
	dst = appendJSONString(dst, v)
	return append(dst, '"')
}

func isNumber(s string) bool {
	return (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && len(s) <= 64 && json.Valid([]byte(s))
}

// cleanURL removes what browsers ignore in links before they look at the scheme.
func cleanURL(v string) string {
	v = strings.TrimFunc(v, func(r rune) bool { return r <= ' ' || unicode.IsSpace(r) })
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, v)
}

var schemes = []string{"http", "https", "mailto", "tel", "sms"}

// safeScheme reports whether the link v is relative or of a scheme that runs
// nothing.
func safeScheme(v string) bool {
	i := strings.IndexAny(v, ":/?#")
	if i < 0 || v[i] != ':' {
		return true
	}
	for _, s := range schemes {
		if strings.EqualFold(v[:i], s) {
			return true
		}
	}
	return false
}

// appendURL keeps a link's structure and percent-encodes what may not stand in
// one, and the bytes of also.
func appendURL(dst []byte, v, also string, inHTML bool) []byte {
	v = strings.ToValidUTF8(v, "\uFFFD")
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case strings.IndexByte(also, c) >= 0:
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		case c == '&' && inHTML:
			dst = append(dst, "&amp;"...)
		case unreserved(c), strings.IndexByte("%:/?#@!$&*+,;=[]", c) >= 0:
			dst = append(dst, c)
		default:
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return dst
}

// appendQuery percent-encodes all that could have a meaning, but the bytes of keep.
func appendQuery(dst []byte, v, keep string) []byte {
	v = strings.ToValidUTF8(v, "\uFFFD")
	for i := 0; i < len(v); i++ {
		if c := v[i]; unreserved(c) || strings.IndexByte(keep, c) >= 0 {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return dst
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}
