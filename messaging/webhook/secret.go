package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// SecretPrefix marks a signing secret in text form.
const SecretPrefix = "whsec_"

// Length of a secret in bytes, as Standard Webhooks asks.
const (
	MinSecretBytes = 24
	MaxSecretBytes = 64
)

// newSecretBytes is the length of secrets made here: the block of HMAC-SHA256's output.
const newSecretBytes = 32

// ErrSecret reports that a text is no signing secret.
var ErrSecret = errors.New("not a signing secret")

// Secret is a key that signs deliveries. It prints as a placeholder, so that it
// does not end up in a log by accident; Text is the real thing.
type Secret struct{ key string }

// NewSecret makes a secret from 32 bytes of random.
func NewSecret(random io.Reader) (Secret, error) {
	var b [newSecretBytes]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return Secret{}, fmt.Errorf("webhook: a new secret: %w", err)
	}
	return Secret{key: string(b[:])}, nil
}

// ParseSecret reads the text form: whsec_ and the base64 of 24 to 64 bytes. The
// error does not hold the text.
func ParseSecret(text string) (Secret, error) {
	enc, ok := strings.CutPrefix(text, SecretPrefix)
	if !ok {
		return Secret{}, fmt.Errorf("secret must begin with %q: %w", SecretPrefix, ErrSecret)
	}
	if len(enc) > base64.StdEncoding.EncodedLen(MaxSecretBytes) {
		return Secret{}, fmt.Errorf("secret must hold %d to %d bytes: %w", MinSecretBytes, MaxSecretBytes, ErrSecret)
	}
	key, err := base64.StdEncoding.DecodeString(enc)
	if err != nil {
		// Some tools leave the padding out.
		key, err = base64.RawStdEncoding.DecodeString(enc)
	}
	if err != nil {
		return Secret{}, fmt.Errorf("secret must be base64 after %q: %w", SecretPrefix, ErrSecret)
	}
	if len(key) < MinSecretBytes || len(key) > MaxSecretBytes {
		return Secret{}, fmt.Errorf("secret holds %d bytes and must hold %d to %d: %w", len(key), MinSecretBytes, MaxSecretBytes, ErrSecret)
	}
	return Secret{key: string(key)}, nil
}

// Text is the text form that ParseSecret reads.
func (s Secret) Text() string {
	return SecretPrefix + base64.StdEncoding.EncodeToString([]byte(s.key))
}

// IsZero reports whether s holds no secret.
func (s Secret) IsZero() bool { return s.key == "" }

// String hides the secret.
func (s Secret) String() string { return SecretPrefix + "…" }

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
