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
	// Preferences is the page on which a person chooses channels and topics. The same
	// holds for GET.
	Preferences Kind = 5
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
	case Preferences:
		return "preferences"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// ID identifies one message to one recipient.
type ID [16]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// Claims is the content of a token.
type Claims struct {
	Kind    Kind
	Account uint64
	Send    ID
	// Link is the index in the link table for a click; other kinds may use it as they
	// like (a list, a channel) and leave it 0 otherwise.
	Link uint16

	// Flow and Step say which step of which flow sent the message, and URL where a
	// click leads. Messages of flows carry them because nothing else remembers it
	// once they have gone out. Names longer than MaxNameBytes, and a URL longer than
	// MaxURLBytes, are left out.
	Flow, Step string
	URL        string
}

// Bounds of what a token carries, in bytes. Mail programs and servers cut URLs of
// some thousand characters.
const (
	MaxNameBytes = 100
	MaxURLBytes  = 1024
)

// bounded is the claims without what is too long for a token.
func (c Claims) bounded() Claims {
	for _, s := range []*string{&c.Flow, &c.Step} {
		if len(*s) > MaxNameBytes {
			*s = ""
		}
	}
	if len(c.URL) > MaxURLBytes {
		c.URL = ""
	}
	return c
}

// carries reports whether the claims need the longer layout.
func (c *Claims) carries() bool { return c.Flow != "" || c.Step != "" || c.URL != "" }

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
//	byte 0      kind in the lower four bits, the layout in the upper: 0 or 1
//	byte 1-8    account, big endian
//	byte 9-24   send id
//	byte 25-26  link, big endian
//	            in layout 1: the flow and the step, each behind a byte of its length,
//	            and the URL, which continues to the seal; at least one is not empty
//	the last 16 the first 16 bytes of HMAC-SHA256 over all before them
const (
	claimsBytes   = 27
	macBytes      = 16
	tokenBytes    = claimsBytes + macBytes
	carryingBytes = tokenBytes + 2 + 2*MaxNameBytes + MaxURLBytes // at most
	// TokenLen is the length of a token that carries nothing, in characters;
	// MaxTokenLen is that of the longest.
	TokenLen    = (tokenBytes*8 + 5) / 6
	MaxTokenLen = (carryingBytes*8 + 5) / 6

	layoutCarrying = 1 << 4
)

// Where the server answers tokens: the path, then the token. Those of Preferences have a path
// of their own, which people can read.
const (
	Path            = "/t/"
	PreferencesPath = "/preferences/"
)

// path is where the server answers tokens of the kind.
func (k Kind) path() string {
	if k == Preferences {
		return PreferencesPath
	}
	return Path
}

// ErrToken reports that a text is no token of ours. All causes look the same.
var ErrToken = errors.New("not a valid link")

// encoding is strict, so that a token has one spelling.
var encoding = base64.RawURLEncoding.Strict()

// Token makes the token of claims.
func (k Key) Token(c Claims) string {
	return string(k.AppendToken(make([]byte, 0, TokenLen), c))
}

// AppendToken appends the token of claims to dst.
func (k Key) AppendToken(dst []byte, c Claims) []byte {
	c = c.bounded()
	var room [tokenBytes]byte
	raw := append(room[:0], byte(c.Kind))
	raw = binary.BigEndian.AppendUint64(raw, c.Account)
	raw = append(raw, c.Send[:]...)
	raw = binary.BigEndian.AppendUint16(raw, c.Link)
	if c.carries() {
		raw[0] |= layoutCarrying
		for _, s := range [...]string{c.Flow, c.Step} {
			raw = append(append(raw, byte(len(s))), s...)
		}
		raw = append(raw, c.URL...)
	}
	sum := k.mac(raw)
	return encoding.AppendEncode(dst, append(raw, sum[:macBytes]...))
}

// AppendURL appends base, the path of the kind and the token. base is the server's public
// address without a slash at the end, such as https://mail.example.com.
func (k Key) AppendURL(dst []byte, base string, c Claims) []byte {
	dst = append(dst, base...)
	dst = append(dst, c.Kind.path()...)
	return k.AppendToken(dst, c)
}

// URL is AppendURL for one link.
func (k Key) URL(base string, c Claims) string { return string(k.AppendURL(nil, base, c)) }

// Parse reads a token. key answers an account's key. Whatever is wrong, an unknown
// account included, the error is ErrToken, after the same work for texts of one
// length.
func Parse(token string, key func(account uint64) (Key, bool)) (Claims, error) {
	if len(token) < TokenLen || len(token) > MaxTokenLen {
		return Claims{}, ErrToken
	}
	raw, err := encoding.DecodeString(token)
	// The decoder skips line breaks, with which a token would have two spellings.
	if err != nil || len(raw) < tokenBytes || encoding.EncodedLen(len(raw)) != len(token) {
		return Claims{}, ErrToken
	}
	body, seal := raw[:len(raw)-macBytes], raw[len(raw)-macBytes:]
	c := Claims{
		Kind:    Kind(body[0] &^ layoutCarrying),
		Account: binary.BigEndian.Uint64(body[1:]),
		Send:    ID(body[9:25]),
		Link:    binary.BigEndian.Uint16(body[25:]),
	}
	k, known := key(c.Account)
	sum := k.mac(body)
	ok := hmac.Equal(sum[:macBytes], seal)
	if !ok || !known || c.Kind < Open || c.Kind > Preferences || !c.carry(body[claimsBytes:], body[0]&layoutCarrying != 0) {
		return Claims{}, ErrToken
	}
	return c, nil
}

// Account is the account that a token names, whatever else is wrong with it.
func Account(token string) (account uint64, ok bool) {
	if len(token) < TokenLen || len(token) > MaxTokenLen {
		return 0, false
	}
	var raw [12]byte
	if _, err := encoding.Decode(raw[:], []byte(token[:16])); err != nil {
		return 0, false
	}
	return binary.BigEndian.Uint64(raw[1:]), true
}

// carry reads what follows the fixed part of a token.
func (c *Claims) carry(rest []byte, carrying bool) bool {
	if !carrying {
		return len(rest) == 0
	}
	for _, s := range []*string{&c.Flow, &c.Step} {
		if len(rest) == 0 || int(rest[0]) > min(len(rest)-1, MaxNameBytes) {
			return false
		}
		*s, rest = string(rest[1:1+rest[0]]), rest[1+rest[0]:]
	}
	c.URL = string(rest)
	return len(c.URL) <= MaxURLBytes && c.carries()
}

func (k Key) mac(claims []byte) (sum [sha256.Size]byte) {
	h := hmac.New(sha256.New, k[:])
	h.Write(claims)
	h.Sum(sum[:0])
	return sum
}
