// Package persontoken verifies the tokens by which pages of a customer's site ask for the
// in-app messages of one signed-in person. The customer's server makes them: a JSON Web Token
// in compact form, signed with HS256 and the in-app secret of the account. No other algorithm
// is known, whatever a token's header says.
package persontoken

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/resolver"
)

const (
	// MaxBytes is how long a token can be.
	MaxBytes = 4096
	// MaxLife is how long after now a token may end.
	MaxLife = 24 * time.Hour
	// Leeway is how far clocks may be apart.
	Leeway = time.Minute
	// MaxSubjectBytes is how long the identifier of a person is.
	MaxSubjectBytes = 512
)

// What identifies the person of a token.
const (
	KindExternalID = "external_id"
	KindEmail      = "email"
)

// Person is for whom a token asks.
type Person struct {
	Account uint64
	Kind    string // [KindExternalID] or [KindEmail]
	Subject string // the identifier
	Expires time.Time
}

// The faults of tokens.
var (
	ErrMalformed = errors.New("the token is no JSON Web Token of the service: it must be signed with HS256, and have iss (the account id), sub and exp")
	ErrSignature = errors.New("the token is not signed with the in-app secret of the account")
	ErrExpired   = errors.New("the token has ended; the page asks its own server for a new one")
	ErrTooLong   = errors.New("the token must end within 24 hours: exp is in seconds since 1970")
	ErrTooEarly  = errors.New("the token does not hold yet, by its nbf")
)

type claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Kind      string   `json:"sub_type"`
	Expires   *float64 `json:"exp"`
	NotBefore *float64 `json:"nbf"`
}

// parse splits a token and reads its claims; nothing of it is verified.
func parse(token string) (c claims, signed string, signature []byte, ok bool) {
	if len(token) > MaxBytes {
		return c, "", nil, false
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return c, "", nil, false
	}
	var raw [3][]byte
	for i, p := range parts {
		var err error
		if raw[i], err = base64.RawURLEncoding.Strict().DecodeString(p); err != nil {
			return c, "", nil, false
		}
	}
	var head struct {
		Algorithm string          `json:"alg"`
		Critical  json.RawMessage `json:"crit"`
	}
	if !utf8.Valid(raw[0]) || !utf8.Valid(raw[1]) || json.Unmarshal(raw[0], &head) != nil || json.Unmarshal(raw[1], &c) != nil {
		return c, "", nil, false
	}
	if head.Algorithm != "HS256" || head.Critical != nil {
		return c, "", nil, false
	}
	return c, token[:len(parts[0])+1+len(parts[1])], raw[2], true
}

func account(issuer string) (number uint64, ok bool) {
	rest, ok := strings.CutPrefix(issuer, "acc_")
	if !ok {
		return 0, false
	}
	return resolver.ParseAppID([]byte("app_" + rest))
}

// Account reads the account out of a token that is not verified: it says which secrets to
// verify it with.
func Account(token string) (number uint64, ok bool) {
	c, _, _, ok := parse(token)
	if !ok {
		return 0, false
	}
	return account(c.Issuer)
}

// Verify returns for whom a token asks, which must be signed with one of the secrets and hold
// at an instant.
func Verify(token string, secrets []string, now time.Time) (p Person, err error) {
	c, signed, signature, ok := parse(token)
	if !ok {
		return p, ErrMalformed
	}
	if p.Account, ok = account(c.Issuer); !ok {
		return p, ErrMalformed
	}
	match := false
	for _, secret := range secrets { // all of them, so that the time does not tell which one it is
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(signed))
		match = hmac.Equal(mac.Sum(nil), signature) || match
	}
	if !match {
		return p, ErrSignature
	}
	p.Kind, p.Subject = c.Kind, c.Subject
	if p.Kind == "" {
		p.Kind = KindExternalID
	}
	if p.Kind != KindExternalID && p.Kind != KindEmail || strings.TrimSpace(p.Subject) == "" || len(p.Subject) > MaxSubjectBytes || c.Expires == nil {
		return p, ErrMalformed
	}
	seconds := *c.Expires
	switch at := float64(now.UnixMilli()) / 1000; {
	case math.IsNaN(seconds) || seconds+Leeway.Seconds() <= at:
		return p, ErrExpired
	case seconds > at+(MaxLife+Leeway).Seconds():
		return p, ErrTooLong
	case c.NotBefore != nil && *c.NotBefore > at+Leeway.Seconds():
		return p, ErrTooEarly
	}
	p.Expires = time.UnixMilli(int64(seconds * 1000)).Add(Leeway)
	return p, nil
}
