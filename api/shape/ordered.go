package shape

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Ordered is a JSON object that keeps the order of its members: people read the
// document.
type Ordered []Member

// Member is a member of an [Ordered].
type Member struct {
	Name  string
	Value any
}

// MarshalJSON implements [json.Marshaler].
func (o Ordered) MarshalJSON() ([]byte, error) { return o.append(nil) }

func (o Ordered) append(to []byte) (_ []byte, err error) {
	to = append(to, '{')
	for i, m := range o {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = appendJSON(to, m.Name); err != nil {
			return nil, err
		}
		to = append(to, ':')
		if to, err = appendJSON(to, m.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return append(to, '}'), nil
}

// appendJSON appends a value as JSON. The parts of documents are written in place:
// encoding/json reads again what a [json.Marshaler] gives it, and so a document
// once for each level of its depth.
func appendJSON(to []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case Ordered:
		return v.append(to)
	case *Schema:
		return v.append(to)
	case []Ordered:
		return appendList(to, v)
	case []*Schema:
		return appendList(to, v)
	case []any:
		return appendList(to, v)
	}
	b := bytes.NewBuffer(to)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func appendList[T any](to []byte, values []T) (_ []byte, err error) {
	if values == nil {
		return append(to, "null"...), nil
	}
	to = append(to, '[')
	for i, v := range values {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = appendJSON(to, v); err != nil {
			return nil, err
		}
	}
	return append(to, ']'), nil
}

// Pairs makes an [Ordered] of names, each followed by its value.
func Pairs(namesAndValues ...any) Ordered {
	out := make(Ordered, 0, len(namesAndValues)/2)
	for i := 0; i < len(namesAndValues); i += 2 {
		out = append(out, Member{namesAndValues[i].(string), namesAndValues[i+1]})
	}
	return out
}

// Pair is a member of an [Ordered].
func Pair(name string, value any) Member { return Member{name, value} }
