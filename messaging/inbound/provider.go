package inbound

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/internal/jsonform"
)

// MaxAge is how old a signed time of a provider may be: a little less than
// idempotency keys are kept, so that a replayed webhook is either known or refused.
const MaxAge = 48 * time.Hour

// ahead is how far a provider's clock may be ahead of ours.
const ahead = 5 * time.Minute

// Request is a webhook as it arrived.
type Request struct {
	// Header answers the value of the named header, empty when there is none.
	Header func(name string) string
	// URL is the address that was called, with its query, as the provider knows it.
	URL string
	// Body as sent: signatures are over its bytes.
	Body []byte
	// Secret is what the URL carries for providers that do not sign, such as
	// …/inbound/postmark?secret=….
	Secret string
}

// Batch is the events of a webhook.
type Batch struct {
	Events []Event
	// WithoutNumber counts texts and settings of people whose number the provider does not
	// tell. They are in no event: they identify no contact.
	WithoutNumber int
	// ConfirmURL is set when the provider asks to confirm the address by fetching this
	// URL, which has been checked to be the provider's: see SNS.Confirm.
	ConfirmURL string
}

// Provider reads one provider's webhooks for one account. Errors are
// ErrUnauthorised (answer 401), ErrMalformed (400), ErrTooLarge (413) and
// ErrUnavailable (503, and the provider tries again). now is the reader's clock.
type Provider interface {
	Parse(ctx context.Context, now time.Time, r Request) (Batch, error)
}

// Password authenticates providers that do not sign: HTTP basic authentication, or a
// secret in the URL. An empty one accepts nothing.
type Password struct {
	User     string
	Password string
	Secret   string // at least 16 characters, or it is not used
}

// String hides the password.
func (Password) String() string { return "password" }

// GoString hides the password from %#v.
func (Password) GoString() string { return "password" }

func (p Password) check(r Request) error {
	ok := false
	if len(p.Secret) >= 16 && same(p.Secret, r.Secret) {
		ok = true
	}
	if p.User != "" && p.Password != "" {
		scheme, enc, _ := strings.Cut(r.Header("Authorization"), " ")
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(enc))
		if err == nil && strings.EqualFold(scheme, "Basic") && same(p.User+":"+p.Password, string(raw)) {
			ok = true
		}
	}
	if !ok {
		return fmt.Errorf("user and password, or the secret in the URL, do not match: %w", ErrUnauthorised)
	}
	return nil
}

// same compares in constant time, lengths included.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func checkSize(r Request) error {
	if len(r.Body) > MaxBytes {
		return fmt.Errorf("body has %d bytes; at most %d are read: %w", len(r.Body), MaxBytes, ErrTooLarge)
	}
	return nil
}

// checkAge judges a signed time.
func checkAge(what string, at, now time.Time) error {
	if d := now.Sub(at); d > MaxAge || d < -ahead {
		return fmt.Errorf("%s is not within the last %v: %w", what, MaxAge, ErrUnauthorised)
	}
	return nil
}

// unix reads whole seconds since 1970.
func unix(text string) (time.Time, bool) {
	sec, err := strconv.ParseInt(text, 10, 64)
	if err != nil || sec < 0 || sec > 1<<40 {
		return time.Time{}, false
	}
	return time.Unix(sec, 0), true
}

// decode reads JSON; the error says where it broke off, not what it held.
func decode(what string, raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s is not what is expected: %s: %w", what, jsonform.Explain(err), ErrMalformed)
	}
	return nil
}

// instant reads RFC 3339; anything else is the zero time.
func instant(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return sane(at)
}

// text reads a JSON value that is a string and ignores any other.
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*t = text(s)
	}
	return nil
}

// phone passes a number in international form, and drops anything else.
func phone(text string) string {
	digits, ok := strings.CutPrefix(text, "+")
	if !ok || len(digits) < 5 || len(digits) > 20 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return text
}

// trim bounds the texts of an event.
func (e Event) trim() Event {
	e.SendID = identifier(e.SendID)
	e.MessageID = messageID(e.MessageID)
	e.Recipient = address(e.Recipient)
	e.Phone, e.From, e.To = phone(e.Phone), phone(e.From), phone(e.To)
	e.Text = clip.Valid(strings.ToValidUTF8(e.Text, "\uFFFD"), maxText)
	e.Status = enhancedStatus(e.Status)
	e.Reason = line(e.Reason, maxReason)
	e.UserAgent = line(e.UserAgent, maxReason)
	e.IP = line(e.IP, 64)
	if len(e.URL) > maxURL {
		e.URL = ""
	}
	e.URL = strings.ToValidUTF8(e.URL, "")
	e.At = sane(e.At)
	return e
}
