package trackingapi

import (
	"bytes"
	"encoding/json"

	"github.com/musterhq/muster/internal/jsonscan"
)

// members walks the members of a JSON object in canonical text.
type members struct{ rest []byte }

func membersOf(object []byte) members {
	if !isObject(object) {
		return members{} // another value has none
	}
	return members{object[1 : len(object)-1]}
}

// next returns the next member: the key between its quotation marks, as it is written, and
// the value.
func (m *members) next() (key, value []byte, ok bool) {
	if len(m.rest) == 0 {
		return nil, nil, false
	}
	end := textEnd(m.rest)
	key = m.rest[1 : end-1]
	m.rest = m.rest[end+1:]
	end = valueEnd(m.rest)
	value = m.rest[:end:end]
	if m.rest = m.rest[end:]; len(m.rest) > 0 {
		m.rest = m.rest[1:] // the comma
	}
	return key, value, true
}

// textEnd is the position behind the string that text begins with.
func textEnd(text []byte) int {
	for i := 1; ; i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

// valueEnd is the position behind the value that text begins with.
func valueEnd(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += textEnd(text[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(text)
}

// member is the value of an object's member, nil if it has none or null.
func member(object []byte, name string) []byte {
	for m := membersOf(object); ; {
		key, value, ok := m.next()
		if !ok {
			return nil
		}
		if string(key) == name {
			if string(value) == "null" {
				return nil
			}
			return value
		}
	}
}

// isObject reports whether a value in canonical text is an object.
func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// unquote is what a string in canonical text says; ok is false for other values.
func unquote(value []byte) (text []byte, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return nil, false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1], true
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return nil, false
	}
	return []byte(s), true
}

// textOf is what a string or a number in canonical text says; ok is false for other values.
func textOf(value []byte) (text []byte, ok bool) {
	if len(value) > 0 && (value[0] == '-' || value[0]-'0' < 10) {
		return decimal(value), true
	}
	return unquote(value)
}

// builder writes an object member by member.
type builder struct {
	dst   []byte
	begin int
}

func build(dst []byte) builder { return builder{append(dst, '{'), len(dst)} }

// raw adds a member in canonical text.
func (b *builder) raw(key, value []byte) {
	if len(b.dst) > b.begin+1 {
		b.dst = append(b.dst, ',')
	}
	b.dst = append(append(append(b.dst, '"'), key...), '"', ':')
	b.dst = append(b.dst, value...)
}

// once is raw for a name that the object may have already, which stays as it is then.
func (b *builder) once(name string, value []byte) {
	for have := membersOf(append(b.dst, '}')[b.begin:]); ; {
		key, _, more := have.next()
		if !more {
			break
		}
		if string(key) == name {
			return
		}
	}
	b.raw([]byte(name), value)
}

// text adds a member that is a string.
func (b *builder) text(key string, value []byte) {
	if len(b.dst) > b.begin+1 {
		b.dst = append(b.dst, ',')
	}
	b.dst = append(append(append(b.dst, '"'), key...), '"', ':')
	b.dst = jsonscan.AppendQuoted(b.dst, value)
}

// object is what was built, nil for an object without members.
func (b *builder) object() []byte {
	if len(b.dst) == b.begin+1 {
		return nil
	}
	b.dst = append(b.dst, '}')
	return b.dst[b.begin:]
}

// linearKeys is up to how many keys are compared one by one.
const linearKeys = 16

// merged is over with the members of under that it does not have. Either may be empty.
func merged(dst, over, under []byte) []byte {
	switch {
	case len(under) <= len("{}"):
		return over
	case len(over) <= len("{}"):
		return under
	case bytes.Equal(over, under):
		return over
	}
	b := build(dst)
	var few [linearKeys][]byte
	n := 0
	var many map[string]struct{}
	for m := membersOf(over); ; {
		key, value, ok := m.next()
		if !ok {
			break
		}
		b.raw(key, value)
		if n < linearKeys {
			few[n] = key
		} else {
			if many == nil {
				many = map[string]struct{}{}
				for _, k := range few {
					many[string(k)] = struct{}{}
				}
			}
			many[string(key)] = struct{}{}
		}
		n++
	}
	has := func(key []byte) bool {
		if many != nil {
			_, is := many[string(key)]
			return is
		}
		for _, k := range few[:n] {
			if bytes.Equal(k, key) {
				return true
			}
		}
		return false
	}
	for m := membersOf(under); ; {
		key, value, ok := m.next()
		if !ok {
			break
		}
		if !has(key) {
			b.raw(key, value)
		}
	}
	return b.object()
}
