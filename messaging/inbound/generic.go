package inbound

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/messaging/webhook"
)

// Generic reads a webhook of our own definition, for providers without a preset and
// for own mail systems: a JSON array of
//
//	{"type": "bounce|complaint|delivery|open|click|unsubscribe|failure|reply",   required
//	 "send_id": "…", "message_id": "…", "recipient": "…",          at least one, but for replies
//	 "channel": "sms|whatsapp|im", "from": "+49…", "to": "+49…", "text": "…",     of replies
//	 "hard": true, "status": "5.1.1", "reason": "…",               of bounces
//	 "url": "…", "user_agent": "…", "ip": "…", "machine": false,   of opens and clicks
//	 "timestamp": RFC 3339 or Unix milliseconds,
//	 "id": "…"}                                                    unique; else a hash of the object
//
// or one such object, signed as Standard Webhooks with one of Secrets. A batch
// with an invalid object is refused as a whole.
type Generic struct {
	Secrets []webhook.Secret
}

var _ Provider = Generic{}

// Parse is Provider's.
func (g Generic) Parse(_ context.Context, now time.Time, r Request) (Batch, error) {
	if err := checkSize(r); err != nil {
		return Batch{}, fmt.Errorf("inbound: %w", err)
	}
	if err := webhook.Verify(r.Header, r.Body, g.Secrets, now); err != nil {
		return Batch{}, fmt.Errorf("inbound: %w: %w", err, ErrUnauthorised)
	}
	raws, err := elements(r.Body)
	if err != nil {
		return Batch{}, fmt.Errorf("inbound: %w", err)
	}
	var b Batch
	for i, raw := range raws {
		e, err := genericEvent(raw)
		if err != nil {
			return Batch{}, fmt.Errorf("inbound: event %d: %w: %w", i, err, ErrMalformed)
		}
		b.Events = append(b.Events, e)
	}
	return b, nil
}

// elements splits an array, or takes one object for an array of one.
func elements(body []byte) ([]json.RawMessage, error) {
	body = bytes.TrimSpace(body)
	var raws []json.RawMessage
	if len(body) > 0 && body[0] == '{' {
		var one json.RawMessage
		if err := decode("body", body, &one); err != nil {
			return nil, err
		}
		raws = []json.RawMessage{one}
	} else if err := decode("body", body, &raws); err != nil {
		return nil, err
	}
	if len(raws) > MaxEvents {
		return nil, fmt.Errorf("body holds %d events; at most %d are read: %w", len(raws), MaxEvents, ErrTooLarge)
	}
	return raws, nil
}

func genericEvent(raw json.RawMessage) (Event, error) {
	var in struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		SendID    string          `json:"send_id"`
		MessageID string          `json:"message_id"`
		Recipient string          `json:"recipient"`
		Hard      bool            `json:"hard"`
		Status    string          `json:"status"`
		Reason    string          `json:"reason"`
		URL       string          `json:"url"`
		UserAgent string          `json:"user_agent"`
		IP        string          `json:"ip"`
		Machine   bool            `json:"machine"`
		Channel   string          `json:"channel"`
		From      string          `json:"from"`
		To        string          `json:"to"`
		Text      string          `json:"text"`
		Timestamp json.RawMessage `json:"timestamp"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return Event{}, errors.New(jsonform.Explain(err))
	}
	e := Event{
		Type: Type(in.Type), SendID: in.SendID, MessageID: in.MessageID, Recipient: in.Recipient, Hard: in.Hard, Status: in.Status,
		Reason: in.Reason, Visit: Visit{URL: in.URL, UserAgent: in.UserAgent, IP: in.IP, Machine: in.Machine},
		Channel: in.Channel, From: in.From, To: in.To, Text: in.Text,
	}
	switch e.Type {
	case Bounce, Complaint, Delivery, Open, Click, Unsubscribe, Failure:
		if in.Channel+in.From+in.To+in.Text != "" {
			return Event{}, errors.New("channel, from, to and text are for replies only")
		}
	case Reply:
		if in.Channel != ChannelSMS && in.Channel != ChannelWhatsApp && in.Channel != ChannelIM {
			return Event{}, errors.New("channel must be sms, whatsapp or im")
		}
		if phone(in.From) == "" {
			return Event{}, errors.New("from must be a phone number in international form, for example +491701234567")
		}
	default:
		return Event{}, errors.New("type must be bounce, complaint, delivery, open, click, unsubscribe, failure or reply")
	}
	if e.Hard && e.Type != Bounce && e.Type != Failure {
		return Event{}, errors.New("hard is for bounces and failures only")
	}
	if len(in.Timestamp) > 0 && string(in.Timestamp) != "null" {
		var ms int64
		var s string
		if json.Unmarshal(in.Timestamp, &ms) == nil {
			e.At = time.UnixMilli(ms)
		} else if json.Unmarshal(in.Timestamp, &s) == nil {
			e.At = instant(s)
		}
		if e.At = sane(e.At); e.At.IsZero() {
			return Event{}, errors.New("timestamp must be RFC 3339 or Unix milliseconds")
		}
	}
	e = e.trim()
	if e.Type != Reply && e.SendID == "" && e.MessageID == "" && e.Recipient == "" {
		return Event{}, errors.New("send_id, message_id or recipient must be given")
	}
	if len(in.ID) > maxID-10 {
		return Event{}, fmt.Errorf("id has %d bytes; at most %d are allowed", len(in.ID), maxID-10)
	}
	if in.ID != "" {
		e.ID = providerID("generic", in.ID)
	} else {
		e.ID = contentID("generic", compact(raw))
	}
	return e, nil
}

// compact drops white space, which a repeat may set differently.
func compact(raw []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
