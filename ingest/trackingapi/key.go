package trackingapi

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/musterhq/muster/resolver/sources"
)

// keyRandom is how many bytes of a write key are random.
const keyRandom = 24

var keyText = base64.RawURLEncoding

// NewKey draws a write key of an account: the prefix, then the number of the account and
// random bytes. In a cluster the number says which node answers calls with the key.
func NewKey(rand io.Reader, account uint64) (string, error) {
	b := make([]byte, 8+keyRandom)
	binary.BigEndian.PutUint64(b, account)
	if _, err := io.ReadFull(rand, b[8:]); err != nil {
		return "", fmt.Errorf("source of randomness: %w", err)
	}
	return sources.WriteKeyPrefix + keyText.EncodeToString(b), nil
}

// ParseKey reads the number of the account out of a write key.
func ParseKey(key string) (account uint64, ok bool) {
	text, ok := strings.CutPrefix(key, sources.WriteKeyPrefix)
	if !ok || len(text) != keyText.EncodedLen(8+keyRandom) {
		return 0, false
	}
	b, err := keyText.DecodeString(text)
	if err != nil {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}
