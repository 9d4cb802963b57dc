package merge

import (
	"fmt"
	"strings"
)

// placer follows the author's text and says how the value of the next tag is
// escaped. Reasons are "" or the end of a SyntaxError.
type placer interface {
	// literal takes the text up to the next tag or the end.
	literal(s string) (reason string)
	// tag is asked at each tag.
	tag() (e escaper, reason string)
}

func newPlacer(mode Mode) (placer, error) {
	switch mode {
	case Text:
		return fixedPlace(escText), nil
	case Header:
		return fixedPlace(escHeader), nil
	case HTML:
		return &htmlPlace{}, nil
	case JSON:
		return &jsonPlace{}, nil
	case URL:
		return &urlPlace{}, nil
	case Target:
		return &targetPlace{}, nil
	default:
		return nil, fmt.Errorf("merge: no such mode: %d", mode)
	}
}

// fixedPlace escapes alike everywhere.
type fixedPlace escaper

func (p fixedPlace) literal(string) string { return "" }
func (p fixedPlace) tag() (escaper, string) {
	return escaper(p), ""
}

// jsonPlace knows whether it is inside of a string.
type jsonPlace struct{ in, escaped bool }

func (p *jsonPlace) literal(s string) string {
	for i := 0; i < len(s); i++ {
		switch {
		case p.escaped:
			p.escaped = false
		case p.in && s[i] == '\\':
			p.escaped = true
		case s[i] == '"':
			p.in = !p.in
		}
	}
	return ""
}

func (p *jsonPlace) tag() (escaper, string) {
	switch {
	case p.escaped:
		return 0, `a backslash stands before the tag and would change its first character; write \\ for a backslash`
	case p.in:
		return escJSONIn, ""
	default:
		return escJSONValue, ""
	}
}

// urlPlace is a text that is one link.
type urlPlace struct{ link linkPlace }

func (p *urlPlace) literal(s string) string { return p.link.literal(s) }
func (p *urlPlace) tag() (escaper, string)  { return p.link.tag() }

// targetPlace is the address of a request. A value that could bring a slash, a
// question mark or a hash would choose what is asked of the host.
type targetPlace struct{ link linkPlace }

func (p *targetPlace) literal(s string) string { return p.link.literal(s) }
func (p *targetPlace) tag() (escaper, string) {
	e, reason := p.link.tag()
	if e == escURLPath {
		e = escURLQuery
	}
	return e, reason
}

// linkPlace follows a link.
type linkPlace struct {
	prefix      string // what could still become a scheme
	started     bool   // something stands in the link, be it a tag
	valued      bool   // a tag stands in the link
	schemeKnown bool   // it is decided whether the link has a scheme, and which
	query       bool   // behind ? or #
	opaque      bool   // mailto, tel, sms
	running     bool   // a scheme that runs code
}

const reasonScheme = "a tag cannot stand before a link's colon; write the beginning as text, for example https://example.com/{{path}}"

func (p *linkPlace) literal(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c <= ' ' || c == 0x7f {
			continue // browsers skip them before a scheme, and elsewhere they decide nothing
		}
		p.started = true
		switch {
		case c == '?', c == '#':
			p.schemeKnown, p.query = true, true
		case p.valued && (c == '&' || c == '='):
			// The value before may have brought the question mark.
			p.schemeKnown, p.query = true, true
		case p.schemeKnown:
		case c == '/':
			p.schemeKnown = true
		case c == ':':
			if p.valued {
				return reasonScheme
			}
			p.schemeKnown = true
			switch strings.ToLower(p.prefix) {
			case "mailto", "tel", "sms":
				p.opaque = true
			case "javascript", "vbscript", "data":
				p.running = true
			}
		case len(p.prefix) < 16:
			p.prefix += string(c)
		}
	}
	return ""
}

func (p *linkPlace) tag() (escaper, string) {
	first := !p.started
	p.started, p.valued = true, true
	switch {
	case p.running:
		return 0, "a tag cannot stand in a link that runs code; use an https link"
	case first:
		return escURLWhole, ""
	case !p.schemeKnown:
		return escURLScheme, ""
	case p.query:
		return escURLQuery, ""
	case p.opaque:
		return escURLOpaque, ""
	default:
		return escURLPath, ""
	}
}

// cssPlace follows style text as far as to know whether a link stands in url().
type cssPlace struct {
	tail string // the last few characters
	url  bool
	link linkPlace
}

func (p *cssPlace) literal(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if p.url {
			switch c {
			case ')':
				p.url = false
			case '"', '\'':
			default:
				if reason := p.link.literal(s[i : i+1]); reason != "" {
					return reason
				}
			}
			continue
		}
		if p.tail += strings.ToLower(string(rune(c))); len(p.tail) > 4 {
			p.tail = p.tail[len(p.tail)-4:]
		}
		if p.tail == "url(" {
			p.url, p.link, p.tail = true, linkPlace{}, ""
		}
	}
	return ""
}

func (p *cssPlace) tag() (escaper, string) {
	if p.url {
		return p.link.tag()
	}
	p.tail = ""
	return escCSS, ""
}
