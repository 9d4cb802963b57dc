package inbound

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// SendGrid reads SendGrid's signed event webhook.
type SendGrid struct {
	key *ecdsa.PublicKey
}

var _ Provider = (*SendGrid)(nil)

// NewSendGrid takes the verification key that SendGrid shows with the webhook's
// settings: base64 of a public key.
func NewSendGrid(publicKey string) (*SendGrid, error) {
	der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(publicKey))
	if err != nil {
		return nil, fmt.Errorf("verification key must be base64, as SendGrid shows it: %w", ErrMalformed)
	}
	pub, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("verification key is no public key: %w", ErrMalformed)
	}
	key, ok := pub.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("verification key must be an ECDSA key: %w", ErrMalformed)
	}
	return &SendGrid{key}, nil
}

// Parse is Provider's.
func (s *SendGrid) Parse(_ context.Context, now time.Time, r Request) (Batch, error) {
	if err := checkSize(r); err != nil {
		return Batch{}, fmt.Errorf("sendgrid: %w", err)
	}
	const sigHeader, timeHeader = "X-Twilio-Email-Event-Webhook-Signature", "X-Twilio-Email-Event-Webhook-Timestamp"
	stamp := r.Header(timeHeader)
	at, ok := unix(stamp)
	sig, err := base64.StdEncoding.DecodeString(r.Header(sigHeader))
	if !ok || err != nil {
		return Batch{}, fmt.Errorf("sendgrid: header %s or %s is missing or cannot be read: %w", sigHeader, timeHeader, ErrUnauthorised)
	}
	h := sha256.New()
	h.Write([]byte(stamp))
	h.Write(r.Body)
	if !ecdsa.VerifyASN1(s.key, h.Sum(nil), sig) {
		return Batch{}, fmt.Errorf("sendgrid: the signature does not match the verification key: %w", ErrUnauthorised)
	}
	if err := checkAge("header "+timeHeader, at, now); err != nil {
		return Batch{}, fmt.Errorf("sendgrid: %w", err)
	}
	raws, err := elements(r.Body)
	if err != nil {
		return Batch{}, fmt.Errorf("sendgrid: %w", err)
	}
	var b Batch
	for _, raw := range raws {
		if e, ok := sendGridEvent(raw); ok {
			b.Events = append(b.Events, e)
		}
	}
	return b, nil
}

// sendGridEvent leaves out what it cannot use: an event of a new kind must not hold
// up the batch.
func sendGridEvent(raw json.RawMessage) (Event, bool) {
	var in struct {
		Event     text  `json:"event"`
		Email     text  `json:"email"`
		Timestamp int64 `json:"timestamp"`
		SMTPID    text  `json:"smtp-id"`
		EventID   text  `json:"sg_event_id"`
		SendID    text  `json:"send_id"` // a custom argument
		Kind      text  `json:"type"`
		Status    text  `json:"status"`
		Reason    text  `json:"reason"`
		URL       text  `json:"url"`
		UserAgent text  `json:"useragent"`
		IP        text  `json:"ip"`
		Machine   bool  `json:"sg_machine_open"`
	}
	if json.Unmarshal(raw, &in) != nil {
		return Event{}, false
	}
	e := Event{
		SendID: string(in.SendID), MessageID: string(in.SMTPID), Recipient: string(in.Email), Visit: Visit{UserAgent: string(in.UserAgent), IP: string(in.IP), Machine: in.Machine},
		At: time.Unix(in.Timestamp, 0),
	}
	reason := strings.ToLower(string(in.Reason))
	switch in.Event {
	case "bounce":
		// "blocked" is a refusal of the message or the sender.
		e.Type, e.Status, e.Reason = Bounce, string(in.Status), string(in.Reason)
		_, hard, known := verdict(enhancedStatus(e.Status), e.Reason)
		e.Hard = in.Kind != "blocked" && (hard || !known)
	case "dropped":
		e.Type, e.Status, e.Reason = Bounce, string(in.Status), string(in.Reason)
		e.Hard = strings.Contains(reason, "bounced address") || strings.Contains(reason, "invalid")
	case "delivered":
		e.Type = Delivery
	case "open":
		e.Type = Open
	case "click":
		e.Type, e.URL = Click, string(in.URL)
	case "spamreport":
		e.Type = Complaint
	case "unsubscribe", "group_unsubscribe":
		e.Type = Unsubscribe
	default: // processed, deferred, group_resubscribe …
		return Event{}, false
	}
	e = e.trim()
	if e.SendID == "" && e.MessageID == "" && e.Recipient == "" {
		return Event{}, false
	}
	if in.EventID != "" {
		e.ID = providerID("sendgrid", string(in.EventID))
	} else {
		e.ID = contentID("sendgrid", compact(raw))
	}
	return e, true
}
