package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

// pushServices are Firebase Cloud Messaging and Apple's service, with the public halves of the
// keys that their callers sign with.
type pushServices struct {
	account *rsa.PrivateKey
	team    *ecdsa.PrivateKey
}

const accessTokenOfApps = "an-access-token"

// credentials are those of an account at both services, by kind of device.
func (s *pushServices) credentials(t *testing.T, server string) map[string]string {
	t.Helper()
	var err error
	s.account, err = rsa.GenerateKey(rand.Reader, 2048)
	ok(t, err)
	s.team, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	text := func(key any) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		ok(t, err)
		b, err := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
		ok(t, err)
		return string(b)
	}
	return map[string]string{
		"fcm":  fmt.Sprintf(`{"type":"service_account","project_id":"demo-1","private_key_id":"k1","client_email":"a@demo-1.example.com","private_key":%s,"base_url":"%s/fcm"}`, text(s.account), server),
		"apns": fmt.Sprintf(`{"key_id":"KEY1234567","team_id":"TEAM123456","topic":"com.example.app","private_key":%s,"base_url":"%s/apns"}`, text(s.team), server),
	}
}

// token gives an access token to the holder of the account's key, as Google does.
func (s *pushServices) token(w http.ResponseWriter, r *http.Request) {
	if r.ParseForm() != nil {
		return // cut off by a kill
	}
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(r.PostForm.Get("assertion"), claims, func(*jwt.Token) (any, error) { return s.account.Public(), nil }, jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer("a@demo-1.example.com"))
	if err != nil || r.PostForm.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, `{"access_token":%q,"expires_in":3600,"token_type":"Bearer"}`, accessTokenOfApps)
}

// device is the kind and the address of a person's device. The kinds come in turn.
func (p *post) device(person, device int) (kind, address string) {
	switch (person + device) % 3 {
	case 0:
		return "webpush", p.subscription(person, device)
	case 1:
		return "fcm", fmt.Sprintf("registration-token:%d:%d", person, device)
	}
	return "apns", fmt.Sprintf("%056x%06d%02d", 0, person, device)
}

// firebase takes push messages as FCM does. A message has an id in its data, and the collapse
// key by which a repeat takes its place.
func (p *post) firebase(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Message struct {
			Token        string
			Notification struct{ Title string }
			Data         map[string]string
			Android      struct {
				CollapseKey string `json:"collapse_key"`
			}
		}
	}
	if json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&m) != nil {
		return // cut off by a kill
	}
	var person, device int
	if _, err := fmt.Sscanf(m.Message.Token, "registration-token:%d:%d", &person, &device); err != nil || r.Header.Get("Authorization") != "Bearer "+accessTokenOfApps {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	p.takePush(w, "fcm", person, device, m.Message.Notification.Title, m.Message.Data["id"], m.Message.Android.CollapseKey,
		&answers{{200, `{"name":"projects/demo-1/messages/1"}`}, {503, `{"error":{"status":"UNAVAILABLE"}}`}, {400, `{"error":{"status":"INVALID_ARGUMENT"}}`}})
}

// apple takes push messages as APNs does. A message has an id in its payload, and one of its
// own for the device; the collapse id is that by which a repeat takes its place.
func (p *post) apple(w http.ResponseWriter, r *http.Request) {
	var m struct {
		APS struct{ Alert struct{ Title string } }
		ID  string
	}
	if json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&m) != nil {
		return // cut off by a kill
	}
	var person, device int
	_, scan := fmt.Sscanf(strings.TrimLeft(r.PathValue("token")[:62], "0")+" "+r.PathValue("token")[62:], "%d %d", &person, &device)
	team, err := jwt.Parse(strings.TrimPrefix(r.Header.Get("Authorization"), "bearer "), func(*jwt.Token) (any, error) { return p.app.team.Public(), nil }, jwt.WithValidMethods([]string{"ES256"}), jwt.WithIssuer("TEAM123456"))
	if scan != nil || err != nil || team.Header["kid"] != "KEY1234567" || r.Header.Get("Apns-Topic") != "com.example.app" || r.Header.Get("Apns-Id") == "" {
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"reason":"InvalidProviderToken"}`)
		return
	}
	p.takePush(w, "apns", person, device, m.APS.Alert.Title, m.ID, r.Header.Get("Apns-Collapse-Id"), &answers{{200, ""}, {503, `{"reason":"ServiceUnavailable"}`}, {400, `{"reason":"BadMessageId"}`}})
}

// takePush takes a push message, and answers as its service does.
func (p *post) takePush(w http.ResponseWriter, kind string, person, device int, title, id, collapse string, a *answers) {
	p.mu.Lock()
	p.mu.kinds[kind]++
	if collapse == "" {
		p.fault("push message %q to device %d of %d has no collapse key", title, device, person)
	}
	p.mu.Unlock()
	a.write(w, p.take("push", person, device, title, id+" as "+collapse))
}
