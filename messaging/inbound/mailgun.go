package inbound

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Mailgun reads Mailgun's webhooks. Their signature covers a time and a token, not the
// event: a reader of one webhook could write others for as long as its time is
// accepted. The connection must therefore be TLS.
type Mailgun struct {
	// SigningKey is the account's HTTP webhook signing key.
	SigningKey string
}

var _ Provider = Mailgun{}

// String hides the key.
func (Mailgun) String() string { return "mailgun" }

// GoString hides the key from %#v.
func (Mailgun) GoString() string { return "mailgun" }

// Parse is Provider's.
func (m Mailgun) Parse(_ context.Context, now time.Time, r Request) (Batch, error) {
	if err := checkSize(r); err != nil {
		return Batch{}, fmt.Errorf("mailgun: %w", err)
	}
	var in struct {
		Signature struct {
			Timestamp string `json:"timestamp"`
			Token     string `json:"token"`
			Signature string `json:"signature"`
		} `json:"signature"`
		Data struct {
			Event     text    `json:"event"`
			ID        text    `json:"id"`
			Timestamp float64 `json:"timestamp"`
			Severity  text    `json:"severity"`
			Reason    text    `json:"reason"`
			Recipient text    `json:"recipient"`
			URL       text    `json:"url"`
			IP        text    `json:"ip"`
			Client    struct {
				UserAgent text `json:"user-agent"`
				Bot       text `json:"bot"`
			} `json:"client-info"`
			Status struct {
				Message     text `json:"message"`
				Description text `json:"description"`
				Enhanced    text `json:"enhanced-code"`
			} `json:"delivery-status"`
			Message struct {
				Headers struct {
					ID text `json:"message-id"`
				} `json:"headers"`
			} `json:"message"`
			Variables map[string]any `json:"user-variables"`
		} `json:"event-data"`
	}
	if err := decode("body", r.Body, &in); err != nil {
		return Batch{}, fmt.Errorf("mailgun: %w", err)
	}
	s := in.Signature
	got, err := hex.DecodeString(s.Signature)
	h := hmac.New(sha256.New, []byte(m.SigningKey))
	h.Write([]byte(s.Timestamp))
	h.Write([]byte(s.Token))
	if err != nil || m.SigningKey == "" || s.Token == "" || !hmac.Equal(got, h.Sum(nil)) {
		return Batch{}, fmt.Errorf("mailgun: the signature does not match the signing key: %w", ErrUnauthorised)
	}
	at, ok := unix(s.Timestamp)
	if !ok {
		return Batch{}, fmt.Errorf("mailgun: signature.timestamp must be seconds since 1970: %w", ErrUnauthorised)
	}
	if err := checkAge("signature.timestamp", at, now); err != nil {
		return Batch{}, fmt.Errorf("mailgun: %w", err)
	}

	d := in.Data
	e := Event{MessageID: string(d.Message.Headers.ID), Recipient: string(d.Recipient), Visit: Visit{IP: string(d.IP), UserAgent: string(d.Client.UserAgent)}}
	e.SendID, _ = d.Variables["send_id"].(string)
	if d.Timestamp > 0 && d.Timestamp < math.MaxInt32*100 {
		e.At = time.UnixMilli(int64(d.Timestamp * 1000))
	}
	e.Machine = d.Client.Bot != ""
	switch d.Event {
	case "failed":
		if d.Severity != "permanent" {
			return Batch{}, nil // Mailgun tries again
		}
		e.Type, e.Status = Bounce, string(d.Status.Enhanced)
		e.Reason = string(d.Status.Message)
		if e.Reason == "" {
			e.Reason = string(d.Status.Description)
		}
		switch d.Reason {
		case "suppress-bounce":
			e.Hard = true
		case "suppress-complaint", "suppress-unsubscribe", "old", "espblock":
		default:
			_, hard, known := verdict(enhancedStatus(e.Status), e.Reason)
			e.Hard = hard || !known
		}
	case "delivered":
		e.Type = Delivery
	case "opened":
		e.Type = Open
	case "clicked":
		e.Type, e.URL = Click, string(d.URL)
	case "complained":
		e.Type = Complaint
	case "unsubscribed":
		e.Type = Unsubscribe
	default:
		return Batch{}, nil
	}
	if e = e.trim(); e.SendID == "" && e.MessageID == "" && e.Recipient == "" {
		return Batch{}, nil
	}
	if d.ID != "" {
		e.ID = providerID("mailgun", string(d.ID))
	} else {
		e.ID = contentID("mailgun", string(d.Event), e.MessageID, e.Recipient, strconv.FormatInt(e.At.UnixMilli(), 10), e.URL)
	}
	return Batch{Events: []Event{e}}, nil
}
