package inbound

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/messaging/webhook"
)

var (
	ctx = context.Background()
	now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func request(body string, headers ...string) Request {
	return Request{Body: []byte(body), Header: func(name string) string {
		for i := 0; i < len(headers); i += 2 {
			if strings.EqualFold(headers[i], name) {
				return headers[i+1]
			}
		}
		return ""
	}}
}

// brief shows the fields that readers differ in.
func brief(b Batch) string {
	var out []string
	for _, e := range b.Events {
		s := fmt.Sprintf("%s send=%s msg=%s to=%s", e.Type, e.SendID, e.MessageID, e.Recipient)
		if e.Type == Bounce {
			s += fmt.Sprintf(" hard=%v %s", e.Hard, e.Status)
		}
		if e.URL != "" {
			s += " " + e.URL
		}
		if e.Machine {
			s += " machine"
		}
		out = append(out, s)
	}
	return strings.Join(out, "; ")
}

// refuses reports whether a request yields the error and no events (I3).
func refuses(t *testing.T, name string, p Provider, at time.Time, r Request, want error) {
	t.Helper()
	b, err := p.Parse(ctx, at, r)
	if !errors.Is(err, want) || len(b.Events) > 0 || b.ConfirmURL != "" {
		t.Errorf("%s: %+v, %v", name, b, err)
	}
}

// yields parses twice: the same ids both times (I2), and different ones within.
func yields(t *testing.T, name string, p Provider, r Request, want string) Batch {
	t.Helper()
	b, err := p.Parse(ctx, now, r)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return b
	}
	if got := brief(b); got != want {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
	again, err := p.Parse(ctx, now, r)
	seen := map[string]bool{}
	for i, e := range b.Events {
		if err != nil || again.Events[i].ID != e.ID || seen[e.ID] {
			t.Errorf("%s: id %q", name, e.ID)
		}
		seen[e.ID] = true
	}
	checkEvents(t, b.Events)
	return b
}

func genericSecret(t testing.TB) webhook.Secret {
	s, err := webhook.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func signedGeneric(t testing.TB, body string) Request {
	return request(body, webhook.HeaderID, "m1", webhook.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10),
		webhook.HeaderSignature, webhook.Sign("m1", now, []byte(body), []webhook.Secret{genericSecret(t)}))
}

func TestGeneric(t *testing.T) {
	g := Generic{Secrets: []webhook.Secret{genericSecret(t)}}
	b := yields(t, "array", g, signedGeneric(t, `[
		{"type":"bounce","send_id":"s1","recipient":"a@b.example","hard":true,"status":"5.1.1","reason":"no\nsuch","timestamp":"2026-03-01T10:00:00+01:00","id":"e1"},
		{"type":"click","message_id":"<m@x>","url":"https://a.example/","timestamp":1772359200000},
		{"type":"unsubscribe","recipient":"a@b.example"}]`),
		"bounce send=s1 msg= to=a@b.example hard=true 5.1.1; click send= msg=m@x to= https://a.example/; unsubscribe send= msg= to=a@b.example")
	if len(b.Events) == 3 {
		if e := b.Events[0]; e.ID != "generic:e1" || e.Reason != "no such" || !e.At.Equal(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)) {
			t.Errorf("%+v", e)
		}
		if e := b.Events[1]; !e.At.Equal(time.UnixMilli(1772359200000)) {
			t.Errorf("%+v", e)
		}
		if !b.Events[2].At.IsZero() {
			t.Error("a time from nowhere")
		}
	}
	yields(t, "one object", g, signedGeneric(t, ` {"type":"open","send_id":"s1","machine":true}`), "open send=s1 msg= to= machine")
	yields(t, "none", g, signedGeneric(t, `[]`), "")
	// White space does not make another fact.
	x, _ := g.Parse(ctx, now, signedGeneric(t, `{"type":"open","send_id":"s1"}`))
	y, _ := g.Parse(ctx, now, signedGeneric(t, `[{"type": "open",  "send_id":"s1"}]`))
	z, _ := g.Parse(ctx, now, signedGeneric(t, `[{"type": "open",  "send_id":"s2"}]`))
	if x.Events[0].ID != y.Events[0].ID || x.Events[0].ID == z.Events[0].ID {
		t.Errorf("%s %s %s", x.Events[0].ID, y.Events[0].ID, z.Events[0].ID)
	}
	for body, field := range map[string]string{
		`[{"type":"opened","send_id":"s"}]`:                              "type",
		`[{"type":"open"}]`:                                              "send_id",
		`[{"type":"open","recipient":"not an address"}]`:                 "recipient",
		`[{"type":"open","send_id":"s","hard":true}]`:                    "hard",
		`[{"type":"open","send_id":"s","timestamp":"yesterday"}]`:        "timestamp",
		`[{"type":"open","send_id":"s","timestamp":-99999999999999999}]`: "timestamp",
		`[{"type":"open","send_id":7}]`:                                  "send_id",
		`[1]`:                                                            "event 0",
		`{`:                                                              "body",
		``:                                                               "body",
		`[{"type":"open","send_id":"s","id":"` + strings.Repeat("x", 300) + `"}]`: "id",
	} {
		r := signedGeneric(t, body)
		refuses(t, body, g, now, r, ErrMalformed)
		if _, err := g.Parse(ctx, now, r); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%.80s: %v", body, err)
		}
	}
	refuses(t, "too many", g, now, signedGeneric(t, "["+strings.Repeat("{},", MaxEvents)+"{}]"), ErrTooLarge)
	refuses(t, "too large", g, now, signedGeneric(t, strings.Repeat(" ", MaxBytes+1)), ErrTooLarge)
	good := signedGeneric(t, `[{"type":"open","send_id":"s1"}]`)
	refuses(t, "I3 late", g, now.Add(6*time.Minute), good, ErrUnauthorised)
	refuses(t, "I3 no secrets", Generic{}, now, good, ErrUnauthorised)
	changed := good
	changed.Body = []byte(`[{"type":"open","send_id":"s2"}]`)
	refuses(t, "I3 changed", g, now, changed, ErrUnauthorised)
	refuses(t, "I3 unsigned", g, now, request(string(good.Body)), ErrUnauthorised)
}

func TestSendGrid(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKIXPublicKey(&key.PublicKey)
	p, err := NewSendGrid(base64.StdEncoding.EncodeToString(der))
	if err != nil {
		t.Fatal(err)
	}
	sign := func(body string, at time.Time) Request {
		stamp := strconv.FormatInt(at.Unix(), 10)
		sum := sha256.Sum256([]byte(stamp + body))
		sig, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return request(body, "X-Twilio-Email-Event-Webhook-Signature", base64.StdEncoding.EncodeToString(sig), "X-Twilio-Email-Event-Webhook-Timestamp", stamp)
	}
	body := `[
	{"email":"a@b.example","timestamp":1772359200,"smtp-id":"<m1@x>","event":"processed","sg_event_id":"1"},
	{"email":"a@b.example","timestamp":1772359200,"smtp-id":"<m1@x>","event":"delivered","sg_event_id":"2","send_id":"s1"},
	{"email":"a@b.example","timestamp":1772359200,"smtp-id":"<m1@x>","event":"bounce","sg_event_id":"3","type":"bounce","status":"5.1.1","reason":"550 5.1.1 user unknown"},
	{"email":"a@b.example","timestamp":1772359200,"event":"bounce","sg_event_id":"4","type":"blocked","status":"5.7.1","reason":"550 5.7.1 spam"},
	{"email":"a@b.example","timestamp":1772359200,"event":"bounce","sg_event_id":"4b","type":"bounce","status":"","reason":""},
	{"email":"a@b.example","timestamp":1772359200,"event":"dropped","sg_event_id":"5","reason":"Bounced Address"},
	{"email":"a@b.example","timestamp":1772359200,"event":"dropped","sg_event_id":"6","reason":"Unsubscribed Address"},
	{"email":"a@b.example","timestamp":1772359200,"event":"open","sg_event_id":"7","useragent":"Mozilla/5.0","ip":"192.0.2.1","sg_machine_open":true},
	{"email":"a@b.example","timestamp":1772359200,"event":"click","sg_event_id":"8","url":"https://a.example/"},
	{"email":"a@b.example","timestamp":1772359200,"event":"spamreport","sg_event_id":"9"},
	{"email":"a@b.example","timestamp":1772359200,"event":"group_unsubscribe","sg_event_id":"10"},
	{"email":"a@b.example","timestamp":1772359200,"event":"unsubscribe"},
	{"event":"of tomorrow"},{"email":7,"event":"open"},17]`
	b := yields(t, "all", p, sign(body, now), "delivery send=s1 msg=m1@x to=a@b.example; bounce send= msg=m1@x to=a@b.example hard=true 5.1.1; "+
		"bounce send= msg= to=a@b.example hard=false 5.7.1; bounce send= msg= to=a@b.example hard=true ; bounce send= msg= to=a@b.example hard=true ; bounce send= msg= to=a@b.example hard=false ; "+
		"open send= msg= to=a@b.example machine; click send= msg= to=a@b.example https://a.example/; complaint send= msg= to=a@b.example; unsubscribe send= msg= to=a@b.example; unsubscribe send= msg= to=a@b.example")
	if len(b.Events) > 0 && (b.Events[0].ID != "sendgrid:2" || b.Events[0].At.Unix() != 1772359200) {
		t.Errorf("%+v", b.Events[0])
	}
	good := sign(body, now)
	changed := good
	changed.Body = append([]byte(" "), good.Body...)
	refuses(t, "I3 changed", p, now, changed, ErrUnauthorised)
	refuses(t, "I3 old", p, now.Add(MaxAge+time.Minute), good, ErrUnauthorised)
	refuses(t, "I3 of the future", p, now.Add(-time.Hour), good, ErrUnauthorised)
	refuses(t, "I3 unsigned", p, now, request(body), ErrUnauthorised)
	refuses(t, "no JSON", p, now, sign("x", now), ErrMalformed)
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	rsaDER, _ := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	for _, k := range []string{"", "x", "AAAA", base64.StdEncoding.EncodeToString(rsaDER)} {
		if _, err := NewSendGrid(k); !errors.Is(err, ErrMalformed) {
			t.Errorf("%.20q: %v", k, err)
		}
	}
}

func signedMailgun(key, data string, at time.Time) string {
	stamp, token := strconv.FormatInt(at.Unix(), 10), "a8ce0edb2dd8301dee6c2405235584e45aa91d1e9f979f3de0"
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(stamp + token))
	return fmt.Sprintf(`{"signature":{"timestamp":%q,"token":%q,"signature":%q},"event-data":%s}`, stamp, token, hex.EncodeToString(h.Sum(nil)), data)
}

func TestMailgun(t *testing.T) {
	m := Mailgun{SigningKey: "key-1"}
	for data, want := range map[string]string{
		`{"event":"delivered","id":"1","timestamp":1772359200.25,"recipient":"a@b.example","message":{"headers":{"message-id":"m1@x"}},"user-variables":{"send_id":"s1"}}`:    "delivery send=s1 msg=m1@x to=a@b.example",
		`{"event":"failed","severity":"permanent","reason":"bounce","id":"2","recipient":"a@b.example","delivery-status":{"code":550,"message":"5.1.1 unknown user"}}`:        "bounce send= msg= to=a@b.example hard=true ",
		`{"event":"failed","severity":"permanent","reason":"generic","id":"2","recipient":"a@b.example","delivery-status":{"enhanced-code":"5.7.1","description":"blocked"}}`: "bounce send= msg= to=a@b.example hard=false 5.7.1",
		`{"event":"failed","severity":"permanent","reason":"suppress-bounce","id":"2","recipient":"a@b.example"}`:                                                             "bounce send= msg= to=a@b.example hard=true ",
		`{"event":"failed","severity":"permanent","reason":"suppress-complaint","id":"2","recipient":"a@b.example"}`:                                                          "bounce send= msg= to=a@b.example hard=false ",
		`{"event":"failed","severity":"temporary","id":"2","recipient":"a@b.example"}`:                                                                                        "",
		`{"event":"opened","recipient":"a@b.example","client-info":{"user-agent":"x","bot":"apple"},"ip":"192.0.2.1"}`:                                                        "open send= msg= to=a@b.example machine",
		`{"event":"clicked","id":"3","recipient":"a@b.example","url":"https://a.example/"}`:                                                                                   "click send= msg= to=a@b.example https://a.example/",
		`{"event":"complained","id":"4","recipient":"a@b.example"}`:                                                                                                           "complaint send= msg= to=a@b.example",
		`{"event":"unsubscribed","id":"5","recipient":"a@b.example"}`:                                                                                                         "unsubscribe send= msg= to=a@b.example",
		`{"event":"accepted","id":"6","recipient":"a@b.example"}`:                                                                                                             "",
		`{"event":"opened","timestamp":1e300,"user-variables":{"send_id":7}}`:                                                                                                 "",
	} {
		yields(t, data, m, request(signedMailgun("key-1", data, now)), want)
	}
	good := signedMailgun("key-1", `{"event":"opened","recipient":"a@b.example"}`, now)
	refuses(t, "I3 other key", Mailgun{SigningKey: "key-2"}, now, request(good), ErrUnauthorised)
	refuses(t, "I3 no key", Mailgun{}, now, request(signedMailgun("", `{}`, now)), ErrUnauthorised)
	refuses(t, "I3 old", m, now.Add(MaxAge+time.Minute), request(good), ErrUnauthorised)
	refuses(t, "I3 unsigned", m, now, request(`{"event-data":{"event":"opened"}}`), ErrUnauthorised)
	refuses(t, "no JSON", m, now, request(`x`), ErrMalformed)
}

func TestPostmark(t *testing.T) {
	p := Postmark{Password: Password{User: "u", Password: "p:w", Secret: "0123456789abcdef"}}
	auth := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:p:w"))
	for body, want := range map[string]string{
		`{"RecordType":"Bounce","ID":42,"Type":"HardBounce","MessageID":"m1","Email":"a@b.example","Details":"550 5.1.1 unknown","BouncedAt":"2026-03-01T10:00:00Z","Metadata":{"send_id":"s1"}}`: "bounce send=s1 msg=m1 to=a@b.example hard=true 5.1.1",
		`{"RecordType":"Bounce","ID":4692560145,"Type":"SoftBounce","Email":"a@b.example","Description":"full"}`:                                                                                  "bounce send= msg= to=a@b.example hard=false ",
		`{"RecordType":"Bounce","ID":43,"Type":"DnsError","Email":"a@b.example"}`:                                                                                                                 "bounce send= msg= to=a@b.example hard=false ",
		`{"RecordType":"Bounce","ID":44,"Type":"AutoResponder","Email":"a@b.example"}`:                                                                                                            "",
		`{"RecordType":"Bounce","ID":45,"Type":"SpamComplaint","Email":"a@b.example"}`:                                                                                                            "complaint send= msg= to=a@b.example",
		`{"RecordType":"SpamComplaint","ID":46,"Email":"a@b.example"}`:                                                                                                                            "complaint send= msg= to=a@b.example",
		`{"RecordType":"Delivery","MessageID":"m1","Recipient":"a@b.example","DeliveredAt":"2026-03-01T10:00:00Z"}`:                                                                               "delivery send= msg=m1 to=a@b.example",
		`{"RecordType":"Open","MessageID":"m1","Recipient":"a@b.example","UserAgent":"x","Geo":{"IP":"192.0.2.1"}}`:                                                                               "open send= msg=m1 to=a@b.example",
		`{"RecordType":"Click","MessageID":"m1","Recipient":"a@b.example","OriginalLink":"https://a.example/"}`:                                                                                   "click send= msg=m1 to=a@b.example https://a.example/",
		`{"RecordType":"SubscriptionChange","Recipient":"a@b.example","SuppressSending":true,"SuppressionReason":"ManualSuppression"}`:                                                            "unsubscribe send= msg= to=a@b.example",
		`{"RecordType":"SubscriptionChange","Recipient":"a@b.example","SuppressSending":true,"SuppressionReason":"HardBounce"}`:                                                                   "",
		`{"RecordType":"SubscriptionChange","Recipient":"a@b.example","SuppressSending":false}`:                                                                                                   "",
		`{"RecordType":"Inbound"}`: "",
	} {
		yields(t, body, p, request(body, "Authorization", auth), want)
	}
	open := `{"RecordType":"Open","MessageID":"m1"}`
	inURL := request(open)
	inURL.Secret = "0123456789abcdef"
	yields(t, "secret in the URL", p, inURL, "open send= msg=m1 to=")
	inURL.Secret = "0123456789abcdeX"
	refuses(t, "I3 other secret", p, now, inURL, ErrUnauthorised)
	refuses(t, "I3 none", p, now, request(open), ErrUnauthorised)
	refuses(t, "I3 other password", p, now, request(open, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("u:p:x"))), ErrUnauthorised)
	refuses(t, "I3 nothing set", Postmark{}, now, request(open, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(":"))), ErrUnauthorised)
	short := request(open)
	short.Secret = "short"
	refuses(t, "I3 short secret", Postmark{Password{Secret: "short"}}, now, short, ErrUnauthorised)
	refuses(t, "no JSON", p, now, request("x", "Authorization", auth), ErrMalformed)
	if s := fmt.Sprintf("%v %#v %v", p.Password, p.Password, Mailgun{SigningKey: "k1"}); strings.Contains(s, "p:w") || strings.Contains(s, "k1") {
		t.Errorf("printed: %s", s)
	}
}

// fakeSNS signs as SNS does and serves the certificate.
type fakeSNS struct {
	key  *rsa.PrivateKey
	cert []byte

	mu struct {
		sync.Mutex
		fetched []string
		fail    error
	}
}

const certURL = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123.pem"

func newFakeSNS(t testing.TB) *fakeSNS {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns.amazonaws.com"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(30 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &fakeSNS{key: key, cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func (f *fakeSNS) Fetch(_ context.Context, u string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.fetched = append(f.mu.fetched, u)
	return f.cert, f.mu.fail
}

func (f *fakeSNS) message(t testing.TB, m snsMessage) Request {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&m.Type, "Notification")
	def(&m.MessageID, "22b80b92")
	def(&m.TopicArn, "arn:aws:sns:eu-west-1:1:ses")
	def(&m.Timestamp, now.Format("2006-01-02T15:04:05.000Z"))
	def(&m.SignatureVersion, "2")
	def(&m.SigningCertURL, certURL)
	if m.Signature == "" {
		text, _ := m.signed()
		h1, h2 := sha1.Sum([]byte(text)), sha256.Sum256([]byte(text))
		hash, sum := crypto.SHA256, h2[:]
		if m.SignatureVersion == "1" {
			hash, sum = crypto.SHA1, h1[:]
		}
		sig, err := rsa.SignPKCS1v15(rand.Reader, f.key, hash, sum)
		if err != nil {
			t.Fatal(err)
		}
		m.Signature = base64.StdEncoding.EncodeToString(sig)
	}
	raw, _ := json.Marshal(m)
	return request(string(raw))
}

const sesBounce = `{"notificationType":"Bounce","bounce":{"bounceType":"Permanent","bounceSubType":"General","feedbackId":"f1","timestamp":"2026-03-01T10:00:00.000Z",
	"bouncedRecipients":[{"emailAddress":"a@b.example","status":"5.1.1","diagnosticCode":"smtp; 550 5.1.1 unknown"},{"emailAddress":"c@b.example"}]},
	"mail":{"messageId":"0100-1","headers":[{"name":"X-Muster-Send-ID","value":"s1"},{"name":"Message-ID","value":"<m1@x>"}],"destination":["a@b.example","c@b.example"]}}`

func TestSES(t *testing.T) {
	f := newFakeSNS(t)
	p := SES{SNS: NewSNS(f), Topics: []string{"arn:aws:sns:eu-west-1:1:ses"}, Password: Password{Secret: "0123456789abcdef"}}
	subject := "Amazon SES"
	for body, want := range map[string]string{
		sesBounce: "bounce send=s1 msg=m1@x to=a@b.example hard=true 5.1.1; bounce send=s1 msg=m1@x to=c@b.example hard=true ",
		`{"eventType":"Bounce","bounce":{"bounceType":"Transient","bouncedRecipients":[{"emailAddress":"a@b.example"}]},"mail":{"messageId":"0100-1","tags":{"send_id":["s2"]}}}`: "bounce send=s2 msg=0100-1 to=a@b.example hard=false ",
		`{"notificationType":"Complaint","complaint":{"complaintFeedbackType":"abuse","feedbackId":"f2","complainedRecipients":[{"emailAddress":"a@b.example"}]}}`:                "complaint send= msg= to=a@b.example",
		`{"notificationType":"Complaint","complaint":{"complaintFeedbackType":"not-spam","complainedRecipients":[{"emailAddress":"a@b.example"}]}}`:                               "",
		`{"notificationType":"Delivery","delivery":{"recipients":["a@b.example"]},"mail":{"messageId":"0100-1"}}`:                                                                 "delivery send= msg=0100-1 to=a@b.example",
		`{"eventType":"Reject","reject":{"reason":"Bad content"},"mail":{"messageId":"0100-1","destination":["a@b.example"]}}`:                                                    "bounce send= msg=0100-1 to=a@b.example hard=false ",
		`{"eventType":"Open","open":{"userAgent":"x","ipAddress":"192.0.2.1"},"mail":{"messageId":"0100-1","destination":["a@b.example"]}}`:                                       "open send= msg=0100-1 to=a@b.example",
		`{"eventType":"Click","click":{"link":"https://a.example/"},"mail":{"messageId":"0100-1","destination":["a@b.example","c@b.example"]}}`:                                   "click send= msg=0100-1 to= https://a.example/",
		`{"eventType":"Subscription","subscription":{"newTopicPreferences":{"unsubscribeAll":true}},"mail":{"messageId":"0100-1","destination":["a@b.example"]}}`:                 "unsubscribe send= msg=0100-1 to=a@b.example",
		`{"eventType":"Subscription","subscription":{},"mail":{"messageId":"0100-1"}}`:                                                                                            "",
		`{"eventType":"Send","mail":{"messageId":"0100-1"}}`:                                                                                                                      "",
	} {
		yields(t, "version 2: "+body, p, f.message(t, snsMessage{Message: body, Subject: &subject}), want)
		yields(t, "version 1: "+body, p, f.message(t, snsMessage{Message: body, SignatureVersion: "1"}), want)
		raw := request(body, "x-amz-sns-rawdelivery", "true")
		refuses(t, "I3 raw without secret", p, now, raw, ErrUnauthorised)
		raw.Secret = "0123456789abcdef"
		yields(t, "raw: "+body, p, raw, want)
	}
	if len(f.mu.fetched) != 1 || f.mu.fetched[0] != certURL {
		t.Errorf("fetched %v", f.mu.fetched)
	}
	confirm := "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=x"
	b, err := p.Parse(ctx, now, f.message(t, snsMessage{Type: "SubscriptionConfirmation", Token: "x", SubscribeURL: confirm, Message: "You have chosen"}))
	if err != nil || b.ConfirmURL != confirm {
		t.Errorf("%+v, %v", b, err)
	}
	if err := p.SNS.Confirm(ctx, b.ConfirmURL); err != nil || f.mu.fetched[1] != confirm {
		t.Error(err, f.mu.fetched)
	}
	if err := p.SNS.Confirm(ctx, "https://sns.eu-west-1.amazonaws.com.evil.example/"); !errors.Is(err, ErrUnauthorised) || len(f.mu.fetched) != 2 {
		t.Error(err, f.mu.fetched)
	}

	good := snsMessage{Message: sesBounce}
	for name, m := range map[string]snsMessage{
		"other topic":         {Message: sesBounce, TopicArn: "arn:aws:sns:eu-west-1:2:ses"},
		"old":                 {Message: sesBounce, Timestamp: now.Add(-MaxAge - time.Minute).Format(time.RFC3339)},
		"version":             {Message: sesBounce, SignatureVersion: "3"},
		"signature":           {Message: sesBounce, Signature: "AAAA"},
		"no base64":           {Message: sesBounce, Signature: "!"},
		"certificate's host":  {Message: sesBounce, SigningCertURL: "https://sns.eu-west-1.amazonaws.com.evil.example/x.pem"},
		"certificate's host2": {Message: sesBounce, SigningCertURL: "https://evil.example/sns.eu-west-1.amazonaws.com/x.pem"},
		"certificate's user":  {Message: sesBounce, SigningCertURL: "https://sns.eu-west-1.amazonaws.com@evil.example/x.pem"},
		"certificate's port":  {Message: sesBounce, SigningCertURL: "https://sns.eu-west-1.amazonaws.com:8443/x.pem"},
		"bucket":              {Message: sesBounce, SigningCertURL: "https://sns.s3.amazonaws.com/x.pem"},
		"plain http":          {Message: sesBounce, SigningCertURL: "http://sns.eu-west-1.amazonaws.com/x.pem"},
		"no pem":              {Message: sesBounce, SigningCertURL: "https://sns.eu-west-1.amazonaws.com/x"},
		"confirmation's host": {Type: "SubscriptionConfirmation", SubscribeURL: "https://evil.example/"},
	} {
		refuses(t, "I3 "+name, p, now, f.message(t, m), ErrUnauthorised)
	}
	changed := f.message(t, good)
	changed.Body = []byte(strings.Replace(string(changed.Body), "a@b.example", "z@b.example", 1))
	refuses(t, "I3 changed", p, now, changed, ErrUnauthorised)
	other := newFakeSNS(t)
	refuses(t, "I3 other key", p, now, other.message(t, good), ErrUnauthorised)
	refuses(t, "I3 no topics", SES{SNS: p.SNS}, now, f.message(t, good), ErrUnauthorised)
	refuses(t, "I3 nothing set", SES{}, now, f.message(t, good), ErrUnauthorised)
	late := now.Add(31 * 24 * time.Hour)
	refuses(t, "I3 certificate expired", p, late, f.message(t, snsMessage{Message: sesBounce, Timestamp: late.Format(time.RFC3339)}), ErrUnauthorised)
	refuses(t, "no JSON", p, now, request("x"), ErrMalformed)
	refuses(t, "no notification", p, now, f.message(t, snsMessage{Message: "Successfully validated SNS topic"}), ErrMalformed)
	refuses(t, "unknown type", p, now, f.message(t, snsMessage{Type: "Other"}), ErrMalformed)

	down := newFakeSNS(t)
	down.mu.fail = errors.New("no route")
	broken := SES{SNS: NewSNS(down), Topics: p.Topics}
	refuses(t, "no certificate", broken, now, down.message(t, good), ErrUnavailable)
	down.mu.fail = nil
	yields(t, "certificate later", broken, down.message(t, good), "bounce send=s1 msg=m1@x to=a@b.example hard=true 5.1.1; bounce send=s1 msg=m1@x to=c@b.example hard=true ")
}

func TestHTTPFetcher(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/big":
			w.Write(make([]byte, 1<<20))
		case "/away":
			http.Redirect(w, r, "/ok", http.StatusFound)
		default:
			w.Write([]byte("ok"))
		}
	}))
	defer srv.Close()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	f := NewHTTPFetcher(tr)
	if got, err := f.Fetch(ctx, srv.URL+"/ok"); err != nil || string(got) != "ok" {
		t.Error(string(got), err)
	}
	if got, err := f.Fetch(ctx, srv.URL+"/big"); err != nil || len(got) != maxFetchBytes {
		t.Error(len(got), err)
	}
	if _, err := f.Fetch(ctx, srv.URL+"/away"); err == nil {
		t.Error("a redirect was followed")
	}
}

// FuzzI1Providers feeds bodies that are signed as they should be to every reader.
func FuzzI1Providers(f *testing.F) {
	sns := newFakeSNS(f)
	ses := SES{SNS: NewSNS(sns), Topics: []string{"arn:aws:sns:eu-west-1:1:ses"}, Password: Password{Secret: "0123456789abcdef"}}
	f.Add(sesBounce)
	f.Add(`[{"type":"bounce","send_id":"s1","hard":true,"timestamp":1e3}]`)
	f.Add(`[{"email":"a@b.example","timestamp":1,"event":"bounce","type":"bounce","status":"5.1.1","reason":"x"}]`)
	f.Add(`{"event":"failed","severity":"permanent","id":"2","timestamp":1e15,"recipient":"a@b.example","delivery-status":{"message":"5.1.1"}}`)
	f.Add(`{"RecordType":"Bounce","ID":42,"Type":"HardBounce","Email":"a@b.example","BouncedAt":"2026-03-01T10:00:00Z"}`)
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > 1<<16 {
			return
		}
		raw := request(body, "X-Amz-Sns-Rawdelivery", "true")
		raw.Secret = "0123456789abcdef"
		for _, c := range []struct {
			p Provider
			r Request
		}{
			{Generic{Secrets: []webhook.Secret{genericSecret(t)}}, signedGeneric(t, body)},
			{Mailgun{SigningKey: "k"}, request(signedMailgun("k", body, now))},
			{Postmark{Password{Secret: "0123456789abcdef"}}, raw},
			{ses, raw},
			{ses, request(body)},
		} {
			b, err := c.p.Parse(ctx, now, c.r)
			if err != nil && len(b.Events) > 0 {
				t.Fatal("events with an error")
			}
			checkEvents(t, b.Events)
		}
		if raws, err := elements([]byte(body)); err == nil {
			for _, one := range raws {
				if e, ok := sendGridEvent(one); ok {
					checkEvents(t, []Event{e})
				}
			}
		}
	})
}
