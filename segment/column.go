package segment

import (
	"strings"

	"github.com/musterhq/muster/internal/rawjson"
)

// Column is a field of profiles whose conditions look at one value of a profile and
// nothing else: it can be kept apart from the profiles, and a condition judged once for
// all that have the same value.
type Column struct {
	// Field is the name as [Attribute] has it, such as "geo.country".
	Field string
	path  []string // below geo or attributes; nil for a name
}

// NewColumn returns the column of a field, or false for a field whose conditions look at
// more than one value, or at values that hardly two profiles share.
func NewColumn(field string) (Column, bool) {
	if field == FieldFirstName || field == FieldLastName {
		return Column{Field: field}, true
	}
	path := strings.Split(field, ".")
	if len(path) < 2 || path[0] != FieldGeo && path[0] != FieldAttributes {
		return Column{}, false
	}
	return Column{Field: field, path: path}, true
}

// Value is what a profile has there: the text of a name, else JSON in canonical text;
// empty for nothing. It is part of f.
func (c *Column) Value(f *Fields) []byte {
	switch {
	case c.Field == FieldFirstName:
		return f.FirstName
	case c.Field == FieldLastName:
		return f.LastName
	case c.path[0] == FieldGeo:
		raw, _ := rawjson.Lookup(f.Geo, c.path[1:])
		return raw
	}
	raw, _ := rawjson.Lookup(f.Attributes, c.path[1:])
	return raw
}

// MatchValue is [Attribute.Match] for all profiles that have the value in the column of
// the condition's field.
func (a *Attribute) MatchValue(value []byte, atMs int64) bool {
	var f Facts
	switch a.Field {
	case FieldFirstName:
		f.Fields.FirstName = value
	case FieldLastName:
		f.Fields.LastName = value
	default:
		return a.Predicate.MatchValue(value, atMs)
	}
	return a.Match(&f, atMs)
}
