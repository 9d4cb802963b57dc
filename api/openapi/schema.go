package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ordered is a JSON object that keeps the order of its members: people read the
// document.
type ordered []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements [json.Marshaler].
func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(m.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(m.value); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// schema is the shape of a value. Schemas are made by the functions below and not
// changed afterwards, but by the methods that follow them at once.
type schema struct {
	name     string // of a component; "" stands where it is used
	kind     string
	nullable bool
	about    string
	more     ordered // further keywords
	fields   []field
	items    *schema
	closed   bool // no other fields
	values   *schema
	free     bool // any value, or an object with any fields
	choices  []*schema
	apart    string // the field that tells the choices apart, each of which is a component then
	absent   any    // the default
	example  any
	shown    bool // the example is part of the document
}

type field struct {
	name     string
	schema   *schema
	required bool
}

// req is a field that is always there, opt one that may be missing.
func req(name string, s *schema) field { return field{name, s, true} }
func opt(name string, s *schema) field { return field{name, s, false} }

func text(example, about string) *schema {
	return &schema{kind: "string", about: about, example: example, shown: example != ""}
}
func integer(example int64, about string) *schema {
	return (&schema{kind: "integer", about: about, example: example, shown: true}).with("format", "int64")
}
func number(example float64, about string) *schema {
	return (&schema{kind: "number", about: about, example: example, shown: true}).with("format", "double")
}
func boolean(example bool, about string) *schema {
	return &schema{kind: "boolean", about: about, example: example}
}

// word is one of a few texts; the first is the example.
func word(about string, values ...string) *schema {
	return (&schema{kind: "string", about: about, example: values[0]}).with("enum", values)
}

// only is a text of one value, as in a field that tells alternatives apart. It is
// an enumeration with a name: of those alone every generator makes a type that
// refuses other values.
func only(name, value string) *schema { return named(name, word("", value)) }

// moment is a time as requests give it: a text or a number.
func moment(example, about string) *schema {
	return oneOf(text(example, "RFC 3339."), integer(1769850000000, "Unix milliseconds.")).says(about).like(example)
}

// instant is a time as answers write it.
func instant(about string) *schema {
	return text("2026-01-31T09:00:00.000Z", about+" ISO 8601, UTC, to the millisecond.").with("format", "date-time")
}

// count is a number of something, from 0.
func count(example int64, about string) *schema { return integer(example, about).with("minimum", 0) }

// share is a part of a whole, from 0 to 1.
func share(about string) *schema { return number(0.25, about).between(0, 1) }

func list(of *schema, about string) *schema {
	return &schema{kind: "array", items: of, about: about}
}
func object(fields ...field) *schema { return &schema{kind: "object", fields: fields} }

// mapOf is an object whose keys are any text.
func mapOf(s *schema, about string) *schema {
	return &schema{kind: "object", values: s, about: about}
}

// freeObject is an object with any fields.
func freeObject(example ordered, about string) *schema {
	return &schema{kind: "object", free: true, about: about, example: example, shown: true}
}

// anything is any value.
func anything(example any, about string) *schema {
	return &schema{free: true, about: about, example: example, shown: true}
}

// oneOf is exactly one of the schemas.
func oneOf(choices ...*schema) *schema { return &schema{choices: choices} }

// by names the field that tells the choices apart.
func (s *schema) by(field string) *schema {
	s.apart = field
	return s
}

// nothing is the data of an answer that has nothing to say.
func nothing() *schema {
	return &schema{kind: "object", closed: true, about: "Empty."}
}

// named makes s a component of the document.
func named(name string, s *schema) *schema {
	c := *s
	c.name = name
	return &c
}

// with sets a keyword.
func (s *schema) with(keyword string, value any) *schema {
	for i, m := range s.more {
		if m.name == keyword {
			s.more = slices.Clone(s.more)
			s.more[i].value = value
			return s
		}
	}
	s.more = append(s.more, member{keyword, value})
	return s
}

func (s *schema) between(low, high any) *schema { return s.with("minimum", low).with("maximum", high) }

// bytes bounds a text. The bound is in bytes, of which a character has at least
// one, so that the keyword never refuses what the service takes.
func (s *schema) bytes(low, high int) *schema {
	switch {
	case low > 0:
		s.with("minLength", 1)
		s.about += fmt.Sprintf(" From %d to %d bytes.", low, high)
	default:
		s.about += fmt.Sprintf(" At most %d bytes.", high)
	}
	return s.with("maxLength", high)
}

// entries bounds an array.
func (s *schema) entries(low, high int) *schema {
	if low > 0 {
		s.with("minItems", low)
	}
	return s.with("maxItems", high)
}

// def is the default. The description of a field tells it: of the keyword,
// generators make fields that must be given. Parameters have the keyword.
func (s *schema) def(v any) *schema {
	s.absent = v
	return s
}

// orNull takes null as well.
func (s *schema) orNull() *schema {
	c := *s
	c.nullable = true
	return &c
}

// like sets the example.
func (s *schema) like(v any) *schema {
	s.example, s.shown = v, true
	return s
}

// strict refuses fields that are not described.
func (s *schema) strict() *schema {
	s.closed = true
	return s
}

// says sets what it means.
func (s *schema) says(about string) *schema {
	c := *s
	c.about = about
	return &c
}

// plus is an object with more fields, and without a name.
func (s *schema) plus(fields ...field) *schema {
	c := *s
	c.name = ""
	c.fields = append(append([]field{}, s.fields...), fields...)
	return &c
}

// MarshalJSON writes a reference for a component, and the schema for others.
func (s *schema) MarshalJSON() ([]byte, error) {
	if s.name == "" {
		return s.body().MarshalJSON()
	}
	ref := ordered{{"$ref", "#/components/schemas/" + s.name}}
	if s.nullable {
		return ordered{{"oneOf", []ordered{ref, {{"type", "null"}}}}}.MarshalJSON()
	}
	return ref.MarshalJSON()
}

// body is the schema itself.
func (s *schema) body() ordered {
	if s.nullable && s.name == "" && s.enumerated() {
		// Null beside an enumeration, not in it: not all generators know null as a value.
		value := *s
		value.nullable, value.about, value.absent = false, "", nil
		return append(s.description(nil), member{"oneOf", []any{&value, ordered{{"type", "null"}}}})
	}
	var o ordered
	switch {
	case s.kind != "" && s.nullable && s.name == "":
		o = append(o, member{"type", []string{s.kind, "null"}})
	case s.kind != "":
		o = append(o, member{"type", s.kind})
	}
	o = append(s.description(o), s.more...)
	if len(s.choices) > 0 {
		o = append(o, member{"oneOf", s.choices})
	}
	if s.apart != "" {
		o = append(o, member{"discriminator", ordered{{"propertyName", s.apart}, {"mapping", s.mapping()}}})
	}
	if s.items != nil {
		o = append(o, member{"items", s.items})
	}
	if len(s.fields) > 0 {
		var required []string
		var properties ordered
		for _, f := range s.fields {
			properties = append(properties, member{f.name, f.schema})
			if f.required {
				required = append(required, f.name)
			}
		}
		o = append(o, member{"properties", properties})
		if required != nil {
			o = append(o, member{"required", required})
		}
	}
	switch {
	case s.values != nil:
		o = append(o, member{"additionalProperties", s.values})
	case s.closed:
		o = append(o, member{"additionalProperties", false})
	case s.free && s.kind == "object":
		o = append(o, member{"additionalProperties", true})
	}
	if s.shown {
		o = append(o, member{"examples", []any{s.example}})
	}
	return o
}

func (s *schema) description(o ordered) ordered {
	about := s.about
	if s.absent != nil {
		v, err := json.Marshal(s.absent)
		if err != nil {
			panic(err) // a literal of this package
		}
		about = strings.TrimSpace(about + " Default: `" + string(v) + "`.")
	}
	if about == "" {
		return o
	}
	return append(o, member{"description", about})
}

func (s *schema) enumerated() bool {
	return slices.ContainsFunc(s.more, func(m member) bool { return m.name == "enum" })
}

// mapping tells which value of the field that tells choices apart stands for
// which component.
func (s *schema) mapping() (out ordered) {
	for _, c := range s.choices {
		for _, f := range c.fields {
			if f.name == s.apart {
				out = append(out, member{f.schema.example.(string), "#/components/schemas/" + c.name})
			}
		}
	}
	return out
}

// sample is an example of the schema, made of those of its parts.
func (s *schema) sample() any {
	switch {
	case s.shown || s.free:
		return s.example
	case len(s.choices) > 0:
		return s.choices[0].sample()
	case s.kind == "array":
		return []any{s.items.sample()}
	case s.values != nil:
		return ordered{{"name", s.values.sample()}}
	case s.kind == "object":
		o := ordered{}
		for _, f := range s.fields {
			o = append(o, member{f.name, f.schema.sample()})
		}
		return o
	}
	return s.example
}

// walk calls fn for the schema and all within, components once.
func (s *schema) walk(seen map[string]bool, fn func(*schema)) {
	if s == nil || s.name != "" && seen[s.name] {
		return
	}
	if s.name != "" {
		seen[s.name] = true
	}
	fn(s)
	s.items.walk(seen, fn)
	s.values.walk(seen, fn)
	for _, c := range s.choices {
		c.walk(seen, fn)
	}
	for _, f := range s.fields {
		f.schema.walk(seen, fn)
	}
}
