package email

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/musterhq/muster/messaging/outcome"
)

const (
	// MaxMessage bounds a built message, in bytes.
	MaxMessage = 10 << 20

	maxSubject = 998
	maxHeaders = 32

	// SendIDHeader carries Message.SendID, so that bounces and complaints that
	// quote the message name it.
	SendIDHeader = "X-Muster-Send-ID"
)

// Message is one e-mail to one recipient.
type Message struct {
	// ID is the Message-ID without brackets, unique and the same at every
	// repeat: left@domain.
	ID string
	// Date is the time in the Date header; the same at every repeat.
	Date time.Time

	From    Address
	ReplyTo Address // optional
	To      Address

	Subject string
	// HTML and Text are the bodies. Without Text it is derived from HTML;
	// without HTML the message is plain text.
	HTML, Text string

	// Unsubscribe fills List-Unsubscribe; with a URL also List-Unsubscribe-Post
	// for one click (RFC 8058).
	Unsubscribe Unsubscribe
	// FeedbackID goes into Feedback-ID, for receivers' complaint reports.
	FeedbackID string
	// SendID names this send. It goes into the X-Muster-Send-ID header and,
	// with Options.BounceDomain, the envelope sender.
	SendID string
	// Headers are further headers. Their names start with X-.
	Headers []Header

	// Keys sign the message, each with a signature of its own; none leaves it unsigned.
	Keys []*Key
}

// Unsubscribe is how a recipient leaves the list. URL must be https and answer a
// POST of List-Unsubscribe=One-Click without a session; on a loopback host, where
// no mail program of others gets, http will do. Mailto is an address.
type Unsubscribe struct {
	URL    string
	Mailto string
}

// Header is a further header field.
type Header struct{ Name, Value string }

// RecipientError is the error for an unusable To address.
type RecipientError struct{ Err error }

func (e *RecipientError) Error() string { return "to " + e.Err.Error() }

// Unwrap returns what is wrong with the address.
func (e *RecipientError) Unwrap() error { return e.Err }

// Validate reports the first thing that keeps the message from being sent,
// naming the field. It is a *RecipientError when only the recipient is at fault.
func (m *Message) Validate() error {
	if _, err := checkAddr(m.From.Addr); err != nil {
		return fmt.Errorf("from %w", err)
	}
	if !m.ReplyTo.IsZero() {
		if _, err := checkAddr(m.ReplyTo.Addr); err != nil {
			return fmt.Errorf("reply_to %w", err)
		}
	}
	if left, domain, ok := strings.Cut(m.ID, "@"); !ok || left == "" || domain == "" || len(m.ID) > 250 || strings.ContainsFunc(m.ID, notInID) {
		return errors.New("message id must have the form unique@example.com, in printable ASCII without brackets, of at most 250 bytes")
	}
	if m.Date.IsZero() {
		return errors.New("date is missing; give the time of the first attempt")
	}
	if len(m.Subject) > maxSubject {
		return fmt.Errorf("subject has %d bytes, at most %d are allowed", len(m.Subject), maxSubject)
	}
	if m.HTML == "" && m.Text == "" {
		return errors.New("body is missing; give html or text")
	}
	if n := len(m.HTML) + len(m.Text); n > MaxMessage/2 {
		return fmt.Errorf("body has %d bytes, at most %d are allowed", n, MaxMessage/2)
	}
	if m.Unsubscribe.URL != "" {
		if u, err := url.Parse(m.Unsubscribe.URL); err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && IsLoopback(u.Hostname())) || len(m.Unsubscribe.URL) > 900 || strings.ContainsFunc(m.Unsubscribe.URL, notInURL) {
			return errors.New("unsubscribe url must be an absolute https URL of at most 900 bytes in ASCII (http on this machine only): one-click unsubscribing requires it")
		}
	}
	if m.Unsubscribe.Mailto != "" {
		if addr, err := checkAddr(m.Unsubscribe.Mailto); err != nil {
			return fmt.Errorf("unsubscribe mailto %w", err)
		} else if !isASCII(addr) || strings.ContainsAny(addr, ",?%&\"") {
			return errors.New("unsubscribe mailto must be a plain ASCII address")
		}
	}
	if len(m.FeedbackID) > 500 || len(m.SendID) > 250 || strings.ContainsFunc(m.FeedbackID+m.SendID, notPrintable) {
		return errors.New("feedback id (500 bytes) and send id (250 bytes) must be printable ASCII")
	}
	if len(m.Headers) > maxHeaders {
		return fmt.Errorf("headers: %d given, at most %d are allowed", len(m.Headers), maxHeaders)
	}
	for _, h := range m.Headers {
		if len(h.Name) < 3 || len(h.Name) > 64 || !strings.EqualFold(h.Name[:2], "X-") || strings.Trim(h.Name, headerNameBytes) != "" ||
			strings.EqualFold(h.Name, SendIDHeader) {
			return fmt.Errorf("header %q is not allowed; further headers start with X-, of letters, digits and -", h.Name)
		}
		if len(h.Value) > 900 || strings.ContainsFunc(h.Value, notPrintable) {
			return fmt.Errorf("header %s must be printable ASCII of at most 900 bytes", h.Name)
		}
	}
	if _, err := checkAddr(m.To.Addr); err != nil {
		return &RecipientError{Err: err}
	}
	return nil
}

const headerNameBytes = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func notPrintable(r rune) bool { return r < ' ' || r > '~' }
func notInID(r rune) bool      { return r <= ' ' || r > '~' || r == '<' || r == '>' }
func notInURL(r rune) bool     { return r <= ' ' || r > '~' || r == '<' || r == '>' || r == ',' }

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > '~' })
}

// Build returns the message as it goes to the relay, signed. The same message
// gives the same bytes but for the signatures' time.
func (m *Message) Build() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("email: %w", err)
	}
	sum := sha256.Sum256([]byte(m.ID))
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent(), gomail.WithBoundary("b-"+hex.EncodeToString(sum[:16])))
	msg.FromMailAddress(mailAddress(m.From))
	msg.ToMailAddress(mailAddress(m.To))
	if !m.ReplyTo.IsZero() {
		msg.ReplyToMailAddress(mailAddress(m.ReplyTo))
	}
	msg.Subject(oneLine(m.Subject))
	msg.SetMessageIDWithValue(m.ID)
	msg.SetDateWithValue(m.Date)
	var list []string
	if m.Unsubscribe.URL != "" {
		list = append(list, "<"+m.Unsubscribe.URL+">")
		msg.SetGenHeader("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
	}
	if m.Unsubscribe.Mailto != "" {
		list = append(list, "<mailto:"+m.Unsubscribe.Mailto+"?subject=unsubscribe>")
	}
	if list != nil {
		msg.SetGenHeader("List-Unsubscribe", list...)
	}
	for name, value := range map[gomail.Header]string{"Feedback-ID": m.FeedbackID, SendIDHeader: m.SendID} {
		if value != "" {
			msg.SetGenHeader(name, value)
		}
	}
	for _, h := range m.Headers {
		msg.SetGenHeader(gomail.Header(h.Name), h.Value)
	}

	text := m.Text
	if text == "" {
		text = TextOf(m.HTML)
	}
	if m.HTML == "" {
		msg.SetBodyString(gomail.TypeTextPlain, text)
	} else {
		msg.SetBodyString(gomail.TypeTextPlain, text)
		msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}

	var b bytes.Buffer
	b.Grow(len(m.HTML) + len(text) + 4096)
	if _, err := msg.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("email: building the message: %w", err)
	}
	signed, err := sign(b.Bytes(), m.Keys)
	if err != nil {
		return nil, err
	}
	if len(signed) > MaxMessage {
		return nil, fmt.Errorf("email: the message has %d bytes, at most %d are allowed", len(signed), MaxMessage)
	}
	return signed, nil
}

func mailAddress(a Address) *mail.Address {
	addr, err := checkAddr(a.Addr)
	if err != nil { // Validate has passed it
		addr = a.Addr
	}
	return &mail.Address{Name: oneLine(a.Name), Address: addr}
}

func oneLine(s string) string { return outcome.Clean(s, maxSubject) }
