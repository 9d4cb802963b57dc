// Package tokens draws and reads what callers prove themselves with: the tokens of sessions
// and of sign-in links, and other random secrets. The state has hashes of them only.
package tokens

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A token is a prefix, the account's number in 16 hexadecimal digits, an underscore and
// 256 random bits.
const (
	// Session begins the token of a session.
	Session     = "ses_"
	tokenRandom = 32
)

// SecretPrefix begins every App Secret.
const SecretPrefix = "sk_live_"

// SecretRandom is how many random bytes an App Secret has, and an API key
// behind the number of its account.
const SecretRandom = 24

// New draws a token of an account that begins with prefix.
func New(rand io.Reader, prefix string, account uint64) (string, error) {
	return Random(rand, fmt.Sprintf("%s%016x_", prefix, account), tokenRandom)
}

// Account reads the account out of a token that begins with prefix.
func Account(token, prefix string) (account uint64, ok bool) {
	rest, ok := strings.CutPrefix(token, prefix)
	if !ok || len(rest) != 16+1+base64.RawURLEncoding.EncodedLen(tokenRandom) || rest[16] != '_' {
		return 0, false
	}
	account, err := strconv.ParseUint(rest[:16], 16, 64)
	return account, err == nil
}

// Random returns the prefix and n random bytes in the alphabet of URLs.
func Random(rand io.Reader, prefix string, n int) (string, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(rand, b); err != nil {
		return "", fmt.Errorf("source of randomness: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(b), nil
}

// Hash is what is stored of a token or secret.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
