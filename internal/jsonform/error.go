package jsonform

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/rawjson"
)

// Error says what is wrong with a definition, and where.
type Error struct {
	// Path is the JSON path of the fault from the definition's root, such as
	// conditions[1].window.last_days; empty for the root itself.
	Path string
	// Reason continues a sentence that begins with the path: "must be …".
	Reason string
}

// Error is the sentence for the user.
func (e *Error) Error() string {
	if e.Path == "" {
		return "definition " + e.Reason
	}
	return e.Path + " " + e.Reason
}

// Faultf makes an error.
func Faultf(path, reason string, args ...any) *Error {
	return &Error{Path: path, Reason: fmt.Sprintf(reason, args...)}
}

// Join is the path of a field. A name that is not plain is quoted, so that the
// path stays readable.
func Join(path, name string) string {
	switch {
	case !plain(name):
		if len(name) > 64 {
			name = string(bytes.ToValidUTF8([]byte(name[:64]), nil)) + "…"
		}
		return path + "[" + string(rawjson.AppendString(nil, name)) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// Index is the path of an element.
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Below is the path of what has the path rest from the value at path.
func Below(path, rest string) string {
	if path == "" || rest == "" || rest[0] == '[' {
		return path + rest
	}
	return path + "." + rest
}

func plain(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// Choice joins words that exclude each other.
func Choice[T ~string](words []T) string { return join(words, ", ", ", ") }

// List joins words as a sentence does.
func List[T ~string](words []T) string { return join(words, ", ", " and ") }

func join[T ~string](words []T, between, last string) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			b.WriteString(last)
		default:
			b.WriteString(between)
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// KindName is the type of a value in words.
func KindName(raw []byte) string {
	switch rawjson.KindOf(raw) {
	case rawjson.Null:
		return "null"
	case rawjson.True, rawjson.False:
		return "a boolean"
	case rawjson.Number:
		return "a number"
	case rawjson.String:
		return "a string"
	case rawjson.Array:
		return "an array"
	}
	return "an object"
}
