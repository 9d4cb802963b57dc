package rawjson

// Kind is the type of a JSON value.
type Kind uint8

// The kinds of values. Invalid is what no value starts with.
const (
	Invalid Kind = iota
	Null
	False
	True
	Number
	String
	Array
	Object
)

// KindOf returns the type of a raw value by its first byte.
func KindOf(raw []byte) Kind {
	if len(raw) == 0 {
		return Invalid
	}
	switch c := raw[0]; c {
	case '"':
		return String
	case '{':
		return Object
	case '[':
		return Array
	case 't':
		return True
	case 'f':
		return False
	case 'n':
		return Null
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return Number
	}
	return Invalid
}

// stringEnd is the index behind the string that starts at b[i], or -1.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// valueEnd is the index behind the value that starts at b[i], or -1.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				if i = stringEnd(b, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	}
	start := i
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// Each calls fn for the members of an object in their order until fn returns
// false. key is the raw key with its quotes (see [Equal] and [Unquote]). It
// reports whether raw was read to its end as an object.
func Each(raw []byte, fn func(key, value []byte) bool) bool {
	if len(raw) < 2 || raw[0] != '{' {
		return false
	}
	i := 1
	if raw[i] == '}' {
		return true
	}
	for i < len(raw) && raw[i] == '"' {
		keyEnd := stringEnd(raw, i)
		if keyEnd < 0 || keyEnd >= len(raw) || raw[keyEnd] != ':' {
			return false
		}
		end := valueEnd(raw, keyEnd+1)
		if end < 0 || end >= len(raw) {
			return false
		}
		if !fn(raw[i:keyEnd:keyEnd], raw[keyEnd+1:end:end]) {
			return false
		}
		if raw[end] == '}' {
			return true
		}
		i = end + 1
	}
	return false
}

// EachElement calls fn for the elements of an array in their order until fn
// returns false. It reports whether raw was read to its end as an array.
func EachElement(raw []byte, fn func(value []byte) bool) bool {
	if len(raw) < 2 || raw[0] != '[' {
		return false
	}
	i := 1
	if raw[i] == ']' {
		return true
	}
	for {
		end := valueEnd(raw, i)
		if end < 0 || end >= len(raw) {
			return false
		}
		if !fn(raw[i:end:end]) {
			return false
		}
		if raw[end] == ']' {
			return true
		}
		i = end + 1
	}
}

// Lookup finds the value behind path, which goes into nested objects, never
// through arrays. ok is false when a key is missing or something on the way is
// no object. A null is found like any other value.
func Lookup(raw []byte, path []string) (value []byte, ok bool) {
	for _, key := range path {
		if raw = member(raw, key); raw == nil {
			return nil, false
		}
	}
	return raw, len(raw) > 0
}

// Scalar is the text of the string, number or boolean behind path in an object;
// ok is false when something else is there, or nothing.
func Scalar(object []byte, path []string) (text string, ok bool) {
	raw, ok := Lookup(object, path)
	if !ok {
		return "", false
	}
	switch KindOf(raw) {
	case String:
		text, ok := Text(raw, nil)
		return string(text), ok
	case Number, True, False:
		return string(raw), true
	}
	return "", false
}

// member is the value of one key, or nil. It is Each without the closure.
func member(raw []byte, key string) []byte {
	if len(raw) < 2 || raw[0] != '{' {
		return nil
	}
	i := 1
	for i < len(raw) && raw[i] == '"' {
		keyEnd := stringEnd(raw, i)
		if keyEnd < 0 || keyEnd >= len(raw) || raw[keyEnd] != ':' {
			return nil
		}
		end := valueEnd(raw, keyEnd+1)
		if end < 0 {
			return nil
		}
		if Equal(raw[i:keyEnd], key) {
			return raw[keyEnd+1 : end : end]
		}
		i = end + 1
	}
	return nil
}
