package tracking

import (
	"strings"

	"golang.org/x/net/html"
)

// maskByte stands for each byte of a merge tag while markup is read: what is
// inside {{ and }} may hold quotes and angle brackets that are no markup. It is no
// character that occurs in HTML.
const maskByte = 0x01

// maxMergeTagBytes bounds a merge tag, so that a forgotten }} hides no markup.
const maxMergeTagBytes = 1024

// mask returns text with merge tags hidden, byte for byte as long.
func mask(text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	out := []byte(text)
	eachMergeTag(text, func(from, to int) {
		for i := from; i < to; i++ {
			out[i] = maskByte
		}
	})
	return string(out)
}

// eachMergeTag calls f with the bounds of each {{…}}. A {{ that is followed by
// another before any }} is text.
func eachMergeTag(text string, f func(from, to int)) {
	for at := 0; ; {
		i := strings.Index(text[at:], "{{")
		if i < 0 {
			return
		}
		from := at + i
		window := text[from+2 : min(len(text), from+maxMergeTagBytes)]
		end := strings.Index(window, "}}")
		if next := strings.Index(window, "{{"); end < 0 || next >= 0 && next < end {
			at = from + 1
			continue
		}
		to := from + 2 + end + 2
		// {{{x}}} closes with three.
		for to < len(text) && text[to] == '}' && strings.HasPrefix(text[from:], "{{{") && to < from+2+end+3 {
			to++
		}
		f(from, to)
		at = to
	}
}

// attr is an attribute's value within a tag: tag[from:to], quotes not included.
type attr struct {
	from, to int
	quoted   bool
	found    bool
}

// findAttrs finds the first href and data-muster-track of a start tag, given with
// its angle brackets and with merge tags hidden. Only the first attribute of a
// name counts, as in browsers.
func findAttrs(tag string) (href, track attr) {
	i := 1
	for i < len(tag) && !space(tag[i]) && tag[i] != '/' && tag[i] != '>' {
		i++
	}
	for i < len(tag) {
		for i < len(tag) && (space(tag[i]) || tag[i] == '/' || tag[i] == maskByte) {
			i++
		}
		if i >= len(tag) || tag[i] == '>' {
			return
		}
		start := i
		for i < len(tag) && !space(tag[i]) && tag[i] != '/' && tag[i] != '>' && tag[i] != maskByte && (tag[i] != '=' || i == start) {
			i++
		}
		name := tag[start:i]
		for i < len(tag) && space(tag[i]) {
			i++
		}
		if i >= len(tag) || tag[i] != '=' {
			set(&href, name, "href", attr{})
			set(&track, name, "data-muster-track", attr{})
			continue
		}
		i++
		for i < len(tag) && space(tag[i]) {
			i++
		}
		if i >= len(tag) || tag[i] == '>' {
			return
		}
		v := attr{from: i}
		if q := tag[i]; q == '"' || q == '\'' {
			v.quoted = true
			v.from++
			end := strings.IndexByte(tag[v.from:], q)
			if end < 0 {
				return
			}
			v.to = v.from + end
			i = v.to + 1
		} else {
			for i < len(tag) && !space(tag[i]) && tag[i] != '>' {
				i++
			}
			v.to = i
		}
		set(&href, name, "href", v)
		set(&track, name, "data-muster-track", v)
	}
	return
}

func set(a *attr, name, want string, v attr) {
	if !a.found && strings.EqualFold(name, want) {
		v.found = true
		*a = v
	}
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

var lineBreaks = strings.NewReplacer("\t", "", "\n", "", "\r", "")

// decodeValue turns an attribute's value into the text it stands for; merge tags
// stay as they are. Tabs and line breaks go, as when a browser reads a URL.
func decodeValue(value string) string {
	var b strings.Builder
	piece := func(text string) {
		b.WriteString(lineBreaks.Replace(unescape(text)))
	}
	at := 0
	eachMergeTag(value, func(from, to int) {
		piece(value[at:from])
		b.WriteString(value[from:to])
		at = to
	})
	piece(value[at:])
	return strings.TrimFunc(b.String(), func(r rune) bool { return r <= ' ' })
}

// unescape resolves character references by the rules for attributes, which differ
// from those for text: in ?a=1&copy=2 nothing is one.
func unescape(text string) string {
	if !strings.Contains(text, "&") {
		return text
	}
	z := html.NewTokenizer(strings.NewReader(`<a href="` + strings.ReplaceAll(text, `"`, "&quot;") + `">`))
	if z.Next() != html.StartTagToken {
		return text
	}
	z.TagName()
	_, val, _ := z.TagAttr()
	return string(val)
}
