package push

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/musterhq/muster/messaging/outcome"
)

// browser is the receiving side of RFC 8291.
type browser struct {
	key    *ecdh.PrivateKey
	secret []byte
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{key: key, secret: make([]byte, 16)}
	rand.Read(b.secret)
	return b
}

func (b *browser) token(endpoint string) string {
	enc := base64.RawURLEncoding
	return `{"endpoint":"` + endpoint + `","expirationTime":null,"keys":{"p256dh":"` + enc.EncodeToString(b.key.PublicKey().Bytes()) +
		`","auth":"` + enc.EncodeToString(b.secret) + `"}}`
}

func (b *browser) decrypt(t *testing.T, body []byte) []byte {
	t.Helper()
	if len(body) < 21 || len(body) > MaxPayload {
		t.Fatalf("a body of %d bytes", len(body))
	}
	salt, n := body[:16], int(body[20])
	if rs := binary.BigEndian.Uint32(body[16:20]); rs < 18 || int(rs) < len(body)-21-n {
		t.Fatalf("record size %d", rs)
	}
	sender, err := ecdh.P256().NewPublicKey(body[21 : 21+n])
	if err != nil {
		t.Fatal(err)
	}
	shared, err := b.key.ECDH(sender)
	if err != nil {
		t.Fatal(err)
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		k, err := hkdf.Key(sha256.New, secret, salt, info, n)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	ikm := derive(shared, b.secret, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(sender.Bytes()), 32)
	block, err := aes.NewCipher(derive(ikm, salt, "Content-Encoding: aes128gcm\x00", 16))
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gcm.Open(nil, derive(ikm, salt, "Content-Encoding: nonce\x00", 12), body[21+n:], nil)
	if err != nil {
		t.Fatal(err)
	}
	plain = bytes.TrimRight(plain, "\x00")
	if len(plain) == 0 || plain[len(plain)-1] != 2 {
		t.Fatal("the last record is not marked")
	}
	return plain[:len(plain)-1]
}

// The example of RFC 8291, section 5.
func TestEncryptMatchesTheRFC(t *testing.T) {
	raw := func(s string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	own, err := ecdh.P256().NewPrivateKey(raw("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	browser, err := ecdh.P256().NewPublicKey(raw("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := encrypt([]byte("When I grow up, I want to be a watermelon"), browser, raw("BTBZMqHH6r4Tts7J_aSIgg"), own, [16]byte(raw("DGv6ra1nlYgDCS1FRnbzlw")))
	if err != nil {
		t.Fatal(err)
	}
	want := "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if enc := base64.RawURLEncoding.EncodeToString(got); enc != want {
		t.Errorf("got %s", enc)
	}
}

func newWeb(t *testing.T, o Options) (*WebPush, WebCredentials) {
	t.Helper()
	c, err := GenerateWebCredentials("mailto:ops@example.com")
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWebPush(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return w, c
}

func TestWebPushIsDecryptedAndItsTokenVerifies(t *testing.T) {
	clk := newClock()
	srv := newService(t, func(w http.ResponseWriter, r request) {
		w.Header().Set("Location", "/message/9")
		w.WriteHeader(http.StatusCreated)
	})
	w, creds := newWeb(t, srv.options(t, clk))
	b := newBrowser(t)
	n := sample()
	r := w.Send(t.Context(), b.token(srv.URL+"/push/abc"), n)
	if !r.OK() || r.ProviderID != "/message/9" {
		t.Fatalf("%+v", r)
	}
	got := srv.last()
	if got.ProtoMajor != 2 || got.Method != http.MethodPost || got.URL.Path != "/push/abc" {
		t.Errorf("%s %s %s", got.Proto, got.Method, got.URL.Path)
	}
	for name, want := range map[string]string{"Content-Encoding": "aes128gcm", "Ttl": "3600", "Urgency": "high", "Topic": "orders-1"} {
		if got.Header.Get(name) != want {
			t.Errorf("%s: %q", name, got.Header.Get(name))
		}
	}
	var p webPayload
	if err := json.Unmarshal(b.decrypt(t, got.body), &p); err != nil || p.Title != n.Title || p.URL != n.Link || p.Data["order"] != "1" || p.ID != "snd_1" {
		t.Errorf("%+v, %v", p, err)
	}
	verifyVAPID(t, got.Header.Get("Authorization"), creds, srv.URL, clk.now())

	// Each message has a key and a salt of its own, the token is kept for a while.
	first := got
	if r := w.Send(t.Context(), b.token(srv.URL+"/push/abc"), n); !r.OK() {
		t.Fatal(r)
	}
	if got = srv.last(); bytes.Equal(got.body[:86], first.body[:86]) || got.Header.Get("Authorization") != first.Header.Get("Authorization") {
		t.Error("key or salt were used twice, or the token once")
	}
	clk.add(7 * time.Hour)
	w.Send(t.Context(), b.token(srv.URL+"/push/abc"), n)
	if got = srv.last(); got.Header.Get("Authorization") == first.Header.Get("Authorization") {
		t.Error("an old token was used")
	}
	verifyVAPID(t, got.Header.Get("Authorization"), creds, srv.URL, clk.now())
}

func verifyVAPID(t *testing.T, header string, c WebCredentials, origin string, now time.Time) {
	t.Helper()
	token, key, ok := strings.Cut(strings.TrimPrefix(header, "vapid t="), ", k=")
	if !ok || key != c.PublicKey {
		t.Fatalf("header %q", header)
	}
	point, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.RegisteredClaims
	_, err = jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return public, nil },
		jwt.WithValidMethods([]string{"ES256"}), jwt.WithAudience(origin), jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return now }))
	if err != nil || claims.Subject != "mailto:ops@example.com" || claims.ExpiresAt.Sub(now) > 24*time.Hour {
		t.Errorf("%+v, %v", claims, err)
	}
}

func TestWebPushAnswers(t *testing.T) {
	var status int
	srv := newService(t, func(w http.ResponseWriter, r request) {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "says the service", status)
	})
	w, _ := newWeb(t, srv.options(t, newClock()))
	token := newBrowser(t).token(srv.URL + "/p")
	for code, want := range map[int]outcome.Class{
		200: outcome.Accepted, 201: outcome.Accepted, 202: outcome.Accepted, 404: outcome.Retired, 410: outcome.Retired,
		401: outcome.Refused, 403: outcome.Refused, 400: outcome.Permanent, 413: outcome.Permanent, 307: outcome.Permanent,
		429: outcome.Temporary, 500: outcome.Temporary, 503: outcome.Temporary,
	} {
		status = code
		r := w.Send(t.Context(), token, sample())
		if r.Class != want || r.Code != strconv.Itoa(code) || r.Hard {
			t.Errorf("%d: %+v", code, r)
		}
		if (r.RetryAfter == 30*time.Second) != (want == outcome.Temporary) {
			t.Errorf("%d: retry after %v", code, r.RetryAfter)
		}
	}
}

func TestLostAnswersAreAmbiguous(t *testing.T) {
	srv := newService(t, func(w http.ResponseWriter, r request) { panic(http.ErrAbortHandler) })
	w, _ := newWeb(t, srv.options(t, newClock()))
	token := newBrowser(t).token(srv.URL + "/p")
	if r := w.Send(t.Context(), token, sample()); r.Class != outcome.Ambiguous {
		t.Errorf("%+v", r)
	}
	srv.Server.Close()
	if r := w.Send(t.Context(), token, sample()); r.Class != outcome.Temporary {
		t.Errorf("no push service: %+v", r)
	}
}

func TestWebPushTokens(t *testing.T) {
	w, _ := newWeb(t, Options{})
	defer w.Close()
	b := newBrowser(t)
	if err := w.CheckToken(b.token("https://push.example.com/a")); err != nil {
		t.Error(err)
	}
	good := b.token("https://push.example.com/a")
	for _, bad := range []string{
		"", "{}", "null", "x", b.token("http://push.example.com/a"), b.token("https://127.0.0.1/a"), b.token("https://[::1]/a"), b.token("https://169.254.169.254/a"),
		b.token("https://u:p@push.example.com/a"), b.token("/a"), strings.Replace(good, `"auth":"`, `"auth":"AAAA`, 1), strings.Replace(good, `"p256dh":"B`, `"p256dh":"C`, 1),
		strings.Replace(good, "{", "{"+`"x":"`+strings.Repeat("x", 4096)+`",`, 1),
	} {
		if err := w.CheckToken(bad); err == nil {
			t.Errorf("%.200s was taken", bad)
		}
		if r := w.Send(t.Context(), bad, sample()); r.Class != outcome.Permanent || r.Code != "invalid_token" {
			t.Errorf("%.100s: %+v", bad, r)
		}
	}
	// A public name that leads to a private address is caught when dialled.
	if r := w.Send(t.Context(), b.token("https://localhost:9/a"), sample()); r.Class != outcome.Permanent || r.Code != "private_address" {
		t.Errorf("%+v", r)
	}
}
