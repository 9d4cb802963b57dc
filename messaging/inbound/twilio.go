package inbound

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Twilio signs with it
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Twilio reads Twilio's webhooks of Programmable Messaging, SMS and WhatsApp: what became
// of a message (the status callback) and texts of people. The signature covers the address
// that Twilio calls, with its query, and all fields.
type Twilio struct {
	// AuthToken is the account's.
	AuthToken string
}

var _ Provider = Twilio{}

// String hides the token.
func (Twilio) String() string { return "twilio" }

// GoString hides the token from %#v.
func (Twilio) GoString() string { return "twilio" }

// SendIDParameter is the query parameter of a status callback that names our message.
const SendIDParameter = "send_id"

// twilioWhatsApp begins the numbers of WhatsApp.
const twilioWhatsApp = "whatsapp:"

// twilioDead are error codes that say that the number gets nothing, ever.
var twilioDead = map[string]bool{"30005": true, "30006": true, "21211": true, "21614": true, "63024": true}

// twilioOptedOut is the error code that says that the person has answered STOP.
const twilioOptedOut = "21610"

// Parse is Provider's.
func (t Twilio) Parse(_ context.Context, _ time.Time, r Request) (Batch, error) {
	if err := checkSize(r); err != nil {
		return Batch{}, fmt.Errorf("twilio: %w", err)
	}
	form, err := url.ParseQuery(string(r.Body))
	if err != nil {
		return Batch{}, fmt.Errorf("twilio: body is not a form: %w", ErrMalformed)
	}
	if !t.signed(r, form) {
		return Batch{}, fmt.Errorf("twilio: X-Twilio-Signature does not match the auth token and the address %s: %w", r.URL, ErrUnauthorised)
	}
	id := form.Get("MessageSid")
	if id == "" {
		id = form.Get("SmsSid")
	}
	status := form.Get("MessageStatus")
	if status == "" {
		status = form.Get("SmsStatus")
	}
	e := Event{Channel: ChannelSMS}
	if strings.HasPrefix(form.Get("From"), twilioWhatsApp) || strings.HasPrefix(form.Get("To"), twilioWhatsApp) {
		e.Channel = ChannelWhatsApp
	}
	from, to := strings.TrimPrefix(form.Get("From"), twilioWhatsApp), strings.TrimPrefix(form.Get("To"), twilioWhatsApp)
	if u, err := url.Parse(r.URL); err == nil {
		e.SendID = u.Query().Get(SendIDParameter)
	}
	switch status {
	case "received":
		e.Type, e.From, e.To, e.Text, e.SendID = Reply, from, to, form.Get("Body"), ""
		switch form.Get("OptOutType") { // Twilio has answered already
		case "STOP":
			e.Keyword, e.Answered = KeywordStop, true
		case "START":
			e.Keyword, e.Answered = KeywordStart, true
		case "HELP":
			e.Keyword, e.Answered = KeywordHelp, true
		}
	case "delivered":
		e.Type, e.Phone = Delivery, to
	case "read":
		e.Type, e.Phone = Open, to
	case "undelivered", "failed":
		code := form.Get("ErrorCode")
		e.Type, e.Phone, e.Hard, e.Reason = Failure, to, twilioDead[code], "Twilio "+status
		if code != "" {
			e.Reason = "Twilio error " + code
		}
	default:
		return Batch{}, nil // on its way
	}
	if e = e.trim(); e.From == "" && e.SendID == "" {
		return Batch{}, nil
	}
	e.ID = providerID("twilio", id, status)
	b := Batch{Events: []Event{e}}
	if e.Type == Failure && form.Get("ErrorCode") == twilioOptedOut {
		e.Type, e.ID = Unsubscribe, providerID("twilio", id, "opted_out")
		b.Events = append(b.Events, e)
	}
	return b, nil
}

// signed reports whether Twilio has signed a request.
func (t Twilio) signed(r Request, form url.Values) bool {
	got, err := base64.StdEncoding.DecodeString(r.Header("X-Twilio-Signature"))
	if err != nil || t.AuthToken == "" {
		return false
	}
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	h := hmac.New(sha1.New, []byte(t.AuthToken))
	h.Write([]byte(r.URL))
	for _, name := range names {
		for _, value := range form[name] {
			h.Write([]byte(name))
			h.Write([]byte(value))
		}
	}
	return hmac.Equal(got, h.Sum(nil))
}
