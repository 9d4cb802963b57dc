package push

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/musterhq/muster/messaging/internal/exchange"
	"github.com/musterhq/muster/messaging/outcome"
)

// WebCredentials are an account's VAPID keys, in unpadded base64url as browsers
// take them: PublicKey is the 65-byte point given to subscribe(), PrivateKey
// the 32-byte scalar. Subject is a mailto: or https: contact.
type WebCredentials struct {
	PublicKey  string `json:"public_key"`
	PrivateKey string `json:"private_key"`
	Subject    string `json:"subject"`
}

// GenerateWebCredentials makes a VAPID key pair.
func GenerateWebCredentials(subject string) (WebCredentials, error) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return WebCredentials{}, fmt.Errorf("push: generating VAPID keys: %w", err)
	}
	enc := base64.RawURLEncoding
	return WebCredentials{
		PublicKey: enc.EncodeToString(key.PublicKey().Bytes()), PrivateKey: enc.EncodeToString(key.Bytes()), Subject: subject,
	}, nil
}

// Subscription is a browser's PushSubscription.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	Keys     struct {
		P256dh string `json:"p256dh"`
		Auth   string `json:"auth"`
	} `json:"keys"`
}

// WebPush sends to browsers.
type WebPush struct {
	o       Options
	key     *ecdsa.PrivateKey
	public  string
	subject string
	random  io.Reader

	mu struct {
		sync.Mutex
		tokens map[string]webToken // by origin
	}
}

type webToken struct {
	text    string
	expires time.Time
}

const (
	// A VAPID token may live 24 hours; half of it forgives clocks.
	vapidLife = 12 * time.Hour
	// maxOrigins bounds the tokens kept. There are a handful of push services.
	maxOrigins = 128
)

// NewWebPush checks the credentials.
func NewWebPush(c WebCredentials, o Options) (*WebPush, error) {
	raw, err := decodeKey(c.PrivateKey)
	if err != nil || len(raw) != 32 {
		return nil, errors.New("push: private_key must be 32 bytes in base64url, as VAPID key generators print it")
	}
	key, err := ecdh.P256().NewPrivateKey(raw)
	if err != nil {
		return nil, errors.New("push: private_key is no P-256 key; generate VAPID keys again")
	}
	public, err := decodeKey(c.PublicKey)
	if err != nil || subtle.ConstantTimeCompare(public, key.PublicKey().Bytes()) != 1 {
		return nil, errors.New("push: public_key does not belong to private_key; give both keys of one pair")
	}
	signer, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw)
	if err != nil {
		return nil, fmt.Errorf("push: private_key: %w", err)
	}
	u, err := url.Parse(c.Subject)
	if err != nil || len(c.Subject) > 512 || (u.Scheme != "https" || u.Host == "") && (u.Scheme != "mailto" || !strings.Contains(u.Opaque, "@")) {
		return nil, errors.New("push: subject must be a contact for push services, mailto:you@example.com or an https URL")
	}
	w := &WebPush{o: o.withDefaults(), key: signer, public: base64.RawURLEncoding.EncodeToString(public), subject: c.Subject, random: rand.Reader}
	w.mu.tokens = map[string]webToken{}
	return w, nil
}

// decodeKey reads base64 in any of the forms tools print.
func decodeKey(s string) ([]byte, error) {
	s = strings.TrimRight(strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimSpace(s)), "=")
	if len(s) > 256 {
		return nil, errors.New("too long")
	}
	return base64.RawURLEncoding.DecodeString(s)
}

// Close ends idle connections.
func (w *WebPush) Close() { w.o.Client.CloseIdleConnections() }

type webPayload struct {
	Title string            `json:"title,omitempty"`
	Body  string            `json:"body,omitempty"`
	URL   string            `json:"url,omitempty"`
	Icon  string            `json:"icon,omitempty"`
	Image string            `json:"image,omitempty"`
	Tag   string            `json:"tag,omitempty"`
	ID    string            `json:"id,omitempty"`
	Data  map[string]string `json:"data,omitempty"`
}

func (w *WebPush) payload(n *Notification) ([]byte, error) {
	if err := n.check(false); err != nil {
		return nil, err
	}
	b, err := json.Marshal(webPayload{n.Title, n.Body, n.Link, n.Icon, n.Image, n.Collapse, n.ID, n.Data})
	if err == nil && len(b) > maxPlain {
		err = fmt.Errorf("title, body, link and data make %d bytes, at most %d are allowed", len(b), maxPlain)
	}
	return b, err
}

// Check implements Sender.
func (w *WebPush) Check(n *Notification) error {
	_, err := w.payload(n)
	return err
}

// CheckToken implements Sender: token is the JSON of a PushSubscription.
func (w *WebPush) CheckToken(token string) error {
	_, err := w.subscription(token)
	return err
}

type target struct {
	endpoint, origin string
	key              *ecdh.PublicKey
	secret           []byte
}

func (w *WebPush) subscription(token string) (*target, error) {
	var s Subscription
	if len(token) > 4096 || json.Unmarshal([]byte(token), &s) != nil {
		return nil, errors.New("web push token must be the JSON of a PushSubscription, of at most 4096 bytes")
	}
	u, err := url.Parse(s.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" {
		return nil, errors.New("web push endpoint must be an https URL")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !w.o.AllowPrivate && !exchange.Public(a) {
		return nil, errors.New("web push endpoint must not be a private address")
	}
	raw, err := decodeKey(s.Keys.P256dh)
	if err != nil {
		return nil, errors.New("web push keys.p256dh must be base64url")
	}
	t := &target{endpoint: s.Endpoint, origin: u.Scheme + "://" + u.Host}
	if t.key, err = ecdh.P256().NewPublicKey(raw); err != nil {
		return nil, errors.New("web push keys.p256dh is no P-256 key")
	}
	if t.secret, err = decodeKey(s.Keys.Auth); err != nil || len(t.secret) != 16 {
		return nil, errors.New("web push keys.auth must be 16 bytes in base64url")
	}
	return t, nil
}

// Send implements Sender.
func (w *WebPush) Send(ctx context.Context, token string, n *Notification) outcome.Result {
	t, err := w.subscription(token)
	if err != nil {
		return outcome.Failed(outcome.Permanent, "invalid_token", err)
	}
	plain, err := w.payload(n)
	if err != nil {
		return outcome.Failed(outcome.Permanent, "invalid_message", err)
	}
	req, err := w.request(t, plain, n)
	if err != nil {
		return outcome.Failed(outcome.Refused, "invalid_message", err)
	}
	a, err := exchange.Do(ctx, w.o.Client, req, w.o.Timeout)
	if err != nil {
		return failed(err)
	}
	return w.classify(a)
}

func (w *WebPush) request(t *target, plain []byte, n *Notification) (*http.Request, error) {
	own, err := ecdh.P256().GenerateKey(w.random)
	if err != nil {
		return nil, fmt.Errorf("push: generating a key: %w", err)
	}
	var salt [saltSize]byte
	if _, err := io.ReadFull(w.random, salt[:]); err != nil {
		return nil, fmt.Errorf("push: reading random bytes: %w", err)
	}
	body, err := encrypt(plain, t.key, t.secret, own, salt)
	if err != nil {
		return nil, err
	}
	auth, err := w.vapid(t.origin)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, t.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	ttl := n.TTL
	if ttl == 0 {
		ttl = MaxTTL
	}
	h := req.Header
	h.Set("Authorization", auth)
	h.Set("Content-Encoding", "aes128gcm")
	h.Set("Content-Type", "application/octet-stream")
	h.Set("TTL", strconv.FormatInt(int64(ttl/time.Second), 10))
	if n.Urgency != "" {
		h.Set("Urgency", string(n.Urgency))
	}
	if n.Collapse != "" {
		h.Set("Topic", n.Collapse)
	}
	return req, nil
}

// vapid returns the Authorization header for an origin, signed again once half of
// its life is over.
func (w *WebPush) vapid(origin string) (string, error) {
	now := w.o.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, ok := w.mu.tokens[origin]; ok && now.Add(vapidLife/2).Before(t.expires) {
		return t.text, nil
	}
	t := webToken{expires: now.Add(vapidLife)}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"aud": origin, "exp": t.expires.Unix(), "sub": w.subject,
	}).SignedString(w.key)
	if err != nil {
		return "", fmt.Errorf("push: signing: %w", err)
	}
	t.text = "vapid t=" + signed + ", k=" + w.public
	if len(w.mu.tokens) >= maxOrigins {
		clear(w.mu.tokens)
	}
	w.mu.tokens[origin] = t
	return t.text, nil
}

func (w *WebPush) classify(a *exchange.Answer) outcome.Result {
	code, text := strconv.Itoa(a.Status), string(a.Body)
	if r, ok := w.o.status(a, code, text); ok {
		return r
	}
	switch a.Status {
	case http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		r := outcome.New(outcome.Accepted, code, "")
		r.ProviderID = outcome.Clean(a.Header.Get("Location"), outcome.MaxCode)
		return r
	case http.StatusNotFound, http.StatusGone:
		return outcome.New(outcome.Retired, code, text)
	case http.StatusUnauthorized, http.StatusForbidden:
		return outcome.New(outcome.Refused, code, text)
	default:
		return outcome.New(outcome.Permanent, code, text)
	}
}
