package query

import (
	"strings"

	"github.com/musterhq/muster/segment"
)

// needles are texts of which the text of an event's properties has one in it whenever a
// predicate holds for the event; nil where none are known. Looking for a text in a text
// costs a small part of what reading it as JSON does, so events without it are left out
// before that.
//
// Properties are canonical text: in strings only the quotation mark, the backslash and
// control characters are escaped. So a string without any of these stands there as it is,
// wherever it is in the object.
func needles(p *segment.Predicate) []string {
	before, behind := `"`, `"`
	switch p.Op {
	case segment.OpEq, segment.OpIn:
	case segment.OpStartsWith:
		behind = ""
	case segment.OpEndsWith:
		before = ""
	case segment.OpContains:
		before, behind = "", ""
	default:
		return nil
	}
	var out []string
	for _, v := range p.Values {
		if v.Kind != segment.ValueString || v.Str == "" || !standsAsItIs(v.Str) {
			return nil
		}
		out = append(out, before+v.Str+behind)
	}
	return out
}

// standsAsItIs reports whether nothing of a string is escaped in canonical text.
func standsAsItIs(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c == '"' || c == '\\' || c == 0x7f }) < 0
}

// needle is the condition on the text of properties, after " AND ", "" for none.
func (b *builder) needle(p *segment.Predicate) string {
	var found []string
	for _, text := range needles(p) {
		if b.d.Sieve("e.properties", "") == "" {
			return ""
		}
		found = append(found, b.d.Sieve("e.properties", b.bind(text)))
	}
	if len(found) == 0 {
		return ""
	}
	return " AND (" + strings.Join(found, " OR ") + ")"
}
