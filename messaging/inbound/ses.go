package inbound

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// SES reads Amazon SES's notifications and event publishing, delivered by SNS. With
// raw delivery SNS does not sign, and Password authenticates instead.
type SES struct {
	SNS *SNS
	// Topics are the ARNs of the account's topics. Required for signed delivery.
	Topics []string
	// Password is for raw delivery; empty refuses it.
	Password Password
	// SendHeader is the header with our id of a message, reported when SES is set to
	// include headers: X-Muster-Send-ID by default. A message tag send_id does as well.
	SendHeader string
}

var _ Provider = SES{}

// Parse is Provider's.
func (s SES) Parse(ctx context.Context, now time.Time, r Request) (Batch, error) {
	b, err := s.parse(ctx, now, r)
	if err != nil {
		return Batch{}, fmt.Errorf("ses: %w", err)
	}
	return b, nil
}

func (s SES) parse(ctx context.Context, now time.Time, r Request) (Batch, error) {
	if err := checkSize(r); err != nil {
		return Batch{}, err
	}
	if r.Header("X-Amz-Sns-Rawdelivery") == "true" {
		if err := s.Password.check(r); err != nil {
			return Batch{}, err
		}
		return s.notification(r.Body, "")
	}
	if s.SNS == nil {
		return Batch{}, fmt.Errorf("signed delivery is not set up: %w", ErrUnauthorised)
	}
	var m snsMessage
	if err := decode("body", r.Body, &m); err != nil {
		return Batch{}, err
	}
	if err := s.SNS.verify(ctx, now, &m, s.Topics); err != nil {
		return Batch{}, err
	}
	switch m.Type {
	case "Notification":
		return s.notification([]byte(m.Message), m.MessageID)
	case "SubscriptionConfirmation":
		if err := checkSNSURL("SubscribeURL", m.SubscribeURL); err != nil {
			return Batch{}, err
		}
		return Batch{ConfirmURL: m.SubscribeURL}, nil
	}
	return Batch{}, nil
}

type sesRecipient struct {
	Email      text `json:"emailAddress"`
	Status     text `json:"status"`
	Diagnostic text `json:"diagnosticCode"`
}

type sesNotification struct {
	Kind  text `json:"notificationType"`
	Event text `json:"eventType"`
	Mail  struct {
		ID          text   `json:"messageId"`
		Destination []text `json:"destination"`
		Headers     []struct {
			Name  text `json:"name"`
			Value text `json:"value"`
		} `json:"headers"`
		Tags map[string][]text `json:"tags"`
	} `json:"mail"`
	Bounce struct {
		Type       text           `json:"bounceType"`
		SubType    text           `json:"bounceSubType"`
		Recipients []sesRecipient `json:"bouncedRecipients"`
		Timestamp  text           `json:"timestamp"`
		FeedbackID text           `json:"feedbackId"`
	} `json:"bounce"`
	Complaint struct {
		Type       text           `json:"complaintFeedbackType"`
		Recipients []sesRecipient `json:"complainedRecipients"`
		Timestamp  text           `json:"timestamp"`
		FeedbackID text           `json:"feedbackId"`
	} `json:"complaint"`
	Delivery struct {
		Recipients []text `json:"recipients"`
		Timestamp  text   `json:"timestamp"`
	} `json:"delivery"`
	Reject struct {
		Reason text `json:"reason"`
	} `json:"reject"`
	Open  sesTouch `json:"open"`
	Click sesTouch `json:"click"`
	Sub   struct {
		Timestamp text `json:"timestamp"`
		New       struct {
			All bool `json:"unsubscribeAll"`
		} `json:"newTopicPreferences"`
	} `json:"subscription"`
}

type sesTouch struct {
	Timestamp text `json:"timestamp"`
	UserAgent text `json:"userAgent"`
	IP        text `json:"ipAddress"`
	Link      text `json:"link"`
}

// notification reads SES's own JSON. snsID identifies the delivery, if known.
func (s SES) notification(raw []byte, snsID string) (Batch, error) {
	var n sesNotification
	if err := decode("the notification", raw, &n); err != nil {
		return Batch{}, err
	}
	kind := n.Event
	if kind == "" {
		kind = n.Kind
	}
	base := Event{}
	header := s.SendHeader
	if header == "" {
		header = "X-Muster-Send-ID"
	}
	for _, h := range n.Mail.Headers {
		switch {
		case strings.EqualFold(string(h.Name), header):
			base.SendID = string(h.Value)
		case strings.EqualFold(string(h.Name), "Message-ID"):
			base.MessageID = string(h.Value)
		}
	}
	if t := n.Mail.Tags["send_id"]; base.SendID == "" && len(t) > 0 {
		base.SendID = string(t[0])
	}
	if base.MessageID == "" && n.Mail.ID != "" {
		// SES answers this id when it takes the message.
		base.MessageID = string(n.Mail.ID)
	}

	var b Batch
	add := func(e Event, recipient, at text) {
		e.SendID, e.MessageID, e.Recipient, e.At = base.SendID, base.MessageID, string(recipient), instant(string(at))
		if e = e.trim(); e.SendID == "" && e.MessageID == "" && e.Recipient == "" {
			return
		}
		switch id := string(n.Bounce.FeedbackID + n.Complaint.FeedbackID); {
		case id != "":
			e.ID = contentID("ses", id, string(e.Type), e.Recipient)
		case snsID != "":
			e.ID = contentID("ses", snsID, string(e.Type), e.Recipient)
		default:
			e.ID = contentID("ses", compact(raw), e.Recipient)
		}
		b.Events = append(b.Events, e)
	}
	switch kind {
	case "Bounce":
		for _, rc := range n.Bounce.Recipients {
			reason := string(rc.Diagnostic)
			if reason == "" {
				reason = string(n.Bounce.Type + " " + n.Bounce.SubType)
			}
			add(Event{Type: Bounce, Hard: n.Bounce.Type == "Permanent", Status: string(rc.Status), Reason: typedText(reason)}, rc.Email, n.Bounce.Timestamp)
		}
	case "Complaint":
		if n.Complaint.Type == "not-spam" {
			return Batch{}, nil
		}
		for _, rc := range n.Complaint.Recipients {
			add(Event{Type: Complaint, Reason: string(n.Complaint.Type)}, rc.Email, n.Complaint.Timestamp)
		}
	case "Delivery":
		for _, a := range n.Delivery.Recipients {
			add(Event{Type: Delivery}, a, n.Delivery.Timestamp)
		}
	case "Reject":
		for _, a := range n.Mail.Destination {
			add(Event{Type: Bounce, Reason: "rejected: " + string(n.Reject.Reason)}, a, "")
		}
	case "Open", "Click", "Subscription":
		e, at := Event{Type: Open, Visit: Visit{UserAgent: string(n.Open.UserAgent), IP: string(n.Open.IP)}}, n.Open.Timestamp
		if kind == "Click" {
			e, at = Event{Type: Click, Visit: Visit{UserAgent: string(n.Click.UserAgent), IP: string(n.Click.IP), URL: string(n.Click.Link)}}, n.Click.Timestamp
		}
		if kind == "Subscription" {
			if !n.Sub.New.All {
				return Batch{}, nil
			}
			e, at = Event{Type: Unsubscribe}, n.Sub.Timestamp
		}
		var to text
		if len(n.Mail.Destination) == 1 {
			to = n.Mail.Destination[0]
		}
		add(e, to, at)
	}
	if len(b.Events) > MaxEvents {
		return Batch{}, fmt.Errorf("the notification holds %d recipients; at most %d are read: %w", len(b.Events), MaxEvents, ErrTooLarge)
	}
	return b, nil
}
