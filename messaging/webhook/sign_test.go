package webhook

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

var signedAt = time.Unix(1614265330, 0)

func secretOf(t testing.TB, text string) Secret {
	t.Helper()
	s, err := ParseSecret(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func headers(id string, at time.Time, sig string) func(string) string {
	return func(name string) string {
		return map[string]string{HeaderID: id, HeaderTimestamp: strconv.FormatInt(at.Unix(), 10), HeaderSignature: sig}[name]
	}
}

// The example that libraries of Standard Webhooks test themselves with.
func TestSignKnownAnswer(t *testing.T) {
	s := secretOf(t, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	got := Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", signedAt, []byte(`{"test": 2432232314}`), []Secret{s})
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Fatalf("signature is %s, want %s", got, want)
	}
}

func TestW2SignedIsVerified(t *testing.T) {
	rng := rand.NewChaCha8([32]byte{1})
	old, _ := NewSecret(rng)
	cur, _ := NewSecret(rng)
	other, _ := NewSecret(rng)
	body := []byte(`{"type":"email.opened"}`)
	both := Sign("msg_1", signedAt, body, []Secret{old, cur})
	for _, secrets := range [][]Secret{{old}, {cur}, {other, cur}} {
		if err := Verify(headers("msg_1", signedAt, both), body, secrets, signedAt); err != nil {
			t.Errorf("rotation: %v", err)
		}
	}
	for name, err := range map[string]error{
		"other secret":  Verify(headers("msg_1", signedAt, both), body, []Secret{other}, signedAt),
		"no secret":     Verify(headers("msg_1", signedAt, both), body, nil, signedAt),
		"zero secret":   Verify(headers("msg_1", signedAt, Sign("msg_1", signedAt, body, []Secret{{}})), body, []Secret{{}}, signedAt),
		"other id":      Verify(headers("msg_2", signedAt, both), body, []Secret{cur}, signedAt),
		"other time":    Verify(headers("msg_1", signedAt.Add(time.Second), both), body, []Secret{cur}, signedAt),
		"other body":    Verify(headers("msg_1", signedAt, both), append(body, ' '), []Secret{cur}, signedAt),
		"too old":       Verify(headers("msg_1", signedAt, both), body, []Secret{cur}, signedAt.Add(Tolerance+time.Second)),
		"too new":       Verify(headers("msg_1", signedAt, both), body, []Secret{cur}, signedAt.Add(-Tolerance-time.Second)),
		"no id":         Verify(headers("", signedAt, both), body, []Secret{cur}, signedAt),
		"dotted id":     Verify(headers("a.b", signedAt, Sign("a.b", signedAt, body, []Secret{cur})), body, []Secret{cur}, signedAt),
		"no signature":  Verify(headers("msg_1", signedAt, ""), body, []Secret{cur}, signedAt),
		"other version": Verify(headers("msg_1", signedAt, strings.ReplaceAll(both, "v1,", "v2,")), body, []Secret{cur}, signedAt),
		"too many":      Verify(headers("msg_1", signedAt, strings.Repeat("v1,x ", 17)+both), body, []Secret{cur}, signedAt),
		"hexadecimal":   Verify(headers("msg_1", signedAt, "v1,zz"), body, []Secret{cur}, signedAt),
		"padded stamp": Verify(func(n string) string {
			return map[string]string{HeaderID: "msg_1", HeaderTimestamp: "01614265330", HeaderSignature: both}[n]
		}, body, []Secret{cur}, signedAt),
		"negative stamp": Verify(func(n string) string {
			return map[string]string{HeaderID: "msg_1", HeaderTimestamp: "-1", HeaderSignature: both}[n]
		}, body, []Secret{cur}, signedAt),
	} {
		if !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Verify(headers("msg_1", signedAt, both), body, []Secret{cur}, signedAt.Add(Tolerance)); err != nil {
		t.Errorf("at the edge of the tolerance: %v", err)
	}
}

func TestSecrets(t *testing.T) {
	s, err := NewSecret(rand.NewChaCha8([32]byte{2}))
	if err != nil {
		t.Fatal(err)
	}
	if back := secretOf(t, s.Text()); back != s {
		t.Error("text form does not lead back")
	}
	enc := func(n int) string { return SecretPrefix + base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for text, ok := range map[string]bool{
		enc(23): false, enc(24): true, enc(64): true, enc(65): false, enc(500): false,
		strings.TrimRight(enc(25), "="): true, "": false, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": false, "whsec_***": false,
	} {
		if _, err := ParseSecret(text); (err == nil) != ok || err != nil && !errors.Is(err, ErrSecret) {
			t.Errorf("ParseSecret(%d characters): %v", len(text), err)
		}
	}
	if _, err := NewSecret(bytes.NewReader(nil)); err == nil {
		t.Error("a secret without randomness")
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s)
	for _, text := range []string{log.String(), fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %s", s, s, s, []Secret{s})} {
		if strings.Contains(text, s.Text()[6:]) || strings.Contains(text, s.key) {
			t.Errorf("printed: %s", text)
		}
	}
}

func FuzzVerify(f *testing.F) {
	s := secretOf(f, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	f.Add("msg_1", "1614265330", Sign("msg_1", signedAt, nil, []Secret{s}), []byte{})
	f.Add("msg_1", "x", "v1, v1,= v1a", []byte("{}"))
	f.Fuzz(func(t *testing.T, id, stamp, sig string, body []byte) {
		h := func(n string) string {
			return map[string]string{HeaderID: id, HeaderTimestamp: stamp, HeaderSignature: sig}[n]
		}
		if Verify(h, body, []Secret{s}, signedAt) != nil {
			return
		}
		sec, _ := strconv.ParseInt(stamp, 10, 64)
		if !strings.Contains(sig, Sign(id, time.Unix(sec, 0), body, []Secret{s})[:40]) {
			t.Fatal("accepted without the signature")
		}
	})
}
