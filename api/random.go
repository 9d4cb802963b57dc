package api

import (
	"encoding/base64"
	"fmt"
	"io"
)

// randomText returns the prefix and n random bytes in the alphabet of URLs.
func randomText(rand io.Reader, prefix string, n int) (string, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(rand, b); err != nil {
		return "", fmt.Errorf("source of randomness: %w", err)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(b), nil
}
