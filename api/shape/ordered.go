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
func (o Ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := e.Encode(m.Name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(m.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
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
