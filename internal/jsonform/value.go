package jsonform

import (
	"bytes"
	"encoding/json"
	"math"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/rawjson"
)

// Compact checks that data is JSON in valid UTF-8 and returns it without white
// space.
func Compact(data []byte) ([]byte, error) {
	if !utf8.Valid(data) {
		return nil, Faultf("", "must be valid UTF-8")
	}
	var text bytes.Buffer
	if err := json.Compact(&text, data); err != nil {
		return nil, Faultf("", "must be valid JSON: %s", err)
	}
	return text.Bytes(), nil
}

// Text reads a string of at most max bytes.
func Text(path string, raw []byte, max int) (string, error) {
	if rawjson.KindOf(raw) != rawjson.String {
		return "", Faultf(path, "must be a string, not %s", KindName(raw))
	}
	b, ok := rawjson.Unquote(nil, raw)
	switch {
	case !ok:
		return "", Faultf(path, "must be valid Unicode, without half surrogate pairs")
	case len(b) > max:
		return "", Faultf(path, "must have at most %d bytes, it has %d", max, len(b))
	case bytes.IndexByte(b, 0) >= 0:
		return "", Faultf(path, "must not contain the NUL character")
	}
	return string(b), nil
}

// Elements reads an array. Beyond max elements it stops and reports their
// number as max+1.
func Elements(path string, raw []byte, max int) ([][]byte, error) {
	if rawjson.KindOf(raw) != rawjson.Array {
		return nil, Faultf(path, "must be an array, not %s", KindName(raw))
	}
	var out [][]byte
	rawjson.EachElement(raw, func(value []byte) bool {
		out = append(out, value)
		return len(out) <= max
	})
	return out, nil
}

// Number reads a finite float64.
func Number(path string, raw []byte) (float64, error) {
	if rawjson.KindOf(raw) != rawjson.Number {
		return 0, Faultf(path, "must be a number, not %s", KindName(raw))
	}
	f, ok := rawjson.Float(raw)
	if !ok {
		return 0, Faultf(path, "must be a number that fits 64-bit floating point")
	}
	if f == 0 {
		f = 0 // -0 is 0
	}
	return f, nil
}

// Integer reads a whole number from low to high, both within ±2⁵³.
func Integer(path string, raw []byte, low, high int64) (int64, error) {
	f, err := Number(path, raw)
	if err != nil {
		return 0, err
	}
	if f != math.Trunc(f) || f < float64(low) || f > float64(high) {
		return 0, Faultf(path, "must be a whole number from %d to %d", low, high)
	}
	return int64(f), nil
}
