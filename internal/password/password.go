package password

import (
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/argon2"
)

// Params are the cost of a hash.
type Params struct {
	MemoryKiB  uint32
	Iterations uint32
	Lanes      uint8
}

// Default is OWASP's recommendation for argon2id: 19 MiB, two passes.
var Default = Params{MemoryKiB: 19 << 10, Iterations: 2, Lanes: 1}

const (
	saltBytes = 16
	sumBytes  = 32
	// A stored hash may not demand more than this: it is data, not code.
	maxMemoryKiB  = 1 << 20
	maxIterations = 64
	maxLanes      = 16
)

// ErrFormat means that a stored hash cannot be read.
var ErrFormat = errors.New("password hash has an unknown form")

// Hash hashes a password with a new salt read from rand.
func Hash(rand io.Reader, password string, p Params) (string, error) {
	salt := make([]byte, saltBytes)
	if _, err := io.ReadFull(rand, salt); err != nil {
		return "", fmt.Errorf("salt of a password hash: %w", err)
	}
	return format(salt, argon2.IDKey([]byte(password), salt, p.Iterations, p.MemoryKiB, p.Lanes, sumBytes), p), nil
}

// Decoy returns the text of a hash that belongs to no password: its sum is read from
// rand as its salt is. Verifying against it takes as long as against a hash, so the
// time of a sign-in does not reveal whether an account exists.
func Decoy(rand io.Reader, p Params) (string, error) {
	b := make([]byte, saltBytes+sumBytes)
	if _, err := io.ReadFull(rand, b); err != nil {
		return "", fmt.Errorf("a decoy of a password hash: %w", err)
	}
	return format(b[:saltBytes], b[saltBytes:], p), nil
}

func format(salt, sum []byte, p Params) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.MemoryKiB, p.Iterations, p.Lanes,
		b64.EncodeToString(salt), b64.EncodeToString(sum))
}

// Verify reports whether the password belongs to the hash. It takes as long as
// the hash's parameters say, whatever the password. An error wraps [ErrFormat].
func Verify(hash, password string) (bool, error) {
	var version int
	var p Params
	var tail string
	n, err := fmt.Sscanf(hash, "$argon2id$v=%d$m=%d,t=%d,p=%d$%s", &version, &p.MemoryKiB, &p.Iterations, &p.Lanes, &tail)
	if err != nil || n != 5 || version != argon2.Version {
		return false, ErrFormat
	}
	if p.MemoryKiB < 8 || p.MemoryKiB > maxMemoryKiB || p.Iterations < 1 || p.Iterations > maxIterations || p.Lanes < 1 || p.Lanes > maxLanes {
		return false, fmt.Errorf("%w: its cost is out of bounds", ErrFormat)
	}
	salt, want, err := split(tail)
	if err != nil {
		return false, err
	}
	have := argon2.IDKey([]byte(password), salt, p.Iterations, p.MemoryKiB, p.Lanes, uint32(len(want)))
	return subtle.ConstantTimeCompare(have, want) == 1, nil
}

func split(tail string) (salt, sum []byte, err error) {
	for i := range tail {
		if tail[i] != '$' {
			continue
		}
		salt, err1 := base64.RawStdEncoding.DecodeString(tail[:i])
		sum, err2 := base64.RawStdEncoding.DecodeString(tail[i+1:])
		if err1 != nil || err2 != nil || len(salt) < 8 || len(sum) < 16 || len(sum) > 64 {
			break
		}
		return salt, sum, nil
	}
	return nil, nil, ErrFormat
}
