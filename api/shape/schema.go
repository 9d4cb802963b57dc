package shape

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Schema is the shape of a value. Schemas are made by the functions below and not
// changed afterwards, but by the methods that follow them at once.
type Schema struct {
	name     string // of a component; "" stands where it is used
	kind     string
	nullable bool
	about    string
	more     Ordered // further keywords
	fields   []Field
	items    *Schema
	closed   bool // no other fields
	values   *Schema
	free     bool // any value, or an object with any fields
	open     bool // other fields than those described, too
	parsed   bool // see Parsed
	choices  []*Schema
	apart    string // the field that tells the choices apart, each of which is a component then
	absent   any    // the default
	example  any
	shown    bool // the example is part of the document
}

// Field is a field of an object.
type Field struct {
	name     string
	schema   *Schema
	required bool
}

// Name is the name of the field.
func (f Field) Name() string { return f.name }

// Req is a field that is always there.
func Req(name string, s *Schema) Field { return Field{name, s, true} }

// Opt is a field that may be missing.
func Opt(name string, s *Schema) Field { return Field{name, s, false} }

// Text is a text; without an example none is shown.
func Text(example, about string) *Schema {
	return &Schema{kind: "string", about: about, example: example, shown: example != ""}
}

// Integer is a whole number.
func Integer(example int64, about string) *Schema {
	return (&Schema{kind: "integer", about: about, example: example, shown: true}).With("format", "int64")
}

// Number is any number.
func Number(example float64, about string) *Schema {
	return (&Schema{kind: "number", about: about, example: example, shown: true}).With("format", "double")
}

// Boolean is true or false.
func Boolean(example bool, about string) *Schema {
	return &Schema{kind: "boolean", about: about, example: example}
}

// Word is one of a few texts; the first is the example.
func Word(about string, values ...string) *Schema {
	return (&Schema{kind: "string", about: about, example: values[0]}).With("enum", values)
}

// Only is a text of one value, as in a field that tells alternatives apart. It is
// an enumeration with a name: of those alone every generator makes a type that
// refuses other values.
func Only(name, value string) *Schema { return Named(name, Word("", value)) }

// Moment is a time as requests give it: a text or a number.
func Moment(example, about string) *Schema {
	return OneOf(Text(example, "RFC 3339."), Integer(1769850000000, "Unix milliseconds.")).Says(about).Like(example)
}

// Instant is a time as answers write it.
func Instant(about string) *Schema {
	return Text("2026-01-31T09:00:00.000Z", about+" ISO 8601, UTC, to the millisecond.").With("format", "date-time")
}

// Count is a number of something, from 0.
func Count(example int64, about string) *Schema { return Integer(example, about).With("minimum", 0) }

// Share is a part of a whole, from 0 to 1.
func Share(about string) *Schema { return Number(0.25, about).Between(0, 1) }

// List is an array.
func List(of *Schema, about string) *Schema {
	return &Schema{kind: "array", items: of, about: about}
}

// Object is an object with the fields.
func Object(fields ...Field) *Schema { return &Schema{kind: "object", fields: fields} }

// MapOf is an object whose keys are any text.
func MapOf(s *Schema, about string) *Schema {
	return &Schema{kind: "object", values: s, about: about}
}

// FreeObject is an object with any fields.
func FreeObject(example Ordered, about string) *Schema {
	return &Schema{kind: "object", free: true, about: about, example: example, shown: true}
}

// Anything is any value.
func Anything(example any, about string) *Schema {
	return &Schema{free: true, about: about, example: example, shown: true}
}

// OneOf is exactly one of the schemas.
func OneOf(choices ...*Schema) *Schema { return &Schema{choices: choices} }

// By names the field that tells the choices apart.
func (s *Schema) By(field string) *Schema {
	s.apart = field
	return s
}

// Nothing is the data of an answer that has nothing to say.
func Nothing() *Schema {
	return &Schema{kind: "object", closed: true, about: "Empty."}
}

// Named makes s a component of the document.
func Named(name string, s *Schema) *Schema {
	c := *s
	c.name = name
	return &c
}

// With sets a keyword.
func (s *Schema) With(keyword string, value any) *Schema {
	for i, m := range s.more {
		if m.Name == keyword {
			s.more = slices.Clone(s.more)
			s.more[i].Value = value
			return s
		}
	}
	s.more = append(s.more, Member{keyword, value})
	return s
}

// Between bounds a number; both bounds are allowed.
func (s *Schema) Between(low, high any) *Schema { return s.With("minimum", low).With("maximum", high) }

// Bytes bounds a text. The bound is in bytes, of which a character has at least
// one, so that the keyword never refuses what the service takes.
func (s *Schema) Bytes(low, high int) *Schema {
	switch {
	case low > 0:
		s.With("minLength", 1)
		s.about += fmt.Sprintf(" From %d to %d bytes.", low, high)
	default:
		s.about += fmt.Sprintf(" At most %d bytes.", high)
	}
	return s.With("maxLength", high)
}

// Entries bounds an array.
func (s *Schema) Entries(low, high int) *Schema {
	if low > 0 {
		s.With("minItems", low)
	}
	return s.With("maxItems", high)
}

// Default is the default. The description of a field tells it: of the keyword,
// generators make fields that must be given. Parameters have the keyword.
func (s *Schema) Default(v any) *Schema {
	s.absent = v
	return s
}

// OrNull takes null as well.
func (s *Schema) OrNull() *Schema {
	c := *s
	c.nullable = true
	return &c
}

// Like sets the example.
func (s *Schema) Like(v any) *Schema {
	s.example, s.shown = v, true
	return s
}

// Strict refuses fields that are not described.
func (s *Schema) Strict() *Schema {
	s.closed = true
	return s
}

// Says sets what it means.
func (s *Schema) Says(about string) *Schema {
	c := *s
	c.about = about
	return &c
}

// Open takes other fields than those described.
func (s *Schema) Open() *Schema {
	s.open = true
	return s
}

// Parsed says that the reader of the value reports unknown fields by itself, in its
// own words: [Schema.Unknown] does not look into it.
func (s *Schema) Parsed() *Schema {
	s.parsed = true
	return s
}

// Seal makes s, and the objects within that are no components, refuse fields that are
// not described.
func (s *Schema) Seal() {
	if s.kind == "object" && !s.free && !s.open && s.values == nil {
		s.closed = true
	}
	within := append([]*Schema{s.items, s.values}, s.choices...)
	for _, f := range s.fields {
		within = append(within, f.schema)
	}
	for _, x := range within {
		if x != nil && x.name == "" {
			x.Seal()
		}
	}
}

// Plus is an object with more fields, and without a name.
func (s *Schema) Plus(fields ...Field) *Schema {
	c := *s
	c.name = ""
	c.fields = append(append([]Field{}, s.fields...), fields...)
	return &c
}

// MarshalJSON writes a reference for a component, and the schema for others.
func (s *Schema) MarshalJSON() ([]byte, error) { return s.append(nil) }

func (s *Schema) append(to []byte) ([]byte, error) {
	if s.name == "" {
		return s.Body().append(to)
	}
	ref := Ordered{{"$ref", "#/components/schemas/" + s.name}}
	if s.nullable {
		return Ordered{{"oneOf", []Ordered{ref, {{"type", "null"}}}}}.append(to)
	}
	return ref.append(to)
}

// Body is the schema itself.
func (s *Schema) Body() Ordered {
	if s.nullable && s.name == "" && s.enumerated() {
		// Null beside an enumeration, not in it: not all generators know null as a value.
		value := *s
		value.nullable, value.about, value.absent = false, "", nil
		return append(s.description(nil), Member{"oneOf", []any{&value, Ordered{{"type", "null"}}}})
	}
	var o Ordered
	switch {
	case s.kind != "" && s.nullable && s.name == "":
		o = append(o, Member{"type", []string{s.kind, "null"}})
	case s.kind != "":
		o = append(o, Member{"type", s.kind})
	}
	o = append(s.description(o), s.more...)
	if len(s.choices) > 0 {
		o = append(o, Member{"oneOf", s.choices})
	}
	if s.apart != "" {
		o = append(o, Member{"discriminator", Ordered{{"propertyName", s.apart}, {"mapping", s.mapping()}}})
	}
	if s.items != nil {
		o = append(o, Member{"items", s.items})
	}
	if len(s.fields) > 0 {
		var required []string
		var properties Ordered
		for _, f := range s.fields {
			properties = append(properties, Member{f.name, f.schema})
			if f.required {
				required = append(required, f.name)
			}
		}
		o = append(o, Member{"properties", properties})
		if required != nil {
			o = append(o, Member{"required", required})
		}
	}
	switch {
	case s.values != nil:
		o = append(o, Member{"additionalProperties", s.values})
	case s.closed:
		o = append(o, Member{"additionalProperties", false})
	case s.open, s.free && s.kind == "object":
		o = append(o, Member{"additionalProperties", true})
	}
	if s.shown {
		o = append(o, Member{"examples", []any{s.example}})
	}
	return o
}

func (s *Schema) description(o Ordered) Ordered {
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
	return append(o, Member{"description", about})
}

func (s *Schema) enumerated() bool {
	return slices.ContainsFunc(s.more, func(m Member) bool { return m.Name == "enum" })
}

// mapping tells which value of the field that tells choices apart stands for
// which component.
func (s *Schema) mapping() (out Ordered) {
	for _, c := range s.choices {
		for _, f := range c.fields {
			if f.name == s.apart {
				out = append(out, Member{f.schema.example.(string), "#/components/schemas/" + c.name})
			}
		}
	}
	return out
}

// Sample is an example of the schema, made of those of its parts.
func (s *Schema) Sample() any {
	switch {
	case s.shown || s.free:
		return s.example
	case len(s.choices) > 0:
		return s.choices[0].Sample()
	case s.kind == "array":
		return []any{s.items.Sample()}
	case s.values != nil:
		return Ordered{{"name", s.values.Sample()}}
	case s.kind == "object":
		o := Ordered{}
		for _, f := range s.fields {
			o = append(o, Member{f.name, f.schema.Sample()})
		}
		return o
	}
	return s.example
}

// Walk calls fn for the schema and all within, components once.
func (s *Schema) Walk(seen map[string]bool, fn func(*Schema)) {
	if s == nil || s.name != "" && seen[s.name] {
		return
	}
	if s.name != "" {
		seen[s.name] = true
	}
	fn(s)
	s.items.Walk(seen, fn)
	s.values.Walk(seen, fn)
	for _, c := range s.choices {
		c.Walk(seen, fn)
	}
	for _, f := range s.fields {
		f.schema.Walk(seen, fn)
	}
}

// Component is the name of the component that s is, "" for none.
func (s *Schema) Component() string { return s.name }

// Split takes the meaning off the schema of a parameter, which has another place for
// it, and tells the default by the keyword.
func (s *Schema) Split() (about string, rest *Schema) {
	c := *s
	c.about = ""
	if c.absent != nil {
		c.more = append(slices.Clone(c.more), Member{"default", c.absent})
		c.absent = nil
	}
	return s.about, &c
}

// Partial is an object with the same fields, none of which must be there.
func (s *Schema) Partial() *Schema {
	var fields []Field
	for _, f := range s.fields {
		fields = append(fields, Opt(f.name, f.schema))
	}
	return Object(fields...)
}

// Recursive is a component that refers to itself: build gets it unfinished, and
// returns what it is.
func Recursive(name string, build func(self *Schema) *Schema) *Schema {
	self := &Schema{name: name}
	*self = *Named(name, build(self))
	return self
}
