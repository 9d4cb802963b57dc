package profile

import (
	"encoding/base64"
	"strconv"

	"github.com/musterhq/muster/resolver/internal/identifier"
)

// MaxObjectBytes bounds each of the objects of a profile, geo and attributes, in
// canonical text.
const MaxObjectBytes = 64 << 10

// Objects are masked so that they can be merged as before and have the length that
// they had, which decides whether people are merged: of a key its hash and length
// stay, of a value its length and whether it is an object, or null.

// MaskedKey begins the key of a masked member. No object that is sent has a NUL in it.
const MaskedKey = `"\u0000` + string(identifier.MaskMember)

// MaskObject masks a canonical object.
func MaskObject(h identifier.Hasher, obj []byte) []byte {
	if len(obj) == 0 {
		return obj
	}
	out := []byte{'{'}
	err := EachMember(obj, func(x Member) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if len(x.Key) > len(MaskedKey) && string(x.Key[:len(MaskedKey)]) == MaskedKey {
			out = append(out, x.Key...)
		} else {
			begin := len(out)
			sum := h.Sum(append([]byte{0xfa, identifier.MaskMember}, x.Key...))
			out = base64.RawURLEncoding.AppendEncode(append(out, MaskedKey...), sum[:])
			out = append(strconv.AppendInt(append(out, '.'), int64(len(x.Key)), 10), '.')
			for len(out)-begin+1 < len(x.Key) {
				out = append(out, 'x')
			}
			out = append(out, '"')
		}
		out = append(out, ':')
		out = maskValue(h, out, x.Value)
	})
	if err != nil {
		return nil
	}
	return append(out, '}')
}

func maskValue(h identifier.Hasher, out, v []byte) []byte {
	switch {
	case len(v) > 0 && v[0] == '{':
		return append(out, MaskObject(h, v)...)
	case string(v) == "null":
		return append(out, v...)
	case len(v) == 1:
		return append(out, '0')
	}
	out = append(out, '"')
	for range len(v) - 2 {
		out = append(out, 'x')
	}
	return append(out, '"')
}

// TooLarge reports whether an object is, by the length that it had before it was masked.
func TooLarge(obj []byte) bool { return len(obj) > MaxObjectBytes && unmaskedLen(obj) > MaxObjectBytes }

// unmaskedLen is the length of an object before it was masked.
func unmaskedLen(obj []byte) int {
	n := len(obj)
	_ = EachMember(obj, func(x Member) {
		if x.Value[0] == '{' {
			n -= len(x.Value) - unmaskedLen(x.Value)
		}
		const hashEnd = len(MaskedKey) + 22 // of a hash in letters
		if len(x.Key) <= hashEnd || string(x.Key[:len(MaskedKey)]) != MaskedKey || x.Key[hashEnd] != '.' {
			return
		}
		was := 0
		for _, c := range x.Key[hashEnd+1:] {
			if c < '0' || c > '9' {
				break
			}
			was = was*10 + int(c-'0')
		}
		n -= len(x.Key) - was
	})
	return n
}
