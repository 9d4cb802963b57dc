package segment

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// ValidEventType reports whether s can be an event type: lower-case ASCII words
// and digits joined by single underscores, ^[a-z0-9]+(_[a-z0-9]+)*$, of at most
// 128 bytes.
func ValidEventType[T string | []byte](s T) bool {
	if len(s) == 0 || len(s) > maxEventTypeBytes {
		return false
	}
	// As if an underscore stood in front: none may follow another.
	underscore := true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z' || isDigit(c):
			underscore = false
		case c == '_' && !underscore:
			underscore = true
		default:
			return false
		}
	}
	return !underscore
}

// latin spells the letters that Unicode does not decompose into a base letter
// and marks.
var latin = map[rune]string{
	'ß': "ss", 'ẞ': "SS", 'æ': "ae", 'Æ': "AE", 'œ': "oe", 'Œ': "OE", 'ø': "o", 'Ø': "O",
	'đ': "d", 'Đ': "D", 'ð': "d", 'Ð': "D", 'þ': "th", 'Þ': "TH", 'ł': "l", 'Ł': "L",
	'ħ': "h", 'Ħ': "H", 'ı': "i", 'ŋ': "n", 'Ŋ': "N", 'ŧ': "t", 'Ŧ': "T",
}

// SnakeCase turns a name into an event type: words are cut at everything that
// is no letter or digit and where lower case turns to upper, accents are taken
// off, apostrophes fall out. "Item Purchased!" and "itemPurchased" are
// item_purchased, "HTTPServer2Go" is http_server2_go. ok is false when the name
// has letters that Latin cannot spell, no letter or digit at all, or gives a
// key of more than 128 bytes; the key then has to be named by hand.
func SnakeCase(name string) (key string, ok bool) {
	if len(name) > 8*maxEventTypeBytes {
		return "", false
	}
	var spelled strings.Builder
	runes := []rune(norm.NFKD.String(name))
	for i, r := range runes {
		switch {
		case r < unicode.MaxASCII && r != '\'':
			spelled.WriteByte(byte(r))
		case r == '\'' || r == '’' || unicode.Is(unicode.Mn, r):
			// Part of the word it stands in.
		case latin[r] != "":
			letters := latin[r]
			if i+1 < len(runes) && unicode.IsLower(runes[i+1]) {
				// One capital at most, or the rest would pass for an acronym.
				letters = letters[:1] + strings.ToLower(letters[1:])
			}
			spelled.WriteString(letters)
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			return "", false
		default:
			spelled.WriteByte(' ')
		}
	}
	s := spelled.String()
	b := make([]byte, 0, len(s)+8)
	cut := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		upper := c >= 'A' && c <= 'Z'
		if !upper && !isLower(c) && !isDigit(c) {
			cut = true
			continue
		}
		if upper && i > 0 {
			before := s[i-1]
			acronymEnds := before >= 'A' && before <= 'Z' && i+1 < len(s) && isLower(s[i+1])
			cut = cut || isLower(before) || isDigit(before) || acronymEnds
		}
		if cut && len(b) > 0 {
			b = append(b, '_')
		}
		cut = false
		if upper {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	if !ValidEventType(b) {
		return "", false
	}
	return string(b), true
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
