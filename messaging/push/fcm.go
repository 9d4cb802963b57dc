package push

import (
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/musterhq/muster/messaging/internal/exchange"
	"github.com/musterhq/muster/messaging/outcome"
)

const (
	fcmBase     = "https://fcm.googleapis.com"
	googleToken = "https://oauth2.googleapis.com/token"
	fcmScope    = "https://www.googleapis.com/auth/firebase.messaging"
)

// FCM sends over Firebase Cloud Messaging's HTTP v1 interface.
type FCM struct {
	o       Options
	account serviceAccount
	key     *rsa.PrivateKey
	send    string // where messages go
	tokens  string // where access tokens come from

	// token guards the access token; as a channel of one so that waiting for it
	// ends with the context.
	token chan accessToken
}

type accessToken struct {
	text    string
	expires time.Time
}

type serviceAccount struct {
	Type       string `json:"type"`
	ProjectID  string `json:"project_id"`
	KeyID      string `json:"private_key_id"`
	PrivateKey string `json:"private_key"`
	Email      string `json:"client_email"`
	TokenURI   string `json:"token_uri"`
	// BaseURL is another server that speaks the interfaces of FCM and, below /token, of
	// Google's token endpoint.
	BaseURL string `json:"base_url"`
}

// NewFCM reads a service account's JSON as Google's console gives it.
func NewFCM(serviceAccountJSON []byte, o Options) (*FCM, error) {
	a, err := decode[serviceAccount](serviceAccountJSON)
	if err != nil {
		return nil, err
	}
	base, err := o.baseURL(a.BaseURL, fcmBase)
	switch {
	case err != nil:
		return nil, err
	case a.Type != "service_account":
		return nil, errors.New(`push: credentials must be a service account's key file with type "service_account"`)
	case a.ProjectID == "" || len(a.ProjectID) > 64 || strings.Trim(a.ProjectID, base64URL+".:") != "":
		return nil, errors.New("push: project_id is missing or malformed; use the key file as downloaded")
	case !strings.Contains(a.Email, "@"):
		return nil, errors.New("push: client_email is missing; use the key file as downloaded")
	case a.TokenURI != "" && a.TokenURI != googleToken:
		// Elsewhere the account's signature would be sent to strangers.
		return nil, fmt.Errorf("push: token_uri must be %s", googleToken)
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM([]byte(a.PrivateKey))
	if err != nil {
		return nil, errors.New("push: private_key is no RSA key in PEM; use the key file as downloaded")
	}
	f := &FCM{o: o.withDefaults(), account: a, key: key, tokens: googleToken, token: make(chan accessToken, 1)}
	if a.BaseURL != "" {
		f.tokens = base + "/token"
	}
	f.send = base + "/v1/projects/" + url.PathEscape(a.ProjectID) + "/messages:send"
	f.token <- accessToken{}
	return f, nil
}

// Close ends idle connections.
func (f *FCM) Close() { f.o.Client.CloseIdleConnections() }

// CheckToken implements Sender.
func (f *FCM) CheckToken(token string) error {
	if len(token) < 16 || len(token) > 4096 || strings.Trim(token, base64URL+":.") != "" {
		return errors.New("fcm token must be the registration token an app got from Firebase")
	}
	return nil
}

// Check implements Sender.
func (f *FCM) Check(n *Notification) error {
	_, err := f.payload("token-of-a-device", n, false)
	return err
}

type fcmMessage struct {
	// ValidateOnly checks the message and the token, and delivers nothing.
	ValidateOnly bool `json:"validate_only,omitempty"`

	Message struct {
		Token        string            `json:"token"`
		Notification fcmNotification   `json:"notification"`
		Data         map[string]string `json:"data,omitempty"`
		Android      fcmAndroid        `json:"android"`
		APNs         *fcmAPNs          `json:"apns,omitempty"`
		WebPush      *fcmWeb           `json:"webpush,omitempty"`
	} `json:"message"`
}

type fcmNotification struct {
	Title string `json:"title,omitempty"`
	Body  string `json:"body,omitempty"`
	Image string `json:"image,omitempty"`
}

type fcmAndroid struct {
	CollapseKey  string `json:"collapse_key,omitempty"`
	Priority     string `json:"priority,omitempty"`
	TTL          string `json:"ttl,omitempty"`
	Notification *struct {
		Tag string `json:"tag"`
	} `json:"notification,omitempty"`
}

type fcmAPNs struct {
	Headers    map[string]string `json:"headers,omitempty"`
	Payload    *fcmAPNsPayload   `json:"payload,omitempty"`
	FCMOptions *fcmAPNsOptions   `json:"fcm_options,omitempty"`
}

type fcmAPNsPayload struct {
	APS struct {
		// MutableContent is 1 for the app's notification service extension to show the picture.
		MutableContent int `json:"mutable-content"`
	} `json:"aps"`
}

type fcmAPNsOptions struct {
	Image string `json:"image"`
}

type fcmWeb struct {
	Headers    map[string]string `json:"headers,omitempty"`
	FCMOptions *fcmWebOptions    `json:"fcm_options,omitempty"`
}

type fcmWebOptions struct {
	Link string `json:"link"`
}

func (f *FCM) payload(token string, n *Notification, validateOnly bool) ([]byte, error) {
	if err := n.check(true); err != nil {
		return nil, err
	}
	m := fcmMessage{ValidateOnly: validateOnly}
	m.Message.Token = token
	m.Message.Notification = fcmNotification{n.Title, n.Body, n.Image}
	m.Message.Data = make(map[string]string, len(n.Data)+2)
	for key, value := range n.Data {
		if key == "from" || key == "message_type" || strings.HasPrefix(key, "google") || strings.HasPrefix(key, "gcm") {
			return nil, fmt.Errorf("data key %q is reserved by FCM; choose another", key)
		}
		m.Message.Data[key] = value
	}
	web, apple := &fcmWeb{Headers: map[string]string{}}, &fcmAPNs{Headers: map[string]string{}}
	if n.Link != "" {
		m.Message.Data["link"] = n.Link
		if strings.HasPrefix(n.Link, "https://") { // FCM takes nothing else here
			web.FCMOptions = &fcmWebOptions{n.Link}
		}
	}
	if n.ID != "" {
		m.Message.Data["id"] = n.ID
	}
	m.Message.Android = fcmAndroid{CollapseKey: n.Collapse, Priority: map[bool]string{true: "HIGH", false: "NORMAL"}[n.Urgency == UrgencyHigh]}
	if n.TTL > 0 {
		seconds := strconv.FormatInt(int64(n.TTL/time.Second), 10)
		m.Message.Android.TTL, web.Headers["TTL"] = seconds+"s", seconds
		apple.Headers["apns-expiration"] = strconv.FormatInt(f.o.Now().Add(n.TTL).Unix(), 10)
	}
	if n.Collapse != "" {
		m.Message.Android.Notification = &struct {
			Tag string `json:"tag"`
		}{n.Collapse}
		apple.Headers["apns-collapse-id"], web.Headers["Topic"] = n.Collapse, n.Collapse
	}
	if n.Image != "" {
		apple.Payload, apple.FCMOptions = new(fcmAPNsPayload), &fcmAPNsOptions{n.Image}
		apple.Payload.APS.MutableContent = 1
	}
	if len(apple.Headers) > 0 || apple.FCMOptions != nil {
		m.Message.APNs = apple
	}
	if len(web.Headers) > 0 || web.FCMOptions != nil {
		m.Message.WebPush = web
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	if size := len(b) - len(token); size > MaxPayload {
		return nil, fmt.Errorf("title, body, link and data make %d bytes, at most %d are allowed", size, MaxPayload)
	}
	return b, nil
}

// Send implements Sender.
func (f *FCM) Send(ctx context.Context, token string, n *Notification) outcome.Result {
	return f.post(ctx, token, n, false)
}

// Validate implements Validator.
func (f *FCM) Validate(ctx context.Context, token string, n *Notification) outcome.Result {
	return f.post(ctx, token, n, true)
}

func (f *FCM) post(ctx context.Context, token string, n *Notification, validateOnly bool) outcome.Result {
	if err := f.CheckToken(token); err != nil {
		return outcome.Failed(outcome.Permanent, "invalid_token", err)
	}
	body, err := f.payload(token, n, validateOnly)
	if err != nil {
		return outcome.Failed(outcome.Permanent, "invalid_message", err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.o.Timeout)
	defer cancel()
	for first := true; ; first = false {
		access, r := f.access(ctx)
		if access == "" {
			return r
		}
		req, err := http.NewRequest(http.MethodPost, f.send, bytes.NewReader(body))
		if err != nil {
			return outcome.Failed(outcome.Refused, "configuration", err)
		}
		req.Header.Set("Authorization", "Bearer "+access)
		req.Header.Set("Content-Type", "application/json")
		a, err := exchange.Do(ctx, f.o.Client, req, f.o.Timeout)
		if err != nil {
			return failed(err)
		}
		if a.Status == http.StatusUnauthorized && first {
			f.forget(ctx, access) // it may have been withdrawn; once
			continue
		}
		return f.classify(a)
	}
}

// access returns a token, fetching one when the last is about to expire.
func (f *FCM) access(ctx context.Context) (string, outcome.Result) {
	var t accessToken
	select {
	case t = <-f.token:
	case <-ctx.Done():
		return "", outcome.Failed(outcome.Temporary, "no_access_token", ctx.Err())
	}
	defer func() { f.token <- t }()
	now := f.o.Now()
	if t.text != "" && now.Before(t.expires) {
		return t.text, outcome.Result{}
	}
	fresh, r := f.fetch(ctx, now)
	if fresh.text != "" {
		t = fresh
	}
	return fresh.text, r
}

// forget drops a token the service no longer takes, unless it was replaced.
func (f *FCM) forget(ctx context.Context, text string) {
	select {
	case t := <-f.token:
		if t.text == text {
			t = accessToken{}
		}
		f.token <- t
	case <-ctx.Done():
	}
}

func (f *FCM) fetch(ctx context.Context, now time.Time) (accessToken, outcome.Result) {
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"iss": f.account.Email, "scope": fcmScope, "aud": f.tokens, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	t.Header["kid"] = f.account.KeyID
	assertion, err := t.SignedString(f.key)
	if err != nil {
		return accessToken{}, outcome.Failed(outcome.Refused, "credentials", err)
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}.Encode()
	req, err := http.NewRequest(http.MethodPost, f.tokens, strings.NewReader(form))
	if err != nil {
		return accessToken{}, outcome.Failed(outcome.Refused, "configuration", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	a, err := exchange.Do(ctx, f.o.Client, req, f.o.Timeout)
	if err != nil {
		// Whether the token request arrived does not matter: nothing was sent.
		return accessToken{}, outcome.Failed(outcome.Temporary, "network", fmt.Errorf("fetching an access token: %w", err))
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	bad := json.Unmarshal(a.Body, &answer)
	code := "token:" + answer.Error
	if answer.Error == "" {
		code = "token:" + strconv.Itoa(a.Status)
	}
	if r, ok := f.o.status(a, code, answer.Description); ok {
		return accessToken{}, r
	}
	if a.Status != http.StatusOK || bad != nil || answer.AccessToken == "" || len(answer.AccessToken) > 16<<10 {
		return accessToken{}, outcome.New(outcome.Refused, code, "Google gives no access token for this service account: "+answer.Description)
	}
	life := time.Duration(min(max(answer.ExpiresIn, 0), 24*3600)) * time.Second
	// Changed a minute early, so that no request carries one that expires on its way.
	return accessToken{text: answer.AccessToken, expires: now.Add(max(life-time.Minute, life/2))}, outcome.Result{}
}

type fcmError struct {
	Error struct {
		Status  string `json:"status"`
		Message string `json:"message"`
		Details []struct {
			Type       string `json:"@type"`
			ErrorCode  string `json:"errorCode"`
			Violations []struct {
				Field string `json:"field"`
			} `json:"fieldViolations"`
		} `json:"details"`
	} `json:"error"`
}

func (f *FCM) classify(a *exchange.Answer) outcome.Result {
	if a.Status == http.StatusOK {
		var ok struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(a.Body, &ok) // accepted is accepted; the name is a convenience
		r := outcome.New(outcome.Accepted, "200", "")
		r.ProviderID = outcome.Clean(ok.Name, outcome.MaxCode)
		return r
	}
	var e fcmError
	fromFCM := json.Unmarshal(a.Body, &e) == nil && e.Error.Status != ""
	code, text, aboutToken := e.Error.Status, e.Error.Message, false
	for _, d := range e.Error.Details {
		if strings.HasSuffix(d.Type, "fcm.v1.FcmError") && d.ErrorCode != "" {
			code = d.ErrorCode
		}
		for _, v := range d.Violations {
			aboutToken = aboutToken || v.Field == "message.token"
		}
	}
	if !fromFCM {
		code, text = strconv.Itoa(a.Status), string(a.Body)
	}
	if r, ok := f.o.status(a, code, text); ok {
		return r
	}
	switch {
	case code == "UNREGISTERED", code == "NOT_FOUND" && strings.HasPrefix(text, "Requested entity was not found"):
		return outcome.New(outcome.Retired, code, text)
	case code == "INVALID_ARGUMENT" && (aboutToken || strings.Contains(text, "registration token is not a valid")):
		return outcome.New(outcome.Retired, code, text)
	case code == "INVALID_ARGUMENT", code == "SENDER_ID_MISMATCH":
		// A token of another project is not dead; with the wrong credentials
		// uploaded every token would look so.
		return outcome.New(outcome.Permanent, code, text)
	case a.Status == http.StatusUnauthorized, a.Status == http.StatusForbidden, a.Status == http.StatusNotFound:
		return outcome.New(outcome.Refused, code, text)
	default:
		return outcome.New(outcome.Permanent, code, text)
	}
}
