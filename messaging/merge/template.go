package merge

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/clip"
)

const (
	// MaxTemplate bounds the text given to Parse, in bytes.
	MaxTemplate = 2 << 20
	// MaxTags bounds the tags of one text.
	MaxTags = 10_000
	// MaxValue is how many bytes of one value are used.
	MaxValue = 64 << 10
	// MaxOutput bounds what one AppendTo adds, in bytes.
	MaxOutput = 8 << 20

	maxPath = 256 // bytes of one path
)

// ErrTooLarge is returned when a rendered text exceeds MaxOutput.
var ErrTooLarge = fmt.Errorf("merge: the text with its values exceeds %d bytes; shorten the text or the values", MaxOutput)

// Mode is where a text goes, which decides how values are escaped.
type Mode uint8

const (
	// Text is plain text: message bodies of SMS, the text part of an e-mail.
	Text Mode = iota + 1
	// Header is one line of text: a subject, a name, a title.
	Header
	// HTML is a document or a fragment.
	HTML
	// JSON is a JSON text.
	JSON
	// URL is one whole link.
	URL
	// Target is the address of a request that this service sends: its host is
	// written out, and a value is data in the path as in the query.
	Target
)

// Template is a parsed text. It does not change and may be used by many
// goroutines at once.
type Template struct {
	parts []part
	tail  string
	fixed int // bytes of literals
}

// part is a literal followed by a tag.
type part struct {
	literal  string
	path     []string // nil for a string tag
	fallback string
	// defaulted reports that the tag has a default, which may be empty.
	defaulted bool
	escape    escaper
}

// Lookup returns the value a path names and whether there is one.
type Lookup func(path []string) (value string, ok bool)

// SyntaxError is what Parse returns for a text whose tags cannot be used. Its
// message names the place and the remedy.
type SyntaxError struct {
	// Offset is the byte offset of the tag, Line and Column its place counted
	// from 1, Column in characters.
	Offset, Line, Column int
	// Reason says what is wrong and what to write instead.
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("merge tag at line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// Parse reads text for use in mode. The error is a *SyntaxError when a tag is
// wrong.
func Parse(text string, mode Mode) (*Template, error) {
	if len(text) > MaxTemplate {
		return nil, fmt.Errorf("merge: the text has %d bytes, at most %d are allowed", len(text), MaxTemplate)
	}
	place, err := newPlacer(mode)
	if err != nil {
		return nil, err
	}
	t := &Template{}
	for pos := 0; ; {
		open := strings.Index(text[pos:], "{{")
		if open < 0 {
			t.tail = text[pos:]
			t.fixed += len(t.tail)
			if reason := place.literal(t.tail); reason != "" {
				return nil, syntaxError(text, pos, reason)
			}
			return t, nil
		}
		open += pos
		p := part{literal: text[pos:open]}
		if reason := place.literal(p.literal); reason != "" {
			return nil, syntaxError(text, pos, reason)
		}
		inner, end, reason := cutTag(text, open, mode)
		if reason == "" {
			p.path, p.fallback, reason = parseTag(inner)
			p.defaulted = p.path != nil && strings.Contains(inner, "|") // no name has one
		}
		if reason == "" {
			p.escape, reason = place.tag()
		}
		if reason == "" && len(t.parts) == MaxTags {
			reason = fmt.Sprintf("at most %d tags are allowed in a text", MaxTags)
		}
		if reason != "" {
			return nil, syntaxError(text, open, reason)
		}
		t.fixed += len(p.literal)
		t.parts = append(t.parts, p)
		pos = end
	}
}

// AppendTo appends the text with its values to dst. The values come from
// lookup, which may be nil. The only error is ErrTooLarge; dst is then returned
// as it was.
func (t *Template) AppendTo(dst []byte, lookup Lookup) ([]byte, error) {
	start := len(dst)
	for i := range t.parts {
		p := &t.parts[i]
		dst = append(dst, p.literal...)
		value := p.fallback
		if p.path != nil && lookup != nil {
			if v, ok := lookup(p.path); ok && strings.TrimSpace(v) != "" {
				value = v
			}
		}
		dst = p.escape.append(dst, clip.Text(value, MaxValue))
		if len(dst)-start > MaxOutput {
			return dst[:start], ErrTooLarge
		}
	}
	dst = append(dst, t.tail...)
	if len(dst)-start > MaxOutput {
		return dst[:start], ErrTooLarge
	}
	return dst, nil
}

// Render is AppendTo to a new string.
func (t *Template) Render(lookup Lookup) (string, error) {
	b, err := t.AppendTo(make([]byte, 0, t.fixed+32*len(t.parts)), lookup)
	return string(b), err
}

// Missing returns the first tag that leaves a hole in the text: it has no default, and
// lookup has nothing for it. It is "" when there is none.
func (t *Template) Missing(lookup Lookup) (tag string) {
	for i := range t.parts {
		p := &t.parts[i]
		if p.path == nil || p.defaulted {
			continue
		}
		if v, ok := lookup(p.path); !ok || strings.TrimSpace(v) == "" {
			return strings.Join(p.path, ".")
		}
	}
	return ""
}

// Paths calls f with the path of each tag in order, repeats included.
func (t *Template) Paths(f func(path []string)) {
	for i := range t.parts {
		if t.parts[i].path != nil {
			f(t.parts[i].path)
		}
	}
}

// Literal is the text without its tags.
func (t *Template) Literal() string {
	var b strings.Builder
	for i := range t.parts {
		b.WriteString(t.parts[i].literal)
	}
	return b.String() + t.tail
}

// Static reports whether the text has no tags: all results are the same.
func (t *Template) Static() bool { return len(t.parts) == 0 }

// IsSyntax reports whether err is about the text's tags, and returns it.
func IsSyntax(err error) (*SyntaxError, bool) {
	var e *SyntaxError
	ok := errors.As(err, &e)
	return e, ok
}

func syntaxError(text string, offset int, reason string) error {
	before := text[:offset]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return &SyntaxError{Offset: offset, Line: line, Column: column, Reason: reason}
}
