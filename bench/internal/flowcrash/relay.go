package flowcrash

import (
	"context"
	"io"
	"log"
	"net"
	"net/mail"
	"strings"
	"time"

	"github.com/emersion/go-smtp"
)

// relay is the SMTP server that the flows' e-mails go through.
type relay struct {
	desk   *desk
	faults bool
	server *smtp.Server
	addr   string
	done   chan struct{}
}

func newRelay(seed uint64, faults bool) (*relay, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{desk: newDesk(seed), faults: faults, addr: ln.Addr().String(), done: make(chan struct{})}
	r.server = smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &relaySession{relay: r, conn: c}, nil }))
	r.server.Domain, r.server.ErrorLog, r.server.MaxMessageBytes = "relay.test", log.New(io.Discard, "", 0), 1<<20
	go func() {
		defer close(r.done)
		_ = r.server.Serve(ln)
	}()
	return r, nil
}

func (r *relay) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if err != nil {
		err = r.server.Close()
	}
	<-r.done
	return err
}

func (r *relay) manner(id string) manner {
	if r.faults {
		switch n := r.desk.draw(id, 100); {
		case n < 2:
			return errorFirst
		case n < 4:
			return dropsFirst
		}
	}
	return takes
}

type relaySession struct {
	relay *relay
	conn  *smtp.Conn
}

func (s *relaySession) Mail(string, *smtp.MailOptions) error { return nil }
func (s *relaySession) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (s *relaySession) Reset()                               {}
func (s *relaySession) Logout() error                        { return nil }

// mailSubject is the subject of a step's e-mails, by which they are known again.
func mailSubject(flow, step, key string) string {
	return strings.Join([]string{flow, step, "{{profile_id}}", key}, "/")
}

// Data takes a message whose subject mailSubject made.
func (s *relaySession) Data(in io.Reader) error {
	m, err := mail.ReadMessage(in)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, m.Body); err != nil {
		return err // cut off by a kill
	}
	var e effect
	if part := strings.SplitN(m.Header.Get("Subject"), "/", 4); len(part) == 4 {
		e = effect{part[0], part[1], part[2], part[3]}
	}
	id := m.Header.Get("Message-Id")
	x, n, first := s.relay.desk.arrive(id, e, s.relay.manner(id))
	switch {
	case x.manner == errorFirst && first:
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "try again"}
	case x.manner == dropsFirst && first:
		_ = s.conn.Conn().Close()
		return nil
	}
	s.relay.desk.answered(x, n)
	return nil
}
