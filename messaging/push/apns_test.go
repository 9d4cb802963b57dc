package push

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/musterhq/muster/messaging/outcome"
)

var appleDevice = strings.Repeat("0aF9", 16)

type apple struct {
	*service
	clk    *clock
	sender *APNs
	answer func(w http.ResponseWriter)
	tokens map[string]bool
}

func newApple(t *testing.T) *apple {
	t.Helper()
	key, p8 := ecPEM(t)
	a := &apple{clk: newClock(), tokens: map[string]bool{}}
	a.service = newService(t, func(w http.ResponseWriter, r request) {
		raw := strings.TrimPrefix(r.Header.Get("Authorization"), "bearer ")
		a.tokens[raw] = true
		claims := jwt.MapClaims{}
		tok, err := jwt.ParseWithClaims(raw, claims, func(*jwt.Token) (any, error) { return key.Public(), nil },
			jwt.WithValidMethods([]string{"ES256"}), jwt.WithIssuer("TEAM123456"), jwt.WithTimeFunc(a.clk.now), jwt.WithIssuedAt())
		if err != nil || tok.Header["kid"] != "KEY1234567" {
			t.Errorf("token: %v", err)
		} else if iat, err := claims.GetIssuedAt(); err != nil || a.clk.now().Sub(iat.Time) > time.Hour {
			t.Errorf("a token of %v is too old", a.clk.now().Sub(iat.Time))
		}
		if r.ProtoMajor != 2 {
			t.Errorf("%s", r.Proto)
		}
		if a.answer != nil {
			a.answer(w)
			return
		}
		w.Header().Set("apns-id", r.Header.Get("apns-id"))
	})
	var err error
	a.sender, err = NewAPNs(APNsCredentials{KeyID: "KEY1234567", TeamID: "TEAM123456", PrivateKey: p8, Topic: "com.example.app", BaseURL: a.URL}, a.options(t, a.clk))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func reason(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Retry-After", "9")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"reason": text})
}

func TestAPNsSends(t *testing.T) {
	a := newApple(t)
	r := a.sender.Send(t.Context(), appleDevice, sample())
	if !r.OK() || len(r.ProviderID) != 36 {
		t.Fatalf("%+v", r)
	}
	got := a.last()
	if got.URL.Path != "/3/device/"+strings.ToLower(appleDevice) {
		t.Error(got.URL.Path)
	}
	for name, want := range map[string]string{
		"Apns-Topic": "com.example.app", "Apns-Push-Type": "alert", "Apns-Priority": "10", "Apns-Collapse-Id": "orders-1",
		"Apns-Expiration": "1778054889", "Apns-Id": r.ProviderID,
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s: %q", name, got.Header.Get(name))
		}
	}
	var p struct {
		APS struct {
			Alert struct{ Title, Body string }
		}
		Link, Order, ID string
	}
	if err := json.Unmarshal(got.body, &p); err != nil || p.APS.Alert.Title != "Hello, Zoë" || p.Link != "https://example.com/orders/1" || p.Order != "1" || p.ID != "snd_1" {
		t.Errorf("%s, %v", got.body, err)
	}
	n := sample()
	n.Image = "https://example.com/a.png"
	a.sender.Send(t.Context(), appleDevice, n)
	if body := string(a.last().body); !strings.Contains(body, `"mutable-content":1`) || !strings.Contains(body, `"image":"https://example.com/a.png"`) {
		t.Errorf("%s", body)
	}
	if again := a.sender.Send(t.Context(), appleDevice, sample()); again.ProviderID != r.ProviderID {
		t.Error("a repeat has another id")
	}
}

// Apple refuses tokens older than an hour and punishes a new one within 20 minutes.
func TestAPNsTokenAge(t *testing.T) {
	a := newApple(t)
	var last time.Time
	for i := range 300 {
		before := len(a.tokens)
		if r := a.sender.Send(t.Context(), appleDevice, sample()); !r.OK() {
			t.Fatalf("%+v", r)
		}
		if len(a.tokens) > before {
			if i > 0 && a.clk.now().Sub(last) < 20*time.Minute {
				t.Errorf("a new token after %v", a.clk.now().Sub(last))
			}
			last = a.clk.now()
		}
		a.clk.add(time.Minute)
	}
	if n := len(a.tokens); n < 5 || n > 15 {
		t.Errorf("%d tokens in five hours", n)
	}
}

func TestAPNsExpiredToken(t *testing.T) {
	a := newApple(t)
	var calls atomic.Int32
	a.answer = func(w http.ResponseWriter) {
		if calls.Add(1) == 1 {
			reason(w, 403, "ExpiredProviderToken")
		}
	}
	// Young: our clock is wrong, another token would not help.
	if r := a.sender.Send(t.Context(), appleDevice, sample()); r.Class != outcome.Refused || calls.Load() != 1 {
		t.Errorf("%+v after %d calls", r, calls.Load())
	}
	calls.Store(0)
	a.clk.add(30 * time.Minute)
	if r := a.sender.Send(t.Context(), appleDevice, sample()); !r.OK() || calls.Load() != 2 || len(a.tokens) != 2 {
		t.Errorf("%+v after %d calls with %d tokens", r, calls.Load(), len(a.tokens))
	}
}

func TestAPNsAnswers(t *testing.T) {
	a := newApple(t)
	for _, c := range []struct {
		status int
		reason string
		class  outcome.Class
	}{
		{410, "Unregistered", outcome.Retired}, {410, "ExpiredToken", outcome.Retired}, {400, "BadDeviceToken", outcome.Retired},
		{400, "DeviceTokenNotForTopic", outcome.Permanent}, {413, "PayloadTooLarge", outcome.Permanent}, {400, "PayloadEmpty", outcome.Permanent},
		{400, "BadTopic", outcome.Refused}, {400, "TopicDisallowed", outcome.Refused}, {403, "InvalidProviderToken", outcome.Refused}, {403, "Forbidden", outcome.Refused},
		{429, "TooManyRequests", outcome.Temporary}, {429, "TooManyProviderTokenUpdates", outcome.Temporary}, {500, "InternalServerError", outcome.Temporary}, {503, "Shutdown", outcome.Temporary},
	} {
		a.answer = func(w http.ResponseWriter) { reason(w, c.status, c.reason) }
		r := a.sender.Send(t.Context(), appleDevice, sample())
		if r.Class != c.class || r.Code != c.reason || (r.RetryAfter == 9*time.Second) != (c.class == outcome.Temporary) {
			t.Errorf("%+v: %+v", c, r)
		}
	}
	for _, status := range []int{404, 410, 400, 301} { // not Apple's words
		a.answer = func(w http.ResponseWriter) { w.WriteHeader(status) }
		if r := a.sender.Send(t.Context(), appleDevice, sample()); r.Class != outcome.Refused {
			t.Errorf("%d: %+v", status, r)
		}
	}
}

func TestAPNsCredentials(t *testing.T) {
	_, p8 := ecPEM(t)
	good := APNsCredentials{KeyID: "KEY1234567", TeamID: "TEAM123456", PrivateKey: p8, Topic: "com.example.app"}
	if err := Validate(KindAPNs, encode(t, good), false); err != nil {
		t.Error(err)
	}
	for word, change := range map[string]func(*APNsCredentials){
		"key_id": func(c *APNsCredentials) { c.KeyID = "x" }, "team_id": func(c *APNsCredentials) { c.TeamID = "" },
		"topic": func(c *APNsCredentials) { c.Topic = "a b" }, "private_key": func(c *APNsCredentials) { c.PrivateKey = pkcs8(t, rsaKey()) },
		"base_url": func(c *APNsCredentials) { c.BaseURL = "http://push.example.com" },
	} {
		c := good
		change(&c)
		if err := Validate(KindAPNs, encode(t, c), false); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
}
