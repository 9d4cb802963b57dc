package tracking

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
)

// Kind says what a token is for. A token of one kind is of no use as another.
type Kind uint8

const (
	// Open is the pixel.
	Open Kind = 1
	// Click is a tracked link.
	Click Kind = 2
	// Unsubscribe withdraws consent. A GET must only show a page, because scanners
	// follow links; a POST does it (RFC 8058).
	Unsubscribe Kind = 3
	// Confirm is the second step of a double opt-in. The same holds for GET.
	Confirm Kind = 4
)

func (k Kind) String() string {
	switch k {
	case Open:
		return "open"
	case Click:
		return "click"
	case Unsubscribe:
		return "unsubscribe"
	case Confirm:
		return "confirm"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// ID identifies one message to one recipient.
type ID [16]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Claims is what a token says.
type Claims struct {
	Kind    Kind
	Account uint64
	Send    ID
	// Link is the index in the link table for a click; other kinds may use it as they
	// like (a list, a channel) and leave it 0 otherwise.
	Link uint16
}

// Key signs the tokens of one account.
type Key [32]byte

// String hides the key.
func (Key) String() string { return "tracking key" }

// GoString hides the key from %#v.
func (Key) GoString() string { return "tracking key" }

// DeriveKey makes an account's key from the server's secret, which must have at
// least 16 bytes. The same arguments give the same key on every node.
func DeriveKey(secret []byte, account uint64) (Key, error) {
	if len(secret) < 16 {
		return Key{}, fmt.Errorf("tracking: the secret has %d bytes; give at least 16", len(secret))
	}
	raw, err := hkdf.Key(sha256.New, secret, nil, fmt.Sprintf("muster tracking %d", account), len(Key{}))
	if err != nil {
		return Key{}, fmt.Errorf("tracking: deriving a key: %w", err)
	}
	return Key(raw), nil
}

// A token is the base64url, without padding, of
//
//	byte 0      kind; the upper four bits are 0 and left for another layout
//	byte 1-8    account, big endian
//	byte 9-24   send id
//	byte 25-26  link, big endian
//	byte 27-42  the first 16 bytes of HMAC-SHA256 over bytes 0-26
const (
	claimsBytes = 27
	macBytes    = 16
	tokenBytes  = claimsBytes + macBytes
	// TokenLen is the length of a token in characters.
	TokenLen = (tokenBytes*8 + 5) / 6
)

// Path is where the server answers tokens of every kind: Path + token.
const Path = "/t/"

// ErrToken says that a text is no token of ours. All causes look the same.
var ErrToken = errors.New("not a valid link")

// encoding is strict, so that a token has one spelling.
var encoding = base64.RawURLEncoding.Strict()

// Token makes the token of claims.
func (k Key) Token(c Claims) string {
	return string(k.AppendToken(make([]byte, 0, TokenLen), c))
}

// AppendToken appends the token of claims to dst.
func (k Key) AppendToken(dst []byte, c Claims) []byte {
	var raw [tokenBytes]byte
	raw[0] = byte(c.Kind)
	binary.BigEndian.PutUint64(raw[1:], c.Account)
	copy(raw[9:], c.Send[:])
	binary.BigEndian.PutUint16(raw[25:], c.Link)
	sum := k.mac(raw[:claimsBytes])
	copy(raw[claimsBytes:], sum[:macBytes])
	return encoding.AppendEncode(dst, raw[:])
}

// AppendURL appends base, Path and the token. base is the server's public
// address without a slash at the end, such as https://mail.example.com.
func (k Key) AppendURL(dst []byte, base string, c Claims) []byte {
	dst = append(dst, base...)
	dst = append(dst, Path...)
	return k.AppendToken(dst, c)
}

// URL is AppendURL for one link.
func (k Key) URL(base string, c Claims) string { return string(k.AppendURL(nil, base, c)) }

// Parse reads a token. key answers an account's key. Whatever is wrong, an unknown
// account included, the error is ErrToken, after the same work.
func Parse(token string, key func(account uint64) (Key, bool)) (Claims, error) {
	if len(token) != TokenLen {
		return Claims{}, ErrToken
	}
	var raw [tokenBytes]byte
	if n, err := encoding.Decode(raw[:], []byte(token)); err != nil || n != tokenBytes {
		return Claims{}, ErrToken
	}
	c := Claims{
		Kind:    Kind(raw[0]),
		Account: binary.BigEndian.Uint64(raw[1:]),
		Send:    ID(raw[9:25]),
		Link:    binary.BigEndian.Uint16(raw[25:]),
	}
	k, known := key(c.Account)
	sum := k.mac(raw[:claimsBytes])
	ok := hmac.Equal(sum[:macBytes], raw[claimsBytes:])
	if !ok || !known || c.Kind < Open || c.Kind > Confirm {
		return Claims{}, ErrToken
	}
	return c, nil
}

func (k Key) mac(claims []byte) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, k[:])
	h.Write(claims)
	h.Sum(sum[:0])
	return sum
}
