package flows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/mail"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/musterhq/muster/internal/pause"
)

// probePath is where calls of probes arrive, with the probe's number behind.
const probePath = "/probe/"

// maxMail bounds an e-mail, in bytes.
const maxMail = 1 << 20

// sink takes the calls and e-mails of flows on the loopback interface.
type sink struct {
	url     string // of calls
	relay   string // HOST:PORT of e-mails
	calls   arrivals
	mails   arrivals
	http    *http.Server
	smtp    *smtp.Server
	serving sync.WaitGroup
}

func newSink() (*sink, error) {
	calls, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("sink of calls: %w", err)
	}
	mails, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sink of e-mails: %w", err), calls.Close())
	}
	s := &sink{url: "http://" + calls.Addr().String(), relay: mails.Addr().String()}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.smtp = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return mailSession{s}, nil }))
	s.smtp.Domain, s.smtp.MaxMessageBytes, s.smtp.ErrorLog = "sink.example", maxMail, log.New(io.Discard, "", 0)
	// Both end with the error that they were closed.
	s.serving.Go(func() { _ = s.http.Serve(calls) })
	s.serving.Go(func() { _ = s.smtp.Serve(mails) })
	return s, nil
}

func (s *sink) close() error {
	err := errors.Join(s.http.Close(), s.smtp.Close())
	s.serving.Wait()
	return err
}

// ServeHTTP notes when a probe's call arrived.
func (s *sink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	s.calls.note(r.URL.Path, probePath, time.Now())
}

// mailSession takes e-mails.
type mailSession struct{ *sink }

func (mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (mailSession) Reset()                               {}
func (mailSession) Logout() error                        { return nil }

// Data notes when a probe's e-mail arrived: when all of it was there.
func (s mailSession) Data(in io.Reader) error {
	m, err := mail.ReadMessage(in)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, m.Body); err != nil {
		return err
	}
	s.mails.note(m.Header.Get("Subject"), probeSubject, time.Now())
	return nil
}

// arrivals are effects of one kind that arrived, by the number of their probe.
type arrivals struct {
	mu struct {
		sync.Mutex
		first map[int]time.Time
		all   uint64 // with those of no probe
		again int    // more than one of a probe
	}
}

// note takes down what arrived; it is a probe's when its name is the prefix and
// a number.
func (a *arrivals) note(name, prefix string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.all++
	text, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return
	}
	if _, known := a.mu.first[n]; known {
		a.mu.again++
		return
	}
	if a.mu.first == nil {
		a.mu.first = map[int]time.Time{}
	}
	a.mu.first[n] = at
}

// at is when a probe's arrived first.
func (a *arrivals) at(probe int) (t time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok = a.mu.first[probe]
	return t, ok
}

// counts are how many arrived, how many probes they belong to, and how many of
// probes came once more.
func (a *arrivals) counts() (all uint64, probes, again int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.all, len(a.mu.first), a.mu.again
}

// until waits until those of all these probes have arrived, or ctx ends.
func (a *arrivals) until(ctx context.Context, probes []int) error {
	for _, n := range probes {
		for {
			if _, ok := a.at(n); ok {
				break
			}
			if err := pause.For(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}
