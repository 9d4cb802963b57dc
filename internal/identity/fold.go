package identity

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/text/cases"
)

// dottedI is what full case folding makes of İ. Lower-cased it is a plain i, so
// the dot is left out: otherwise an address and its lower-cased form would fold
// to two.
const dottedI = "i\u0307"

// AppendFoldedEmail appends the form of an e-mail address in which two addresses
// are equal that differ in case alone, whatever that changes: ß and SS, ς and Σ,
// ſ and s. It is what full case folding, as Unicode defines it, makes of the
// normal form, which it equals for most addresses. dst and s must not overlap.
//
// Like the normal form it depends on the version of Unicode that Go and
// golang.org/x/text are built with; TestTablesArePinned holds it.
func AppendFoldedEmail(dst, s []byte) []byte {
	start := len(dst)
	dst = AppendNormalEmail(dst, s)
	if IsASCII(dst[start:]) {
		return dst
	}
	folded := cases.Fold().Bytes(dst[start:])
	for bytes.Contains(folded, []byte(dottedI)) { // dots may be stacked
		folded = bytes.ReplaceAll(folded, []byte(dottedI), []byte("i"))
	}
	return append(dst[:start], folded...)
}

// IsASCII reports whether a text has only ASCII.
func IsASCII(text []byte) bool {
	var high uint64
	for ; len(text) >= 8; text = text[8:] {
		high |= binary.LittleEndian.Uint64(text)
	}
	for _, c := range text {
		high |= uint64(c)
	}
	return high&0x8080808080808080 == 0
}
