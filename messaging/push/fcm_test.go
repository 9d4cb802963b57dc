package push

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/musterhq/muster/messaging/outcome"
)

const fcmDevice = "cXyz1234567890abc:APA91bH-device_token"

// google is FCM and its token endpoint.
type google struct {
	*service
	t        *testing.T
	clk      *clock
	tokens   atomic.Int32
	revoked  atomic.Bool // access tokens issued so far are no longer taken
	life     int
	tokenErr func(w http.ResponseWriter) bool
	send     func(w http.ResponseWriter)
}

func newGoogle(t *testing.T) *google {
	g := &google{t: t, clk: newClock(), life: 3600}
	g.service = newService(t, func(w http.ResponseWriter, r request) {
		if r.URL.Path == "/token" {
			g.token(w, r)
			return
		}
		if g.revoked.Swap(false) {
			fcmAnswer(w, 401, "UNAUTHENTICATED", "", "")
			return
		}
		if r.URL.Path != "/v1/projects/demo-1/messages:send" || r.Header.Get("Authorization") != "Bearer access-"+string(rune('0'+g.tokens.Load())) {
			t.Errorf("%s with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		if g.send != nil {
			g.send(w)
			return
		}
		w.Write([]byte(`{"name":"projects/demo-1/messages/7"}`))
	})
	return g
}

func (g *google) token(w http.ResponseWriter, r request) {
	if g.tokenErr != nil && g.tokenErr(w) {
		return
	}
	form, err := url.ParseQuery(string(r.body))
	if err != nil || form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		g.t.Errorf("%v, %v", form, err)
	}
	claims := jwt.MapClaims{}
	tok, err := jwt.ParseWithClaims(form.Get("assertion"), claims, func(*jwt.Token) (any, error) { return rsaKey().Public(), nil },
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithAudience(g.URL+"/token"), jwt.WithIssuer("svc@demo-1.iam.example.com"),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithTimeFunc(g.clk.now))
	if err != nil || claims["scope"] != fcmScope || tok.Header["kid"] != "key-1" {
		g.t.Errorf("%+v, %v", claims, err)
	}
	n := g.tokens.Add(1)
	json.NewEncoder(w).Encode(map[string]any{"access_token": "access-" + string(rune('0'+n)), "expires_in": g.life, "token_type": "Bearer"})
}

func account(t *testing.T, change map[string]string) []byte {
	m := map[string]string{
		"type": "service_account", "project_id": "demo-1", "private_key_id": "key-1", "private_key": pkcs8(t, rsaKey()),
		"client_email": "svc@demo-1.iam.example.com", "token_uri": googleToken,
	}
	for k, v := range change {
		m[k] = v
	}
	return encode(t, m)
}

func (g *google) sender() *FCM {
	o := g.options(g.t, g.clk)
	f, err := NewFCM(account(g.t, map[string]string{"base_url": g.URL + "/"}), o)
	if err != nil {
		g.t.Fatal(err)
	}
	return f
}

func fcmAnswer(w http.ResponseWriter, status int, rpc, code, field string) {
	details := []any{}
	if code != "" {
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code})
	}
	if field != "" {
		details = append(details, map[string]any{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": []any{map[string]any{"field": field}}})
	}
	w.Header().Set("Retry-After", "20")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "status": rpc, "message": "says FCM", "details": details}})
}

func TestFCMSendsAndKeepsItsAccessToken(t *testing.T) {
	g := newGoogle(t)
	f := g.sender()
	r := f.Send(t.Context(), fcmDevice, sample())
	if !r.OK() || r.ProviderID != "projects/demo-1/messages/7" {
		t.Fatalf("%+v", r)
	}
	if g.last().ProtoMajor != 2 {
		t.Error(g.last().Proto)
	}
	var m fcmMessage
	if err := json.Unmarshal(g.last().body, &m); err != nil {
		t.Fatal(err)
	}
	if m.Message.Token != fcmDevice || m.Message.Notification.Title != "Hello, Zoë" || m.Message.Data["link"] != "https://example.com/orders/1" ||
		m.Message.Android.TTL != "3600s" || m.Message.Android.Priority != "HIGH" || m.Message.Android.CollapseKey != "orders-1" ||
		m.Message.WebPush.FCMOptions.Link == "" || m.Message.APNs.Headers["apns-collapse-id"] != "orders-1" ||
		m.Message.APNs.Headers["apns-expiration"] != "1778054889" ||
		m.Message.WebPush.Headers["TTL"] != "3600" || m.Message.WebPush.Headers["Topic"] != "orders-1" {
		t.Errorf("%s", g.last().body)
	}
	n := sample()
	n.Image, n.Link, n.TTL, n.Collapse = "https://example.com/a.png", "", 0, ""
	f.Send(t.Context(), fcmDevice, n)
	if body := string(g.last().body); !strings.Contains(body, `"apns":{"payload":{"aps":{"mutable-content":1}},"fcm_options":{"image":"https://example.com/a.png"}}`) || strings.Contains(body, "webpush") {
		t.Errorf("%s", body)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if r := f.Send(t.Context(), fcmDevice, sample()); !r.OK() {
				t.Errorf("%+v", r)
			}
		})
	}
	wg.Wait()
	if n := g.tokens.Load(); n != 1 {
		t.Errorf("%d access tokens were fetched", n)
	}
	g.clk.add(58 * time.Minute)
	f.Send(t.Context(), fcmDevice, sample())
	if n := g.tokens.Load(); n != 1 {
		t.Errorf("a token of 58 minutes was given up: %d", n)
	}
	g.clk.add(90 * time.Second) // less than a minute is left
	if r := f.Send(t.Context(), fcmDevice, sample()); !r.OK() || g.tokens.Load() != 2 {
		t.Errorf("%+v with %d tokens", r, g.tokens.Load())
	}
	g.revoked.Store(true)
	if r := f.Send(t.Context(), fcmDevice, sample()); !r.OK() || g.tokens.Load() != 3 {
		t.Errorf("revoked: %+v with %d tokens", r, g.tokens.Load())
	}
}

func TestFCMAnswers(t *testing.T) {
	g := newGoogle(t)
	f := g.sender()
	for _, c := range []struct {
		status           int
		rpc, code, field string
		class            outcome.Class
		want             string
	}{
		{404, "NOT_FOUND", "UNREGISTERED", "", outcome.Retired, "UNREGISTERED"},
		{400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.token", outcome.Retired, "INVALID_ARGUMENT"},
		{400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.data[0]", outcome.Permanent, "INVALID_ARGUMENT"},
		{403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", "", outcome.Permanent, "SENDER_ID_MISMATCH"},
		{403, "PERMISSION_DENIED", "", "", outcome.Refused, "PERMISSION_DENIED"},
		{401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR", "", outcome.Refused, "THIRD_PARTY_AUTH_ERROR"},
		{404, "NOT_FOUND", "", "", outcome.Refused, "NOT_FOUND"}, // the project, not the device
		{429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", "", outcome.Temporary, "QUOTA_EXCEEDED"},
		{500, "INTERNAL", "INTERNAL", "", outcome.Temporary, "INTERNAL"},
		{503, "UNAVAILABLE", "UNAVAILABLE", "", outcome.Temporary, "UNAVAILABLE"},
	} {
		g.tokens.Store(0)
		f := f
		if c.status == 401 {
			f = g.sender() // it fetches a second token
		} else {
			g.tokens.Store(1)
			f.token = make(chan accessToken, 1)
			f.token <- accessToken{"access-1", g.clk.now().Add(time.Hour)}
		}
		g.send = func(w http.ResponseWriter) { fcmAnswer(w, c.status, c.rpc, c.code, c.field) }
		r := f.Send(t.Context(), fcmDevice, sample())
		if r.Class != c.class || r.Code != c.want || r.Text != "says FCM" || (r.RetryAfter == 20*time.Second) != (c.class == outcome.Temporary) {
			t.Errorf("%+v: %+v", c, r)
		}
	}
	// What is not FCM's own answer retires nothing.
	for _, status := range []int{404, 410, 400} {
		g.send = func(w http.ResponseWriter) { http.Error(w, "<html>proxy</html>", status) }
		if r := f.Send(t.Context(), fcmDevice, sample()); r.Class == outcome.Retired || r.Class == outcome.Temporary {
			t.Errorf("%d: %+v", status, r)
		}
	}
}

func TestFCMTokenEndpointFailures(t *testing.T) {
	g := newGoogle(t)
	for name, c := range map[string]struct {
		status int
		body   string
		class  outcome.Class
		code   string
	}{
		"account deleted": {400, `{"error":"invalid_grant","error_description":"Invalid grant: account not found"}`, outcome.Refused, "token:invalid_grant"},
		"overloaded":      {503, `<html>`, outcome.Temporary, "token:503"},
		"nonsense":        {200, `[]`, outcome.Refused, "token:200"},
		"no token":        {200, `{}`, outcome.Refused, "token:200"},
	} {
		g.tokenErr = func(w http.ResponseWriter) bool {
			w.WriteHeader(c.status)
			w.Write([]byte(c.body))
			return true
		}
		if r := g.sender().Send(t.Context(), fcmDevice, sample()); r.Class != c.class || r.Code != c.code {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestFCMCredentials(t *testing.T) {
	if err := Validate(KindFCM, account(t, nil), false); err != nil {
		t.Error(err)
	}
	_, ec := ecPEM(t)
	for word, change := range map[string]map[string]string{
		"service_account": {"type": "authorized_user"}, "project_id": {"project_id": "../x"}, "client_email": {"client_email": ""},
		"private_key": {"private_key": ec}, "token_uri": {"token_uri": "https://evil.example.com/token"},
		"base_url": {"base_url": "https://name:password@push.example.com"},
	} {
		if err := Validate(KindFCM, account(t, change), false); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
	for _, raw := range []string{"", "[]", "null", strings.Repeat(" ", maxCredentials+1)} {
		if err := Validate(KindFCM, []byte(raw), false); err == nil {
			t.Errorf("%.10q was taken", raw)
		}
	}
}
