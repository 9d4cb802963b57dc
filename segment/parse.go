package segment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/jsontext"
)

// Parse reads a definition from JSON. It is strict: unknown fields, repeated
// keys, wrong types and everything beyond the limits are refused. The error is
// a *[DefinitionError] for the first fault found; the result is normal (see the
// package comment).
func Parse(data []byte, limits Limits) (*Node, error) {
	d := &decoder{limits: limits.withDefaults()}
	if len(data) > d.limits.Bytes {
		return nil, fault("", "must have at most %d bytes and %d conditions, it has %d bytes; "+
			"split it into segments that refer to each other", d.limits.Bytes, d.limits.Conditions, len(data))
	}
	if !utf8.Valid(data) {
		return nil, fault("", "must be valid UTF-8")
	}
	var text bytes.Buffer
	if err := json.Compact(&text, data); err != nil {
		return nil, fault("", "must be valid JSON: %s", err)
	}
	n, err := d.node("", text.Bytes(), 1)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// decoder walks the compacted text of one definition.
type decoder struct {
	limits     Limits
	conditions int // seen so far
}

func fault(path, reason string, args ...any) *DefinitionError {
	return &DefinitionError{Path: path, Reason: fmt.Sprintf(reason, args...)}
}

// object is a JSON object with its place in the definition.
type object struct {
	path   string
	fields []field
}

type field struct {
	name string
	raw  []byte
}

// object reads an object and refuses repeated keys.
func (d *decoder) object(path string, raw []byte) (*object, error) {
	if jsontext.KindOf(raw) != jsontext.Object {
		return nil, fault(path, "must be an object, not %s", kindName(raw))
	}
	o := &object{path: path}
	seen := map[string]bool{}
	var err error
	jsontext.Each(raw, func(key, value []byte) bool {
		name, ok := jsontext.Unquote(nil, key)
		switch {
		case !ok:
			err = fault(path, "must have keys of valid Unicode, without half surrogate pairs")
		case seen[string(name)]:
			err = fault(o.at(string(name)), "must be given only once")
		default:
			seen[string(name)] = true
			o.fields = append(o.fields, field{string(name), value})
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return o, nil
}

// at is the path of a field.
func (o *object) at(name string) string { return join(o.path, name) }

func join(path, name string) string {
	if !plainName(name) {
		// A key out of the blue: quoted, so that the path stays readable.
		if len(name) > 64 {
			name = string(bytes.ToValidUTF8([]byte(name[:64]), nil)) + "…"
		}
		return path + "[" + string(jsontext.AppendString(nil, name)) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func plainName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c != '_' && !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// get is the raw value of a field, nil when it is not given.
func (o *object) get(name string) []byte {
	for _, f := range o.fields {
		if f.name == name {
			return f.raw
		}
	}
	return nil
}

// need is get for a field that must be there.
func (o *object) need(name string) ([]byte, error) {
	raw := o.get(name)
	if raw == nil {
		return nil, fault(o.at(name), "must be given")
	}
	return raw, nil
}

// only refuses fields that are not among the names.
func (o *object) only(what string, names ...string) error {
	for _, f := range o.fields {
		if !slices.Contains(names, f.name) {
			return fault(o.at(f.name), "must not be given: %s has the fields %s", what, list(names))
		}
	}
	return nil
}

// list joins words as a sentence does.
func list[T ~string](words []T) string {
	var b []byte
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			b = append(b, " and "...)
		default:
			b = append(b, ", "...)
		}
		b = append(b, w...)
	}
	return string(b)
}

func choice[T ~string](words []T) string {
	var b []byte
	for i, w := range words {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, w...)
	}
	return string(b)
}

func kindName(raw []byte) string {
	switch jsontext.KindOf(raw) {
	case jsontext.Null:
		return "null"
	case jsontext.True, jsontext.False:
		return "a boolean"
	case jsontext.Number:
		return "a number"
	case jsontext.String:
		return "a string"
	case jsontext.Array:
		return "an array"
	}
	return "an object"
}

// text reads a string of at most max bytes.
func text(path string, raw []byte, max int) (string, error) {
	if jsontext.KindOf(raw) != jsontext.String {
		return "", fault(path, "must be a string, not %s", kindName(raw))
	}
	b, ok := jsontext.Unquote(nil, raw)
	switch {
	case !ok:
		return "", fault(path, "must be valid Unicode, without half surrogate pairs")
	case len(b) > max:
		return "", fault(path, "must have at most %d bytes, it has %d", max, len(b))
	case bytes.IndexByte(b, 0) >= 0:
		return "", fault(path, "must not contain the NUL character")
	}
	return string(b), nil
}

// needText is text for a field that must be there and not empty.
func (o *object) needText(name string, max int) (string, error) {
	raw, err := o.need(name)
	if err != nil {
		return "", err
	}
	s, err := text(o.at(name), raw, max)
	if err == nil && s == "" {
		err = fault(o.at(name), "must not be empty")
	}
	return s, err
}

// oneOf reads a field that must be one of the words.
func oneOf[T ~string](o *object, name string, words []T) (T, error) {
	raw, err := o.need(name)
	if err != nil {
		return "", err
	}
	s, err := text(o.at(name), raw, maxIDBytes)
	if err != nil {
		return "", err
	}
	if !slices.Contains(words, T(s)) {
		return "", fault(o.at(name), "must be one of %s", choice(words))
	}
	return T(s), nil
}

// boolean reads an optional field.
func (o *object) boolean(name string, otherwise bool) (bool, error) {
	raw := o.get(name)
	switch {
	case raw == nil:
		return otherwise, nil
	case jsontext.KindOf(raw) == jsontext.True:
		return true, nil
	case jsontext.KindOf(raw) == jsontext.False:
		return false, nil
	}
	return false, fault(o.at(name), "must be true or false, not %s", kindName(raw))
}

// elements reads an array. Beyond max elements it stops and reports their
// number as max+1.
func elements(path string, raw []byte, max int) ([][]byte, error) {
	if jsontext.KindOf(raw) != jsontext.Array {
		return nil, fault(path, "must be an array, not %s", kindName(raw))
	}
	var out [][]byte
	jsontext.EachElement(raw, func(value []byte) bool {
		out = append(out, value)
		return len(out) <= max
	})
	return out, nil
}

// number reads a finite float64.
func number(path string, raw []byte) (float64, error) {
	if jsontext.KindOf(raw) != jsontext.Number {
		return 0, fault(path, "must be a number, not %s", kindName(raw))
	}
	f, ok := jsontext.Float(raw)
	if !ok {
		return 0, fault(path, "must be a number that fits 64-bit floating point")
	}
	if f == 0 {
		f = 0 // -0 is 0
	}
	return f, nil
}
