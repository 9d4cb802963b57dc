package profile

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// ID names a profile for good: a merged profile's id stays valid as an
// alias of the winner's.
type ID [16]byte

const profilePrefix = "prf_"

// AppendText appends the id as clients see it: "prf_" and 32 hexadecimal digits.
func (id ID) AppendText(dst []byte) []byte {
	dst = append(dst, profilePrefix...)
	return hex.AppendEncode(dst, id[:])
}

// String is the id as clients see it.
func (id ID) String() string { return string(id.AppendText(nil)) }

// ParseID reads an id as clients send it; ok is false when it is none.
func ParseID(s string) (id ID, ok bool) {
	if len(s) != len(profilePrefix)+32 || s[:len(profilePrefix)] != profilePrefix {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s[len(profilePrefix):]))
	return id, err == nil
}

// NewID returns the id of a new profile: the random bytes of a hash, with the
// ordinal in the last four of them, masked.
func NewID(random [16]byte, ordinal uint32) ID {
	id := ID(random)
	binary.LittleEndian.PutUint32(id[12:], id.mask()^ordinal)
	return id
}

// mask hides the ordinal in an id: ids look random, which is all it is for.
func (id ID) mask() uint32 {
	le := binary.LittleEndian
	return bits.RotateLeft32(le.Uint32(id[0:])*0x9e3779b1^le.Uint32(id[4:]), 13)*0x85ebca6b + le.Uint32(id[8:])
}

// Ordinal is the ordinal an id carries; whether it is that profile's id must
// be checked.
func (id ID) Ordinal() uint32 { return binary.LittleEndian.Uint32(id[12:]) ^ id.mask() }
