// Package must does what cannot fail for the values that it is given.
package must

import (
	"bytes"
	"encoding/json"
)

// JSON encodes a value of our own types, which cannot fail. It panics for one that
// encoding/json refuses.
func JSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// PlainJSON is JSON without escapes for <, > and &: a value with JSON of others in it is
// read back byte for byte as it was taken in.
func PlainJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
