// Package must does what cannot fail for the values that it is given.
package must

import "encoding/json"

// JSON encodes a value of our own types, which cannot fail. It panics for one that
// encoding/json refuses.
func JSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
