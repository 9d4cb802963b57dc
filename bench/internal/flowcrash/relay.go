package flowcrash

import (
	"net"
	"net/mail"
	"strings"

	"github.com/emersion/go-smtp"

	"github.com/musterhq/muster/bench/internal/sink"
)

// relay is the SMTP server that the flows' e-mails go through.
type relay struct {
	*sink.Sink
	desk   *desk
	faults bool
}

func newRelay(seed uint64, faults bool) (r *relay, err error) {
	r = &relay{desk: newDesk(seed), faults: faults}
	r.Sink, err = sink.Mails(r.take)
	return r, err
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

// mailSubject is the subject of a step's e-mails, by which they are known again.
func mailSubject(flow, step, key string) string {
	return strings.Join([]string{flow, step, "{{profile_id}}", key}, "/")
}

// take takes a message whose subject mailSubject made.
func (r *relay) take(header mail.Header, conn net.Conn) error {
	var e effect
	if part := strings.SplitN(header.Get("Subject"), "/", 4); len(part) == 4 {
		e = effect{part[0], part[1], part[2], part[3]}
	}
	id := header.Get("Message-Id")
	x, n, first := r.desk.arrive(id, e, r.manner(id))
	switch {
	case x.manner == errorFirst && first:
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "try again"}
	case x.manner == dropsFirst && first:
		_ = conn.Close()
		return nil
	}
	r.desk.answered(x, n)
	return nil
}
