package inbound

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Postmark reads Postmark's webhooks, which are not signed: a password in the
// webhook's URL or settings authenticates them.
type Postmark struct {
	Password Password
}

var _ Provider = Postmark{}

// postmarkHard are the types of bounces that are for good.
var postmarkHard = map[text]bool{"HardBounce": true, "BadEmailAddress": true, "ManuallyDeactivated": true, "InactiveMailbox": true}

// Parse is Provider's.
func (p Postmark) Parse(_ context.Context, _ time.Time, r Request) (Batch, error) {
	if err := checkSize(r); err != nil {
		return Batch{}, fmt.Errorf("postmark: %w", err)
	}
	if err := p.Password.check(r); err != nil {
		return Batch{}, fmt.Errorf("postmark: %w", err)
	}
	var in struct {
		RecordType text           `json:"RecordType"`
		ID         json.Number    `json:"ID"`
		Type       text           `json:"Type"`
		MessageID  text           `json:"MessageID"`
		Metadata   map[string]any `json:"Metadata"`
		Email      text           `json:"Email"`
		Recipient  text           `json:"Recipient"`
		Details    text           `json:"Details"`
		Desc       text           `json:"Description"`
		BouncedAt  text           `json:"BouncedAt"`
		Delivered  text           `json:"DeliveredAt"`
		ReceivedAt text           `json:"ReceivedAt"`
		ChangedAt  text           `json:"ChangedAt"`
		Suppress   bool           `json:"SuppressSending"`
		Cause      text           `json:"SuppressionReason"`
		Link       text           `json:"OriginalLink"`
		UserAgent  text           `json:"UserAgent"`
		Geo        struct {
			IP text `json:"IP"`
		} `json:"Geo"`
	}
	if err := decode("body", r.Body, &in); err != nil {
		return Batch{}, fmt.Errorf("postmark: %w", err)
	}
	e := Event{MessageID: string(in.MessageID), Recipient: string(in.Recipient), Visit: Visit{UserAgent: string(in.UserAgent), IP: string(in.Geo.IP)}}
	e.SendID, _ = in.Metadata["send_id"].(string)
	if e.Recipient == "" {
		e.Recipient = string(in.Email)
	}
	at := in.ReceivedAt
	switch in.RecordType {
	case "Bounce":
		switch in.Type {
		case "Transient", "AutoResponder", "AddressChange", "Subscribe", "Unsubscribe", "ChallengeVerification", "OpenRelayTest", "DnsError":
			if in.Type != "DnsError" {
				return Batch{}, nil // no failure
			}
		case "SpamComplaint":
			e.Type = Complaint
		}
		if e.Type == "" {
			e.Type, e.Hard = Bounce, postmarkHard[in.Type]
			e.Reason = string(in.Details)
			if e.Reason == "" {
				e.Reason = string(in.Desc)
			}
			e.Status = enhancedStatus(e.Reason)
		}
		at = in.BouncedAt
	case "SpamComplaint":
		e.Type, at = Complaint, in.BouncedAt
	case "Delivery":
		e.Type, at = Delivery, in.Delivered
	case "Open":
		e.Type = Open
	case "Click":
		e.Type, e.URL = Click, string(in.Link)
	case "SubscriptionChange":
		if !in.Suppress || in.Cause != "ManualSuppression" {
			return Batch{}, nil // a new start, or what a bounce or complaint has reported already
		}
		e.Type, at = Unsubscribe, in.ChangedAt
	default:
		return Batch{}, nil
	}
	e.At = instant(string(at))
	if e = e.trim(); e.SendID == "" && e.MessageID == "" && e.Recipient == "" {
		return Batch{}, nil
	}
	if in.ID != "" && in.ID != "0" {
		e.ID = providerID("postmark", string(in.RecordType), in.ID.String())
	} else {
		e.ID = contentID("postmark", compact(r.Body))
	}
	return Batch{Events: []Event{e}}, nil
}
