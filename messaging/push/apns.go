package push

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/musterhq/muster/messaging/internal/exchange"
	"github.com/musterhq/muster/messaging/outcome"
)

const (
	apnsProduction  = "https://api.push.apple.com"
	apnsDevelopment = "https://api.sandbox.push.apple.com"

	// Apple takes tokens up to an hour old and no more than one new in 20 minutes.
	apnsTokenLife = 40 * time.Minute
	apnsTokenMin  = 20 * time.Minute
)

// APNsCredentials are an account's signing key for Apple's service.
type APNsCredentials struct {
	// KeyID and TeamID are the ten characters Apple shows for the key and the team.
	KeyID  string `json:"key_id"`
	TeamID string `json:"team_id"`
	// PrivateKey is the content of the .p8 file.
	PrivateKey string `json:"private_key"`
	// Topic is the app's bundle id.
	Topic string `json:"topic"`
	// Sandbox addresses devices that run development builds.
	Sandbox bool `json:"sandbox"`
	// BaseURL is another server that speaks the interface of Apple's.
	BaseURL string `json:"base_url,omitempty"`
}

// APNs sends to Apple devices.
type APNs struct {
	o    Options
	c    APNsCredentials
	key  *ecdsa.PrivateKey
	base string // where messages go

	mu struct {
		sync.Mutex
		token  string
		issued time.Time
	}
}

// NewAPNs checks the credentials.
func NewAPNs(c APNsCredentials, o Options) (*APNs, error) {
	for _, id := range []struct{ field, value string }{{"key_id", c.KeyID}, {"team_id", c.TeamID}} {
		if len(id.value) != 10 || strings.Trim(id.value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			return nil, fmt.Errorf("push: %s must be the ten letters and digits Apple's developer pages show", id.field)
		}
	}
	if c.Topic == "" || len(c.Topic) > 255 || strings.Trim(c.Topic, base64URL+".") != "" {
		return nil, errors.New("push: topic must be the app's bundle id, for example com.example.app")
	}
	key, err := jwt.ParseECPrivateKeyFromPEM([]byte(c.PrivateKey))
	if err != nil || key.Curve.Params().BitSize != 256 {
		return nil, errors.New("push: private_key must be the content of the .p8 file with its BEGIN and END lines")
	}
	usual := apnsProduction
	if c.Sandbox {
		usual = apnsDevelopment
	}
	base, err := o.baseURL(c.BaseURL, usual)
	if err != nil {
		return nil, err
	}
	return &APNs{o: o.withDefaults(), c: c, key: key, base: base}, nil
}

// Close ends idle connections.
func (a *APNs) Close() { a.o.Client.CloseIdleConnections() }

// CheckToken implements Sender.
func (a *APNs) CheckToken(token string) error {
	if len(token) < 64 || len(token) > 200 || len(token)%2 != 0 || strings.Trim(token, "0123456789abcdefABCDEF") != "" {
		return errors.New("apns token must be a device token in hexadecimal, at least 64 digits")
	}
	return nil
}

// Check implements Sender.
func (a *APNs) Check(n *Notification) error {
	_, err := a.payload(n)
	return err
}

func (a *APNs) payload(n *Notification) ([]byte, error) {
	if err := n.check(true); err != nil {
		return nil, err
	}
	alert := map[string]string{}
	for key, value := range map[string]string{"title": n.Title, "body": n.Body} {
		if value != "" {
			alert[key] = value
		}
	}
	aps := map[string]any{"alert": alert, "sound": "default"}
	if n.Collapse != "" {
		aps["thread-id"] = n.Collapse
	}
	if n.Image != "" {
		aps["mutable-content"] = 1 // for the app's notification service extension, which shows it
	}
	m := make(map[string]any, len(n.Data)+4)
	for key, value := range n.Data {
		if key == "aps" {
			return nil, errors.New(`data key "aps" is reserved by Apple; choose another`)
		}
		m[key] = value
	}
	m["aps"] = aps
	if n.Link != "" {
		m["link"] = n.Link
	}
	if n.Image != "" {
		m["image"] = n.Image
	}
	if n.ID != "" {
		m["id"] = n.ID
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	if len(b) > MaxPayload {
		return nil, fmt.Errorf("title, body, link and data make %d bytes, at most %d are allowed", len(b), MaxPayload)
	}
	return b, nil
}

// Send implements Sender.
func (a *APNs) Send(ctx context.Context, token string, n *Notification) outcome.Result {
	if err := a.CheckToken(token); err != nil {
		return outcome.Failed(outcome.Permanent, "invalid_token", err)
	}
	body, err := a.payload(n)
	if err != nil {
		return outcome.Failed(outcome.Permanent, "invalid_message", err)
	}
	ctx, cancel := context.WithTimeout(ctx, a.o.Timeout)
	defer cancel()
	for first := true; ; first = false {
		auth, err := a.provider()
		if err != nil {
			return outcome.Failed(outcome.Refused, "credentials", err)
		}
		req, err := a.request(token, auth, body, n)
		if err != nil {
			return outcome.Failed(outcome.Permanent, "invalid_message", err)
		}
		answer, err := exchange.Do(ctx, a.o.Client, req, a.o.Timeout)
		if err != nil {
			return failed(err)
		}
		r := a.classify(answer)
		if r.Code == "ExpiredProviderToken" && first && a.expire(auth) {
			continue
		}
		return r
	}
}

func (a *APNs) request(token, auth string, body []byte, n *Notification) (*http.Request, error) {
	req, err := http.NewRequest(http.MethodPost, a.base+"/3/device/"+strings.ToLower(token), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("Authorization", "bearer "+auth)
	h.Set("Content-Type", "application/json")
	h.Set("Apns-Topic", a.c.Topic)
	h.Set("Apns-Push-Type", "alert")
	h.Set("Apns-Priority", map[bool]string{true: "5", false: "10"}[n.Urgency == UrgencyLow])
	if n.Collapse != "" {
		h.Set("Apns-Collapse-Id", n.Collapse)
	}
	if n.TTL > 0 {
		h.Set("Apns-Expiration", strconv.FormatInt(a.o.Now().Add(n.TTL).Unix(), 10))
	}
	if n.ID != "" {
		// The same at every repeat of a send to this device.
		s := sha256.Sum256([]byte(n.ID + "\x00" + token))
		h.Set("Apns-Id", fmt.Sprintf("%x-%x-%x-%x-%x", s[:4], s[4:6], s[6:8], s[8:10], s[10:16]))
	}
	return req, nil
}

// provider returns the token that names us, signed again when it is 40 minutes
// old. A clock that went back by more than a minute counts as old too.
func (a *APNs) provider() (string, error) {
	now := a.o.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	age := now.Sub(a.mu.issued)
	if a.mu.token != "" && age < apnsTokenLife && age > -time.Minute {
		return a.mu.token, nil
	}
	t := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{"iss": a.c.TeamID, "iat": now.Unix()})
	t.Header["kid"] = a.c.KeyID
	signed, err := t.SignedString(a.key)
	if err != nil {
		return "", fmt.Errorf("push: signing: %w", err)
	}
	a.mu.token, a.mu.issued = signed, now
	return signed, nil
}

// expire drops the token Apple calls expired and reports whether a repeat may
// help: a young one can only mean that our clock is wrong, and new tokens in a
// row are punished.
func (a *APNs) expire(token string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.token != token {
		return true
	}
	if a.o.Now().Sub(a.mu.issued) < apnsTokenMin {
		return false
	}
	a.mu.token = ""
	return true
}

func (a *APNs) classify(answer *exchange.Answer) outcome.Result {
	if answer.Status == http.StatusOK {
		r := outcome.New(outcome.Accepted, "200", "")
		r.ProviderID = outcome.Clean(answer.Header.Get("Apns-Id"), outcome.MaxCode)
		return r
	}
	var e struct {
		Reason string `json:"reason"`
	}
	code, text := strconv.Itoa(answer.Status), string(answer.Body)
	if json.Unmarshal(answer.Body, &e) == nil && e.Reason != "" {
		code, text = e.Reason, ""
	}
	if r, ok := a.o.status(answer, code, text); ok {
		return r
	}
	switch code {
	case "BadDeviceToken", "Unregistered", "ExpiredToken":
		return outcome.New(outcome.Retired, code, text)
	case "BadTopic", "MissingTopic", "TopicDisallowed", "BadCertificate", "BadCertificateEnvironment", "BadPath", "MethodNotAllowed":
		return outcome.New(outcome.Refused, code, text)
	}
	switch {
	case answer.Status == http.StatusForbidden, e.Reason == "" && answer.Status != http.StatusRequestEntityTooLarge:
		// Without a reason it is not Apple's answer: a proxy or a wrong address.
		return outcome.New(outcome.Refused, code, text)
	default:
		return outcome.New(outcome.Permanent, code, text)
	}
}
