package jsonform

import (
	"slices"

	"github.com/musterhq/muster/internal/rawjson"
)

// maxWordBytes bounds the words of choices.
const maxWordBytes = 128

// Object is a JSON object with its place in the definition.
type Object struct {
	Path   string
	fields []field
}

type field struct {
	name string
	raw  []byte
}

// ReadObject reads an object and refuses repeated keys.
func ReadObject(path string, raw []byte) (*Object, error) {
	if rawjson.KindOf(raw) != rawjson.Object {
		return nil, Faultf(path, "must be an object, not %s", KindName(raw))
	}
	o := &Object{Path: path}
	seen := map[string]bool{}
	var err error
	rawjson.Each(raw, func(key, value []byte) bool {
		name, ok := rawjson.Unquote(nil, key)
		switch {
		case !ok:
			err = Faultf(path, "must have keys of valid Unicode, without half surrogate pairs")
		case seen[string(name)]:
			err = Faultf(o.At(string(name)), "must be given only once")
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

// At is the path of a field.
func (o *Object) At(name string) string { return Join(o.Path, name) }

// Without is the object without a field.
func (o *Object) Without(name string) *Object {
	out := &Object{Path: o.Path}
	for _, f := range o.fields {
		if f.name != name {
			out.fields = append(out.fields, f)
		}
	}
	return out
}

// Len is the number of fields.
func (o *Object) Len() int { return len(o.fields) }

// Each calls visit for each field in the order given until it returns an error.
func (o *Object) Each(visit func(name string, raw []byte) error) error {
	for _, f := range o.fields {
		if err := visit(f.name, f.raw); err != nil {
			return err
		}
	}
	return nil
}

// Get is the raw value of a field, nil when it is not given.
func (o *Object) Get(name string) []byte {
	for _, f := range o.fields {
		if f.name == name {
			return f.raw
		}
	}
	return nil
}

// Given is Get where null is as good as nothing.
func (o *Object) Given(name string) []byte {
	raw := o.Get(name)
	if rawjson.KindOf(raw) == rawjson.Null {
		return nil
	}
	return raw
}

// Need is Get for a field that must be there.
func (o *Object) Need(name string) ([]byte, error) {
	raw := o.Get(name)
	if raw == nil {
		return nil, Faultf(o.At(name), "must be given")
	}
	return raw, nil
}

// Only refuses fields that are not among the names.
func (o *Object) Only(what string, names ...string) error {
	for _, f := range o.fields {
		if !slices.Contains(names, f.name) {
			hint := ""
			if near := Near(f.name, names); near != "" {
				hint = "; did you mean " + near + "?"
			}
			return Faultf(o.At(f.name), "must not be given: %s has the fields %s%s", what, List(names), hint)
		}
	}
	return nil
}

// NeedText is [Text] for a field that must be there and not empty.
func (o *Object) NeedText(name string, max int) (string, error) {
	raw, err := o.Need(name)
	if err != nil {
		return "", err
	}
	s, err := Text(o.At(name), raw, max)
	if err == nil && s == "" {
		err = Faultf(o.At(name), "must not be empty")
	}
	return s, err
}

// OneOf reads a field that must be one of the words.
func OneOf[T ~string](o *Object, name string, words []T) (T, error) {
	raw, err := o.Need(name)
	if err != nil {
		return "", err
	}
	s, err := Text(o.At(name), raw, maxWordBytes)
	if err != nil {
		return "", err
	}
	if !slices.Contains(words, T(s)) {
		return "", Faultf(o.At(name), "must be one of %s", Choice(words))
	}
	return T(s), nil
}

// Bool reads an optional field.
func (o *Object) Bool(name string, otherwise bool) (bool, error) {
	raw := o.Get(name)
	switch {
	case raw == nil:
		return otherwise, nil
	case rawjson.KindOf(raw) == rawjson.True:
		return true, nil
	case rawjson.KindOf(raw) == rawjson.False:
		return false, nil
	}
	return false, Faultf(o.At(name), "must be true or false, not %s", KindName(raw))
}
