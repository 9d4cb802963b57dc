package main

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// postbox is a real SMTP server that keeps what it takes. It refuses recipients
// that begin with "gone" for good.
type postbox struct {
	addr string

	mu     sync.Mutex
	mail   map[string][]letter // by recipient
	refuse func(to string) error
}

// refuseBy has a function refuse recipients by what it returns.
func (p *postbox) refuseBy(refuse func(to string) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// letter is a message that came.
type letter struct {
	at      time.Time
	from    string
	header  mail.Header
	subject string
	html    string
	text    string
}

func newPostbox(t *testing.T) *postbox {
	t.Helper()
	p := &postbox{mail: map[string][]letter{}}
	p.addr = serveSMTP(t, func() smtp.Session { return &postboxSession{p: p} })
	return p
}

type postboxSession struct {
	p        *postbox
	from, to string
}

func (s *postboxSession) Mail(from string, _ *smtp.MailOptions) error { s.from = from; return nil }
func (s *postboxSession) Reset()                                      {}
func (s *postboxSession) Logout() error                               { return nil }

func (s *postboxSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.to = to; strings.HasPrefix(to, "gone") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	s.p.mu.Lock()
	refuse := s.p.refuse
	s.p.mu.Unlock()
	if refuse != nil {
		return refuse(to)
	}
	return nil
}

func (s *postboxSession) Data(in io.Reader) error {
	m, err := mail.ReadMessage(in)
	if err != nil {
		return err
	}
	l := letter{at: time.Now(), from: s.from, header: m.Header}
	if l.subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		return err
	}
	if err := l.read(m.Header.Get("Content-Type"), m.Body); err != nil {
		return err
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.mail[s.to] = append(s.p.mail[s.to], l)
	return nil
}

// read keeps the texts of a message's parts.
func (l *letter) read(contentType string, body io.Reader) error {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(kind, "multipart/") {
		var b bytes.Buffer
		if _, err := b.ReadFrom(body); err != nil {
			return err
		}
		if kind == "text/html" {
			l.html = b.String()
		} else {
			l.text = b.String()
		}
		return nil
	}
	parts := multipart.NewReader(body, params["boundary"])
	for {
		p, err := parts.NextPart() // which decodes quoted-printable
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := l.read(p.Header.Get("Content-Type"), p); err != nil {
			return err
		}
	}
}

// to are the letters that came for an address.
func (p *postbox) to(email string) []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]letter{}, p.mail[email]...)
}
