// Package contentversion names contents, such as those of segments and templates.
package contentversion

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// Of names a content by its hash, in 16 hexadecimal digits. Somebody who saves over it
// says by this what they have seen: whatever was saved in between makes another version,
// unless it is the same content.
func Of(parts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
