package merge

import (
	"html"
	"strings"
)

// htmlPlace follows HTML as browsers split it into tags, attributes and text.
// Only the author's text moves it: escaped values cannot.
type htmlPlace struct {
	state htmlState
	name  string // of the element whose tag is being read, lower case
	end   bool   // it is an end tag
	attr  string // of the attribute being read, lower case

	kind attrKind
	link linkPlace
	css  cssPlace

	dashes int    // at the end of a comment's text so far
	typ    string // of a script
	raw    string // element whose content is no markup
	json   jsonPlace
}

type htmlState uint8

const (
	inText        htmlState = iota
	inOpen                  // after <
	inEndOpen               // after </
	inName                  // a tag's name
	inTag                   // between attributes
	inAttr                  // an attribute's name
	inAfterAttr             // behind it
	inBeforeValue           // after =
	inDouble                // "value"
	inSingle                // 'value'
	inUnquoted              // value
	inDecl                  // after <! up to where it is clear what it is
	inBogus                 // up to the next >
	inComment               // <!-- … -->
	inCondHead              // <!--[if … ]>
	inRaw                   // style, script, title and their like
)

type attrKind uint8

const (
	attrPlain attrKind = iota
	attrLink
	attrStyle
	attrScript // runs
	attrNoTags // meaning depends on other attributes
)

// Elements whose content is not markup.
var rawElements = map[string]bool{
	"style": true, "script": true, "title": true, "textarea": true, "xmp": true,
	"iframe": true, "noembed": true, "noframes": true, "plaintext": true,
}

var linkAttrs = map[string]bool{
	"action": true, "archive": true, "background": true, "cite": true, "classid": true, "codebase": true,
	"data": true, "formaction": true, "href": true, "icon": true, "longdesc": true, "manifest": true,
	"ping": true, "poster": true, "profile": true, "usemap": true,
}

func kindOf(element, attr string) attrKind {
	if i := strings.LastIndexByte(attr, ':'); i >= 0 {
		attr = attr[i+1:]
	}
	bare := strings.TrimPrefix(attr, "data-")
	switch {
	case strings.HasPrefix(attr, "on"), attr == "srcdoc":
		return attrScript
	case attr == "style":
		return attrStyle
	case element == "meta" && attr == "content":
		return attrNoTags
	case linkAttrs[bare], strings.Contains(bare, "src"), strings.Contains(bare, "url"), strings.Contains(bare, "uri"):
		if element == "script" || element == "base" {
			return attrScript
		}
		return attrLink
	}
	return attrPlain
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func (p *htmlPlace) literal(s string) string {
	for i := 0; i < len(s); {
		n, reason := p.step(s[i:])
		if reason != "" {
			return reason
		}
		i += n
	}
	return ""
}

// step reads the beginning of s, which is not empty, and returns how much.
func (p *htmlPlace) step(s string) (n int, reason string) {
	c := s[0]
	switch p.state {
	case inText:
		if i := strings.IndexByte(s, '<'); i >= 0 {
			p.state = inOpen
			return i + 1, ""
		}
		return len(s), ""
	case inOpen, inEndOpen:
		p.open(c)
		if p.state == inText || p.state == inName {
			return 0, "" // read again as what it is
		}
	case inName:
		switch {
		case c == '>':
			p.closeTag()
		case c == '/' || isSpace(c):
			p.state = inTag
		default:
			p.name = grow(p.name, c)
		}
	case inTag:
		switch {
		case c == '>':
			p.closeTag()
		case c == '/' || isSpace(c):
		default:
			p.state, p.attr = inAttr, ""
			p.attr = grow(p.attr, c) // "=" at its start belongs to the name
		}
	case inAttr:
		switch {
		case c == '>' || c == '/' || isSpace(c):
			p.state = inAfterAttr
			return 0, ""
		case c == '=':
			p.state = inBeforeValue
		default:
			p.attr = grow(p.attr, c)
		}
	case inAfterAttr:
		switch {
		case c == '=':
			p.state = inBeforeValue
		case isSpace(c):
		default:
			p.state = inTag
			return 0, ""
		}
	case inBeforeValue:
		switch {
		case isSpace(c):
		case c == '>':
			p.closeTag()
		default:
			p.beginValue()
			switch c {
			case '"':
				p.state = inDouble
			case '\'':
				p.state = inSingle
			default:
				p.state = inUnquoted
				return 0, ""
			}
		}
	case inDouble:
		return p.value(s, strings.IndexByte(s, '"'))
	case inSingle:
		return p.value(s, strings.IndexByte(s, '\''))
	case inUnquoted:
		i := strings.IndexAny(s, "> \t\n\r\f")
		if i >= 0 && s[i] == '>' {
			n, reason := p.value(s, i)
			p.state = inTag
			return n - 1, reason // > is read again
		}
		return p.value(s, i)
	case inDecl:
		switch {
		case strings.HasPrefix(s, "--"):
			p.state, p.dashes = inComment, 2
			if strings.HasPrefix(s, "--[if") {
				p.state = inCondHead
			}
			return 2, ""
		case s == "-":
			return 1, "" // a tag behind it is refused
		default:
			p.state = inBogus
			return 0, ""
		}
	case inBogus:
		if c == '>' {
			p.state = inText
		}
	case inCondHead:
		// Conditions are short; looking further would cost a hostile text's square.
		if i := strings.Index(s[:min(len(s), 256)], "]>"); i >= 0 {
			p.state = inText
			return i + 2, ""
		}
		p.state, p.dashes = inComment, 0
		return 0, ""
	case inComment:
		switch {
		case c == '-':
			p.dashes++
		case c == '>' && p.dashes >= 2:
			p.state = inText
		case c == '!' && p.dashes >= 2 && strings.HasPrefix(s, "!>"):
			p.state = inText
			return 2, ""
		default:
			p.dashes = 0
		}
	case inRaw:
		return p.rawText(s), ""
	}
	return 1, ""
}

// open is at the character after < or </.
func (p *htmlPlace) open(c byte) {
	end := p.state == inEndOpen
	switch {
	case isLetter(c):
		p.state, p.name, p.end, p.typ = inName, "", end, ""
	case end && c == '>':
		p.state = inText
	case end, c == '?':
		p.state = inBogus
		if c == '>' {
			p.state = inText
		}
	case c == '/':
		p.state = inEndOpen
	case c == '!':
		p.state = inDecl
	default:
		p.state = inText
	}
}

func (p *htmlPlace) closeTag() {
	p.state = inText
	if !p.end && rawElements[p.name] {
		p.state, p.raw, p.json, p.css = inRaw, p.name, jsonPlace{}, cssPlace{}
	}
}

func (p *htmlPlace) beginValue() {
	p.kind, p.link, p.css = kindOf(p.name, p.attr), linkPlace{}, cssPlace{}
	if p.name == "script" && p.attr == "type" {
		p.typ = ""
	}
}

// value takes the attribute's text up to its end, which is -1 when it continues
// behind a tag.
func (p *htmlPlace) value(s string, end int) (n int, reason string) {
	n = len(s)
	if end >= 0 {
		s, n = s[:end], end+1
		p.state = inTag
	}
	if strings.IndexByte(s, '&') >= 0 {
		s = html.UnescapeString(s)
	}
	switch {
	case p.kind == attrLink:
		return n, p.link.literal(s)
	case p.kind == attrStyle:
		return n, p.css.literal(s)
	case p.name == "script" && p.attr == "type":
		p.typ += s
	}
	return n, ""
}

// rawText takes the content of an element up to its end tag.
func (p *htmlPlace) rawText(s string) int {
	content, n := s, len(s)
	for at := 0; p.raw != "plaintext"; {
		i := strings.Index(s[at:], "</")
		if i < 0 {
			break
		}
		at += i
		rest := s[at+2:]
		if len(rest) > len(p.raw) && strings.EqualFold(rest[:len(p.raw)], p.raw) {
			if c := rest[len(p.raw)]; c == '>' || c == '/' || isSpace(c) {
				content, n = s[:at], at+2+len(p.raw)
				p.state, p.name, p.end = inName, p.raw, true
				break
			}
		}
		at += 2
	}
	switch p.raw {
	case "script":
		p.json.literal(content)
	case "style":
		p.css.literal(content)
	}
	if p.state == inRaw && endsInPrefix(content, "</"+p.raw) {
		p.dashes = -1
	} else {
		p.dashes = 0
	}
	return n
}

// endsInPrefix reports whether s ends with a beginning of word.
func endsInPrefix(s, word string) bool {
	for n := min(len(s), len(word)); n > 0; n-- {
		if strings.EqualFold(s[len(s)-n:], word[:n]) {
			return true
		}
	}
	return false
}

// grow appends c to a name in lower case; names beyond any known one stay cut.
func grow(name string, c byte) string {
	if len(name) >= 64 {
		return name
	}
	return name + string([]byte{lower(c)})
}

const (
	reasonName  = "a tag cannot stand inside of an HTML tag or be its name or attribute; put it in text or in a quoted attribute value, and write &lt; for a plain <"
	reasonQuote = `put the attribute's value in quotes: name="{{…}}"`
	reasonRuns  = "a tag cannot stand in script; only application/json and application/ld+json scripts may contain tags"
)

func (p *htmlPlace) tag() (escaper, string) {
	switch p.state {
	case inText, inBogus:
		return escHTML, ""
	case inComment:
		p.dashes = 0
		return escComment, ""
	case inDouble, inSingle:
		switch p.kind {
		case attrLink:
			e, reason := p.link.tag()
			return e | escInHTML, reason
		case attrStyle:
			e, reason := p.css.tag()
			return e | escInHTML, reason
		case attrScript:
			return 0, "a tag cannot stand in the attribute " + p.attr + ", whose content runs; leave it out"
		case attrNoTags:
			return 0, "a tag cannot stand in a meta element; write its content as text"
		}
		if p.name == "script" {
			return 0, reasonRuns
		}
		return escHTML, ""
	case inBeforeValue, inUnquoted:
		return 0, reasonQuote
	case inRaw:
		if p.dashes < 0 {
			return 0, reasonName
		}
		switch p.raw {
		case "title", "textarea":
			return escHTML, ""
		case "style":
			return p.css.tag()
		case "script":
			switch strings.ToLower(strings.TrimSpace(p.typ)) {
			case "application/json", "application/ld+json":
				return p.json.tag()
			}
			return 0, reasonRuns
		}
		return 0, "a tag cannot stand inside of <" + p.raw + ">; put it in ordinary text"
	default:
		return 0, reasonName
	}
}
