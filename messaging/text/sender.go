package text

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/messaging/internal/exchange"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/whatsapp"
)

// Message is one text to one recipient.
type Message struct {
	// To is a phone number in international form (+491701234567), or whatever
	// the provider addresses by with Config.AnyAddress.
	To string
	// From replaces Config.From.
	From string
	Body string
	// MediaURL is a picture or file for channels that carry one.
	MediaURL string
	// ID names this send, the same at every repeat.
	ID string
	// Template is sent in the place of Body, for WhatsApp.
	Template *whatsapp.Template
	// Vars are further values for the Config's tags.
	Vars map[string]string
}

// Options are beside the provider's description. The zero value is for production.
type Options struct {
	// Client sends the requests. Default a client of this sender's own, to
	// public addresses only.
	Client *http.Client
	// AllowPrivate permits private addresses and http.
	AllowPrivate bool
	// Timeout bounds one send. Default 15 s.
	Timeout time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Sender sends over one provider's API. It may be used by many goroutines.
type Sender struct {
	c *compiled
	o Options
}

// New checks the Config; it does not connect.
func New(c Config, o Options) (*Sender, error) {
	p, err := c.compile(o.AllowPrivate)
	if err != nil {
		return nil, err
	}
	if o.Client == nil {
		o.Client = exchange.NewClient(exchange.TransportOptions{AllowPrivate: o.AllowPrivate})
	}
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Sender{c: p, o: o}, nil
}

// Close ends idle connections.
func (s *Sender) Close() { s.o.Client.CloseIdleConnections() }

// RecipientError is the error for an unusable To.
type RecipientError struct{ reason string }

func (e *RecipientError) Error() string { return e.reason }

// Check reports what keeps m from being sent, naming the field. It is a
// *RecipientError when only the recipient is at fault.
func (s *Sender) Check(m *Message) error {
	if m.Template != nil {
		if f := CheckTemplate(s.c.Templates, m.Template); f != nil {
			return fmt.Errorf("template: %w", f)
		}
	}
	switch {
	case m.Template != nil:
	case strings.TrimSpace(m.Body) == "" && m.MediaURL == "":
		return errors.New("body is empty")
	case !utf8.ValidString(m.Body):
		return errors.New("body is not valid UTF-8")
	case utf8.RuneCountInString(m.Body) > s.c.MaxBody:
		return fmt.Errorf("body has %d characters, at most %d are allowed", utf8.RuneCountInString(m.Body), s.c.MaxBody)
	case len(m.From) > 128 || len(m.ID) > 256 || len(m.Vars) > 100:
		return errors.New("from, id or vars are too long")
	}
	if m.MediaURL != "" {
		if u, err := url.Parse(m.MediaURL); err != nil || u.Scheme != "https" || u.Host == "" || len(m.MediaURL) > 2048 {
			return errors.New("media_url must be an absolute https URL")
		}
	}
	if s.c.AnyAddress {
		if m.To == "" || len(m.To) > 256 || outcome.Clean(m.To, 256) != m.To {
			return &RecipientError{"to is empty, longer than 256 bytes or has control characters"}
		}
		return nil
	}
	if digits, ok := strings.CutPrefix(m.To, "+"); !ok || len(digits) < 7 || len(digits) > 15 || digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
		return &RecipientError{"to must be a phone number in international form, for example +491701234567"}
	}
	return nil
}

// Send delivers m.
func (s *Sender) Send(ctx context.Context, m *Message) outcome.Result {
	if err := s.Check(m); err != nil {
		var recipient *RecipientError
		if errors.As(err, &recipient) {
			r := outcome.Failed(outcome.Permanent, "invalid_recipient", err)
			r.Hard = true
			return r
		}
		return outcome.Failed(outcome.Permanent, "invalid_message", err)
	}
	req, err := s.request(m)
	if err != nil {
		return outcome.Failed(outcome.Refused, "configuration", err)
	}
	a, err := exchange.Do(ctx, s.o.Client, req, s.o.Timeout)
	switch {
	case errors.Is(err, exchange.ErrSent):
		return outcome.Failed(outcome.Ambiguous, "network", err)
	case errors.Is(err, exchange.ErrPrivateAddress):
		return outcome.Failed(outcome.Refused, "private_address", err)
	case err != nil:
		return outcome.Failed(outcome.Temporary, "network", err)
	}
	return s.classify(a)
}

func (s *Sender) lookup(m *Message) func([]string) (string, bool) {
	from := m.From
	if from == "" {
		from = s.c.From
	}
	return func(path []string) (string, bool) {
		if len(path) == 2 && path[0] == "vars" {
			v, ok := m.Vars[path[1]]
			return v, ok
		}
		if len(path) != 1 {
			return "", false
		}
		switch path[0] {
		case "to":
			return m.To, true
		case "from":
			return from, true
		case "body":
			return m.Body, true
		case "id":
			return m.ID, true
		case "media_url":
			return m.MediaURL, true
		}
		return "", false
	}
}

func (s *Sender) request(m *Message) (*http.Request, error) {
	look := s.lookup(m)
	address, err := s.c.url.Render(look)
	if err != nil {
		return nil, err
	}
	var body []byte
	kind := "application/json"
	switch {
	case m.Template != nil && s.c.Templates == CloudTemplates:
		body = m.cloudBody()
	case s.c.body != nil:
		if body, err = s.c.body.AppendTo(nil, look); err != nil {
			return nil, err
		}
		if !json.Valid(body) {
			return nil, errors.New("text: the body is no JSON once its tags are filled; check the provider's body")
		}
	default:
		form := url.Values{}
		for _, f := range s.c.form {
			v, err := f.value.Render(look)
			if err != nil {
				return nil, err
			}
			if v == "" {
				continue
			}
			name := f.name
			if s.c.Templates == TwilioContent && (name == twilioNumber || name == twilioService) {
				name, v = twilioSender(form.Get("To"), v)
			}
			form.Add(name, v)
		}
		if m.Template != nil {
			m.contentForm(form)
		}
		body, kind = []byte(form.Encode()), "application/x-www-form-urlencoded"
	}
	req, err := http.NewRequest(s.c.Method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("text: %w", err)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "application/json")
	for _, h := range s.c.headers {
		v, err := h.value.Render(look)
		if err != nil {
			return nil, err
		}
		req.Header.Add(h.name, v)
	}
	switch {
	case s.c.Token != "":
		req.Header.Set("Authorization", "Bearer "+s.c.Token)
	case s.c.Username != "" || s.c.Password != "":
		req.SetBasicAuth(s.c.Username, s.c.Password)
	}
	return req, nil
}

func (s *Sender) classify(a *exchange.Answer) outcome.Result {
	var tree any
	d := json.NewDecoder(bytes.NewReader(a.Body))
	d.UseNumber()
	parsed := d.Decode(&tree) == nil
	var id, code, words string
	if parsed {
		id, code, words = find(tree, s.c.id), find(tree, s.c.code), find(tree, s.c.text)
	}
	if words == "" && a.Status/100 != 2 {
		words = string(a.Body)
	}
	shown := code
	if shown == "" {
		shown = strconv.Itoa(a.Status)
	}
	class := outcome.Permanent
	known, ok := s.c.rules[code]
	switch {
	case ok && code != "":
		class = known.class
	case a.Status/100 == 2 && (code == "" || code == "0"):
		class = outcome.Accepted
	case a.Status/100 == 2:
	case a.Status == http.StatusRequestTimeout, a.Status == http.StatusTooManyRequests, a.Status >= 500:
		class = outcome.Temporary
	case a.Status == http.StatusUnauthorized, a.Status == http.StatusForbidden, a.Status == http.StatusNotFound, a.Status < 400:
		class = outcome.Refused
	}
	r := outcome.New(class, shown, words)
	if ok && code != "" {
		r.Hard, r.OptedOut = known.hard, known.optedOut
	}
	if class == outcome.Temporary {
		r.RetryAfter = exchange.RetryAfter(a.Header, s.o.Now())
	}
	r.ProviderID = outcome.Clean(id, outcome.MaxCode)
	return r
}

// find returns the text, number or truth value at path, "" if there is none.
func find(v any, path []string) string {
	if path == nil {
		return ""
	}
	for _, name := range path {
		switch t := v.(type) {
		case map[string]any:
			v = t[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(t) {
				return ""
			}
			v = t[i]
		default:
			return ""
		}
	}
	switch t := v.(type) {
	case string:
		return t
	case json.Number:
		return t.String()
	case bool:
		return strconv.FormatBool(t)
	}
	return ""
}
