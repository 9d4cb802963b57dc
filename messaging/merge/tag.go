package merge

import (
	"fmt"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cutTag returns what is between the braces that open at text[open:] and where
// the text continues. Braces inside of quoted strings do not close a tag.
func cutTag(text string, open int, mode Mode) (inner string, end int, reason string) {
	start := open + 2
	if strings.HasPrefix(text[start:], "{") {
		return "", 0, "write {{ and }} with two braces; values are always escaped, there is no {{{ }}}"
	}
	limit := min(len(text), start+4096) // a forgotten }} is found near its tag
	var quote string
	escaped := "" // how tools that escape whole texts write a quote
	switch mode {
	case HTML:
		escaped = "&quot;"
	case JSON:
		escaped = `\"`
	}
	var wasEscaped bool
	for i := start; i < limit; {
		rest := text[i:limit]
		switch {
		case quote != "":
			switch {
			case strings.HasPrefix(rest, quote):
				i += len(quote)
				quote = ""
				continue
			case rest[0] == '\\' && len(rest) > 1:
				i += 2
				continue
			}
		case strings.HasPrefix(rest, "}}"):
			inner = text[start:i]
			if mode == HTML {
				if strings.ContainsAny(inner, "<>") {
					return "", 0, "the tag contains markup; type it again without formatting inside the braces"
				}
				inner = html.UnescapeString(inner)
			}
			if wasEscaped && mode == JSON {
				inner = strings.ReplaceAll(inner, escaped, `"`)
			}
			return inner, i + 2, ""
		case strings.HasPrefix(rest, "{{"):
			return "", 0, "the tag is not closed; write }} before the next {{"
		case escaped != "" && strings.HasPrefix(rest, escaped):
			quote, wasEscaped = escaped, true
			i += len(quote)
			continue
		case rest[0] == '"' || rest[0] == '\'':
			quote = rest[:1]
		}
		i++
	}
	if quote != "" {
		return "", 0, "a quote inside of the tag is not closed"
	}
	return "", 0, "the tag is not closed; write }} after its name"
}

func parseTag(inner string) (path []string, fallback, reason string) {
	s := strings.TrimSpace(inner) // also cuts U+00A0, which editors insert
	if s == "" {
		return nil, "", "the tag is empty; write a name, for example {{first_name}}"
	}
	if s[0] == '"' || s[0] == '\'' {
		lit, rest, reason := parseString(s)
		if reason == "" && strings.TrimSpace(rest) != "" {
			reason = "only a closing }} may follow the quoted text"
		}
		return nil, lit, reason
	}
	name, after, hasDefault := strings.Cut(s, "|")
	name = strings.TrimSpace(name)
	if len(name) > maxPath {
		return nil, "", fmt.Sprintf("the name has %d bytes, at most %d are allowed", len(name), maxPath)
	}
	path = strings.Split(name, ".")
	for _, n := range path {
		if !isName(n) {
			return nil, "", fmt.Sprintf("%q is not a name; names are letters, digits, _ and -, joined by dots, for example attributes.plan", name)
		}
	}
	if !hasDefault {
		return path, "", ""
	}
	after = strings.TrimSpace(after)
	if rest, ok := strings.CutPrefix(after, "default"); ok {
		if rest = strings.TrimSpace(rest); rest == "" {
			return nil, "", `default needs a value; write {{name | default: "friend"}}`
		}
		if rest[0] == ':' {
			if after = strings.TrimSpace(rest[1:]); after == "" {
				return nil, "", `default needs a value; write {{name | default: "friend"}}`
			}
		}
	}
	switch {
	case after == "":
		return nil, "", `| needs a default value after it; write {{name | default: "friend"}}`
	case after[0] == '"' || after[0] == '\'':
		lit, rest, reason := parseString(after)
		if reason == "" && strings.TrimSpace(rest) != "" {
			reason = "only a closing }} may follow the default value"
		}
		return path, lit, reason
	case strings.ContainsAny(after, `"{}|:`):
		return nil, "", `put the default value in quotes; write {{name | default: "friend"}}`
	}
	return path, after, ""
}

// parseString reads the quoted string s starts with.
func parseString(s string) (value, rest, reason string) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			return b.String(), s[i+1:], ""
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] != '"' && s[i] != '\'' && s[i] != '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", "the quoted text is not closed"
}

func isName(n string) bool {
	if n == "" || !utf8.ValidString(n) {
		return false
	}
	if strings.Trim(n, "0123456789") == "" {
		return true
	}
	for i, r := range n {
		switch {
		case unicode.IsLetter(r) || r == '_':
		case i > 0 && (unicode.IsDigit(r) || unicode.IsMark(r) || r == '-'):
		default:
			return false
		}
	}
	return true
}
