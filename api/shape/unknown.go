package shape

import (
	"slices"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/rawjson"
)

// Unknown finds a field of a JSON value that the shape does not have, at any depth.
// The text is canonical (see [jsonform.Canonical]). The error is a
// [*jsonform.UnknownError]. What a value is otherwise is not looked at.
func (s *Schema) Unknown(text []byte) error { return s.unknown("", text) }

func (s *Schema) unknown(path string, raw []byte) (err error) {
	if s.parsed {
		return nil
	}
	switch rawjson.KindOf(raw) {
	case rawjson.Array:
		n, items := 0, s.entry()
		rawjson.EachElement(raw, func(value []byte) bool {
			if items != nil {
				err = items.unknown(jsonform.Index(path, n), value)
			}
			n++
			return err == nil
		})
	case rawjson.Object:
		fields, open := s.takes(raw)
		if open {
			return nil
		}
		rawjson.Each(raw, func(key, value []byte) bool {
			b, _ := rawjson.Unquote(nil, key) // canonical: it is valid
			name := string(b)
			f, known := fields[name]
			switch {
			case s.values != nil:
				err = s.values.unknown(jsonform.Join(path, name), value)
			case !known:
				err = jsonform.NoField(path, name, names(fields))
			case f != nil:
				err = f.unknown(jsonform.Join(path, name), value)
			}
			return err == nil
		})
	}
	return err
}

// Null is the name of a field of an object that is null though its shape takes no null,
// of those that asked holds for; "" for none. Fields that must be given are left to who
// reads them. The text is canonical.
func (s *Schema) Null(text []byte, asked func(name string) bool) (name string) {
	if rawjson.KindOf(text) != rawjson.Object {
		return ""
	}
	fields, _ := s.takes(text)
	rawjson.Each(text, func(key, value []byte) bool {
		if rawjson.KindOf(value) != rawjson.Null {
			return true
		}
		b, _ := rawjson.Unquote(nil, key) // canonical: it is valid
		if f := fields[string(b)]; f != nil && !f.nullable && !s.requires(string(b)) && asked(string(b)) && (f.kind != "" || len(f.choices) > 0) {
			name = string(b)
		}
		return name == ""
	})
	return name
}

func (s *Schema) requires(name string) bool {
	return slices.ContainsFunc(s.fields, func(f Field) bool { return f.required && f.name == name })
}

// entry is the shape of an array's entries, nil for any.
func (s *Schema) entry() *Schema {
	for _, c := range s.choices {
		if c.items != nil {
			return c.items
		}
	}
	return s.items
}

// takes are the fields of an object of the shape, nil for one that several choices
// have; open says that it may have any.
func (s *Schema) takes(raw []byte) (fields map[string]*Schema, open bool) {
	if len(s.choices) == 0 {
		fields = map[string]*Schema{}
		for _, f := range s.fields {
			fields[f.name] = f.schema
		}
		return fields, s.free || s.open || s.kind != "object"
	}
	for _, c := range s.choices {
		if c.chosen(raw) {
			return c.takes(raw)
		}
	}
	fields = map[string]*Schema{}
	for _, c := range s.choices {
		if c.kind != "object" && len(c.choices) == 0 {
			continue // the value is an object
		}
		more, any := c.takes(raw)
		if any {
			return nil, true
		}
		for name, f := range more {
			if _, twice := fields[name]; twice {
				f = nil
			}
			fields[name] = f
		}
	}
	return fields, false
}

// chosen reports whether an object has the values by which s is told apart from other
// choices: those of fields that take one text only.
func (s *Schema) chosen(raw []byte) bool {
	found := false
	for _, f := range s.fields {
		only := f.schema.only()
		if only == "" {
			continue
		}
		value, _ := rawjson.Lookup(raw, []string{f.name})
		if found = value != nil && rawjson.Equal(value, only); !found {
			return false
		}
	}
	return found
}

// only is the one text that a value may be, "" where it may be others.
func (s *Schema) only() string {
	for _, m := range s.more {
		if values, is := m.Value.([]string); is && m.Name == "enum" && len(values) == 1 {
			return values[0]
		}
	}
	return ""
}

// names lists fields.
func names(fields map[string]*Schema) (out []string) {
	for name := range fields {
		out = append(out, name)
	}
	return out
}
