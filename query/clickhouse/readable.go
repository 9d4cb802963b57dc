package clickhouse

import (
	"strconv"
	"strings"
)

// ClickHouse's JSON functions read nothing of a text in which an integer is
// beyond 64 bits. Such numbers are read as float64 everywhere, so a text in
// which ".0" follows them means the same; it is kept beside the one that came.

// longDigits is the length from which an integer may be beyond 64 bits.
const longDigits = 19

// hasLongDigits reports whether so many digits follow each other anywhere. It
// looks at one byte in so many, which any such run contains.
func hasLongDigits(text string) bool {
	for i := longDigits - 1; i < len(text); i += longDigits {
		if !isDigit(text[i]) {
			continue
		}
		from, to := i, i+1
		for from > 0 && isDigit(text[from-1]) {
			from--
		}
		for to < len(text) && isDigit(text[to]) {
			to++
		}
		if to-from >= longDigits {
			return true
		}
	}
	return false
}

func isDigit(c byte) bool { return c-'0' < 10 }

// readableJSON is the text that ClickHouse reads; empty when that is the text
// itself. The text is canonical JSON.
func readableJSON(text string) string {
	var out strings.Builder
	done := 0 // what out has of text
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			i++
		case c == '-' || isDigit(c):
			from := i
			for i++; i < len(text) && (isDigit(text[i]) || strings.IndexByte(".eE+-", text[i]) >= 0); i++ {
			}
			if number := text[from:i]; len(number) >= longDigits && !strings.ContainsAny(number, ".eE") && beyond64Bits(number) {
				out.WriteString(text[done:i])
				out.WriteString(".0")
				done = i
			}
		default:
			i++
		}
	}
	if done == 0 {
		return ""
	}
	out.WriteString(text[done:])
	return out.String()
}

func beyond64Bits(integer string) bool {
	var err error
	if integer[0] == '-' {
		_, err = strconv.ParseInt(integer, 10, 64)
	} else {
		_, err = strconv.ParseUint(integer, 10, 64)
	}
	return err != nil
}
