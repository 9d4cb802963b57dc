package feature

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Version names a content by its hash, in 16 hexadecimal digits. A save over it names the
// version that its caller has read: whatever was saved in between makes another version,
// unless it is the same content.
func Version(parts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(length[:], uint64(len(p)))
		h.Write(length[:])
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// OtherVersion refuses to save over another version than the caller has seen, which is ""
// for callers that do not say.
func OtherVersion(seen string, present func() string) *refuse.Refusal {
	if seen == "" || seen == present() {
		return nil
	}
	return refuse.Conflicts("if_version", "somebody saved another version meanwhile; read it again and repeat your change, or leave if_version out to save over it")
}
