package jsonscan

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"unsafe"
)

// key is a key of an open object, in canonical text.
type key struct {
	// off is the text's position in src, or in out when inOut is set.
	off uint32
	n   uint32
	// print is a fingerprint of the text: equal texts have equal prints.
	print uint32
}

const (
	keySize = int(unsafe.Sizeof(key{}))
	inOut   = 1 << 31
	// scanLimit is how many keys of one object are compared one by one. The
	// keys of larger objects are compared in a hash table with a secret seed,
	// since fingerprints can be made to collide.
	scanLimit = 32
)

// fingerprint mixes the length and at most 16 bytes of a key.
func fingerprint(k []byte) uint32 {
	n := len(k)
	var w uint64
	switch {
	case n >= 8:
		w = binary.LittleEndian.Uint64(k) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(k[n-8:]), 29)
	case n >= 4:
		w = uint64(binary.LittleEndian.Uint32(k)) | uint64(binary.LittleEndian.Uint32(k[n-4:]))<<32
	case n > 0:
		w = uint64(k[0]) | uint64(k[n>>1])<<8 | uint64(k[n-1])<<16
	}
	return uint32((w ^ uint64(n)) * 0x9e3779b97f4a7c15 >> 32)
}

// bloomBit is the bit of a fingerprint in a frame's bloom.
func bloomBit(print uint32) uint64 { return 1 << (print >> 26) }

func (s *Scanner) keyText(k key) []byte {
	if k.off&inOut != 0 {
		return s.out[k.off&^inOut:][:k.n]
	}
	return s.src[k.off:][:k.n]
}

// repeated reports whether keys[first:] holds k. It looks at no more than
// scanLimit keys; larger objects are checked when they close.
func (s *Scanner) repeated(first int, k key) bool {
	open := s.keys[first:]
	if len(open) > scanLimit {
		return false
	}
	for _, o := range open {
		if o.print == k.print && o.n == k.n && bytes.Equal(s.keyText(o), s.keyText(k)) {
			return true
		}
	}
	return false
}

// repeatedInLarge returns a key that occurs twice in keys[first:], for objects
// of more than scanLimit keys.
func (s *Scanner) repeatedInLarge(first int) (key, bool) {
	open := s.keys[first:]
	size := 1 << bits.Len(uint(len(open)*2))
	if cap(s.table) < size {
		s.table = make([]int32, size)
	}
	table := s.table[:size]
	clear(table)
	for i, k := range open {
		text := s.keyText(k)
		at := maphash.Bytes(s.seed, text) & uint64(size-1)
		for table[at] != 0 {
			o := open[table[at]-1]
			if o.print == k.print && o.n == k.n && bytes.Equal(s.keyText(o), text) {
				return k, true
			}
			at = (at + 1) & uint64(size-1)
		}
		table[at] = int32(i + 1)
	}
	return key{}, false
}

// Object finds duplicate keys of an object that a caller reads member by member
// with [Scanner.Key]. The zero Object is an object without keys.
type Object struct {
	names [][]byte
	bloom uint64
	seen  map[string]struct{}
}

// Reset removes all keys.
func (o *Object) Reset() {
	clear(o.names)
	o.names, o.bloom, o.seen = o.names[:0], 0, nil
}

// Len is the number of keys.
func (o *Object) Len() int { return max(len(o.names), len(o.seen)) }

// Add adds an unescaped key, whose bytes must not change until Reset, and tells
// whether the object held it already.
func (o *Object) Add(name []byte) bool {
	if o.seen != nil {
		if _, ok := o.seen[string(name)]; ok {
			return true
		}
		o.seen[string(name)] = struct{}{}
		return false
	}
	bit := bloomBit(fingerprint(name))
	if o.bloom&bit != 0 {
		for _, n := range o.names {
			if bytes.Equal(n, name) {
				return true
			}
		}
	}
	o.bloom |= bit
	o.names = append(o.names, name)
	if len(o.names) > scanLimit {
		o.seen = make(map[string]struct{}, 2*len(o.names))
		for _, n := range o.names {
			o.seen[string(n)] = struct{}{}
		}
	}
	return false
}
