package jsonform

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/internal/rawjson"
)

// Unknown says how to treat members of an object that its type has no field for.
// A name in another case is such a member: names match exactly.
type Unknown int

// The ways of [Decode].
const (
	Ignore Unknown = iota // they are passed over
	Refuse
)

const (
	// decodeDepth is how deep a body may nest.
	decodeDepth = 256
	// decodeBytes bounds a body's canonical text; bodies are bounded before.
	decodeBytes = 64 << 20
	// keepScratch is how much scratch memory a scanner keeps.
	keepScratch = 64 << 10
)

var scanners = sync.Pool{New: func() any { return jsonscan.New(decodeDepth, decodeBytes) }}

// Decode reads a JSON object into v, a pointer, as [encoding/json] does, but
// strictly: a name is that of a field only when it is the same, letter by letter, no
// object has a name twice, and texts are valid Unicode without NUL. What v keeps raw
// is in canonical form, its numbers as they were written.
//
// The error is a [*jsonscan.SyntaxError], an [*Error] with the place, or one of
// encoding/json's about types.
func Decode(data []byte, v any, unknown Unknown) error {
	text, err := Canonical(data)
	if err != nil {
		return err
	}
	if rawjson.KindOf(text) != rawjson.Object {
		return Faultf("", "must be an object, not %s", KindName(text))
	}
	f := filter{unknown: unknown, out: make([]byte, 0, len(text))}
	if err := f.value("", text, reflect.TypeOf(v)); err != nil {
		return err
	}
	err = json.Unmarshal(f.out, v)
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		mistyped.Field = inJSON(mistyped.Field, reflect.TypeOf(v))
	}
	return err
}

// inJSON is the path of a field of a type as JSON has it: encoding/json names embedded
// structs in it, too, which no caller knows.
func inJSON(path string, t reflect.Type) string {
	var out []string
	for _, name := range strings.Split(path, ".") {
		for t != nil && slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, t.Kind()) {
			t = t.Elem()
		}
		if t == nil || t.Kind() != reflect.Struct {
			out = append(out, name)
			continue
		}
		field, known := fieldOf(t, name)
		if embedded, ok := t.FieldByName(name); !known && ok && embedded.Anonymous {
			t = embedded.Type
			continue
		}
		out, t = append(out, name), field
	}
	return strings.Join(out, ".")
}

// Canonical checks a JSON text as [Decode] does and returns it in canonical form. The
// error is a [*jsonscan.SyntaxError], or an [*Error] with the place.
func Canonical(data []byte) ([]byte, error) {
	s := scanners.Get().(*jsonscan.Scanner)
	defer func() {
		s.Shrink(keepScratch)
		scanners.Put(s)
	}()
	s.Reset(data)
	text, i := s.Value(s.Space(0), 0)
	if i >= 0 {
		i = s.End(i)
	}
	if i < 0 {
		err := *s.Err()
		return nil, &err
	}
	if s.HasFault() {
		return nil, faultOf(s.Fault())
	}
	return append([]byte(nil), text...), nil // it may be the scanner's
}

// faultOf says what cannot be kept.
func faultOf(f *jsonscan.Fault) *Error {
	path := strings.TrimPrefix(string(f.Path), ".")
	switch f.Kind {
	case jsonscan.FaultDuplicate:
		return Faultf(Join(path, string(f.Key)), "must be given only once")
	case jsonscan.FaultDepth:
		return Faultf(path, "must nest at most %d levels", decodeDepth)
	case jsonscan.FaultRange:
		return Faultf(path, "must be a number that fits 64-bit floating point")
	case jsonscan.FaultSurrogate:
		return Faultf(path, "must be valid Unicode, without half surrogate pairs")
	case jsonscan.FaultNUL:
		return Faultf(path, "must not contain the NUL character")
	}
	return Faultf(path, "must be shorter")
}

// filter copies a canonical text without the members that a type has no field for,
// so that encoding/json finds exact names only.
type filter struct {
	unknown Unknown
	out     []byte
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// value copies a value that is read into a type.
func (f *filter) value(path string, raw []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer && !t.Implements(unmarshaler) {
		t = t.Elem()
	}
	kind := rawjson.KindOf(raw)
	switch {
	case t.Implements(unmarshaler), reflect.PointerTo(t).Implements(unmarshaler):
	case t.Kind() == reflect.Struct && kind == rawjson.Object:
		return f.object(path, raw, func(name string) (reflect.Type, bool) { return fieldOf(t, name) }, func() []string { return namesOf(t) })
	case t.Kind() == reflect.Map && kind == rawjson.Object:
		return f.object(path, raw, func(string) (reflect.Type, bool) { return t.Elem(), true }, nil)
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && kind == rawjson.Array:
		return f.array(path, raw, t.Elem())
	}
	f.out = append(f.out, raw...)
	return nil
}

// object copies an object whose fields are those that field finds; names lists them.
func (f *filter) object(path string, raw []byte, field func(name string) (reflect.Type, bool), names func() []string) (err error) {
	f.out = append(f.out, '{')
	empty := true
	rawjson.Each(raw, func(key, value []byte) bool {
		b, _ := rawjson.Unquote(nil, key) // canonical: it is valid
		name := string(b)
		t, known := field(name)
		if !known {
			if f.unknown == Refuse {
				err = NoField(path, name, names())
			}
			return err == nil
		}
		if !empty {
			f.out = append(f.out, ',')
		}
		empty = false
		f.out = append(append(f.out, key...), ':')
		err = f.value(Join(path, name), value, t)
		return err == nil
	})
	f.out = append(f.out, '}')
	return err
}

func (f *filter) array(path string, raw []byte, t reflect.Type) (err error) {
	f.out = append(f.out, '[')
	n := 0
	rawjson.EachElement(raw, func(value []byte) bool {
		if n > 0 {
			f.out = append(f.out, ',')
		}
		err = f.value(Index(path, n), value, t)
		n++
		return err == nil
	})
	f.out = append(f.out, ']')
	return err
}

// fieldOf is the type of a struct's field of this very name in JSON.
func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		x := t.Field(i)
		tag, _, _ := strings.Cut(x.Tag.Get("json"), ",")
		switch {
		case tag == "" && x.Anonymous:
			inner := x.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				if found, ok := fieldOf(inner, name); ok {
					return found, true
				}
			}
		case !x.IsExported() || tag == "-":
		case tag == name, tag == "" && x.Name == name:
			return x.Type, true
		}
	}
	return nil, false
}

// namesOf lists the fields that fieldOf finds.
func namesOf(t reflect.Type) (out []string) {
	for i := range t.NumField() {
		x := t.Field(i)
		tag, _, _ := strings.Cut(x.Tag.Get("json"), ",")
		inner := x.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case tag == "" && x.Anonymous && inner.Kind() == reflect.Struct:
			out = append(out, namesOf(inner)...)
		case !x.IsExported() || tag == "-":
		case tag == "":
			out = append(out, x.Name)
		default:
			out = append(out, tag)
		}
	}
	return out
}
