package persontoken

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strings"
	"testing"
	"time"
)

const (
	secret = "ias_0123456789abcdef0123456789abcdef"
	issuer = "acc_00000000000000a7"
)

func sign(h func() hash.Hash, secret, head, body string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(head)) + "." + base64.RawURLEncoding.EncodeToString([]byte(body))
	mac := hmac.New(h, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

const hs256 = `{"alg":"HS256","typ":"JWT"}`

func TestVerify(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	body := func(more string, life time.Duration) string {
		return fmt.Sprintf(`{"iss":%q,"sub":"u1","exp":%d%s}`, issuer, now.Add(life).Unix(), more)
	}
	good := sign(sha256.New, secret, hs256, body("", time.Hour))
	flip := []byte(good)
	flip[len(flip)-3] ^= 1
	head, rest, _ := strings.Cut(good, ".")
	_ = head
	for name, x := range map[string]struct {
		token   string
		secrets []string
		want    error
	}{
		"good":                {good, []string{secret}, nil},
		"second secret":       {good, []string{"another", secret}, nil},
		"by e-mail":           {sign(sha256.New, secret, hs256, body(`,"sub_type":"email"`, time.Hour)), []string{secret}, nil},
		"no secret":           {good, nil, ErrSignature},
		"another secret":      {good, []string{"another"}, ErrSignature},
		"changed":             {string(flip), []string{secret}, ErrSignature},
		"expired":             {sign(sha256.New, secret, hs256, body("", -2*time.Minute)), []string{secret}, ErrExpired},
		"within the leeway":   {sign(sha256.New, secret, hs256, body("", -30*time.Second)), []string{secret}, nil},
		"a day":               {sign(sha256.New, secret, hs256, body("", 24*time.Hour)), []string{secret}, nil},
		"longer than a day":   {sign(sha256.New, secret, hs256, body("", 25*time.Hour)), []string{secret}, ErrTooLong},
		"milliseconds":        {sign(sha256.New, secret, hs256, fmt.Sprintf(`{"iss":%q,"sub":"u1","exp":%d}`, issuer, now.UnixMilli())), []string{secret}, ErrTooLong},
		"not yet":             {sign(sha256.New, secret, hs256, body(fmt.Sprintf(`,"nbf":%d`, now.Add(time.Hour).Unix()), time.Hour)), []string{secret}, ErrTooEarly},
		"no end":              {sign(sha256.New, secret, hs256, `{"iss":"`+issuer+`","sub":"u1"}`), []string{secret}, ErrMalformed},
		"no subject":          {sign(sha256.New, secret, hs256, fmt.Sprintf(`{"iss":%q,"exp":%d}`, issuer, now.Unix()+60)), []string{secret}, ErrMalformed},
		"no account":          {sign(sha256.New, secret, hs256, fmt.Sprintf(`{"sub":"u1","exp":%d}`, now.Unix()+60)), []string{secret}, ErrMalformed},
		"another kind":        {sign(sha256.New, secret, hs256, body(`,"sub_type":"phone"`, time.Hour)), []string{secret}, ErrMalformed},
		"none":                {sign(sha256.New, secret, `{"alg":"none"}`, body("", time.Hour)), []string{secret}, ErrMalformed},
		"none, unsigned":      {base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + strings.Split(rest, ".")[0] + ".", []string{secret}, ErrMalformed},
		"HS512":               {sign(sha512.New, secret, `{"alg":"HS512"}`, body("", time.Hour)), []string{secret}, ErrMalformed},
		"HS512 says HS256":    {sign(sha512.New, secret, hs256, body("", time.Hour)), []string{secret}, ErrSignature},
		"critical extensions": {sign(sha256.New, secret, `{"alg":"HS256","crit":["x"]}`, body("", time.Hour)), []string{secret}, ErrMalformed},
		"no signature":        {strings.TrimRight(good, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"), []string{secret}, ErrSignature},
		"empty":               {"", []string{secret}, ErrMalformed},
		"two parts":           {"a.b", []string{secret}, ErrMalformed},
		"padded":              {good + "=", []string{secret}, ErrMalformed},
		"too long":            {good + strings.Repeat("A", MaxBytes), []string{secret}, ErrMalformed},
		"subject too long":    {sign(sha256.New, secret, hs256, fmt.Sprintf(`{"iss":%q,"sub":%q,"exp":%d}`, issuer, strings.Repeat("u", 600), now.Unix()+60)), []string{secret}, ErrMalformed},
	} {
		p, err := Verify(x.token, x.secrets, now)
		if !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
		if err == nil && (p.Account != 0xa7 || p.Subject != "u1") {
			t.Errorf("%s: it is for %+v", name, p)
		}
	}
	if n, ok := Account(good); !ok || n != 0xa7 {
		t.Errorf("the token is of account %x, %v", n, ok)
	}
}

func FuzzVerify(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	f.Add(sign(sha256.New, secret, hs256, fmt.Sprintf(`{"iss":%q,"sub":"u1","exp":%d}`, issuer, now.Unix()+60)))
	f.Add("a.b.c")
	f.Add(sign(sha256.New, "x", hs256, `{"exp":1e400}`))
	f.Fuzz(func(t *testing.T, token string) {
		Account(token)
		if _, err := Verify(token, []string{"another secret, which signed nothing"}, now); err == nil {
			t.Fatalf("%q is taken", token)
		}
		if p, err := Verify(token, []string{secret}, now); err == nil && (p.Subject == "" || p.Expires.Before(now)) {
			t.Fatalf("%q is for %+v", token, p)
		}
	})
}
