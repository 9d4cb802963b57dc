package email

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/musterhq/muster/messaging/outcome"
)

// Sender hands messages to one relay. It may be used by many goroutines.
type Sender struct {
	o Options
	// semaphore holds a token per connection in use. Idle connections need none:
	// one is opened only while there are none, or instead of one.
	semaphore chan struct{}

	mu struct {
		sync.Mutex
		idle   []*conn // the most recently used last
		closed bool
		reaper *time.Timer
	}
	closing sync.WaitGroup // of connections closed beside a Send

	dials, sent, reused atomic.Int64
}

// ErrClosed is the cause of results after Close.
var ErrClosed = errors.New("email: the sender is closed")

// NewSender checks the options; it does not connect.
func NewSender(o Options) (*Sender, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Sender{o: o, semaphore: make(chan struct{}, o.Connections)}, nil
}

// Stats are counters since the start.
type Stats struct {
	// Dials counts connections opened, Sent messages accepted, Reused sends that
	// began on a connection used before.
	Dials, Sent, Reused int64
}

// Stats returns the counters.
func (s *Sender) Stats() Stats {
	return Stats{Dials: s.dials.Load(), Sent: s.sent.Load(), Reused: s.reused.Load()}
}

// Close closes idle connections and refuses further sends. Sends under way end
// on their own; wait for them before Close.
func (s *Sender) Close() {
	s.mu.Lock()
	idle := s.mu.idle
	s.mu.idle, s.mu.closed = nil, true
	if s.mu.reaper != nil && s.mu.reaper.Stop() {
		s.closing.Done()
	}
	s.mu.reaper = nil
	s.mu.Unlock()
	for _, c := range idle {
		c.quit(time.Second)
	}
	s.closing.Wait()
}

// Check connects and logs in, without sending. The error is an *outcome.Error.
func (s *Sender) Check(ctx context.Context) error {
	c, r := s.take(ctx, true)
	if c == nil {
		return r.Err()
	}
	s.put(c)
	return nil
}

// Send delivers m to the relay. It never repeats a message that may have been
// accepted.
func (s *Sender) Send(ctx context.Context, m *Message) outcome.Result {
	e, r := s.envelope(m)
	if r.Class != 0 {
		return r
	}
	for fresh := false; ; fresh = true {
		c, r := s.take(ctx, fresh)
		if c == nil {
			return r
		}
		r, again := s.transact(ctx, c, e)
		if again && !fresh && ctx.Err() == nil {
			continue
		}
		if r.OK() {
			s.sent.Add(1)
		}
		return r
	}
}

// envelope is the addresses for the relay, and the message's bytes.
type envelope struct {
	from, to string
	utf8     bool
	data     []byte
}

// Invalid is the outcome of a message that [Message.Validate] finds fault with:
// the recipient's address is no address, or no recipient would get the message.
func Invalid(err error) outcome.Result {
	var recipient *RecipientError
	if errors.As(err, &recipient) {
		r := outcome.Failed(outcome.Permanent, "invalid_recipient", err)
		r.Hard = true
		return r
	}
	return outcome.Failed(outcome.Refused, "invalid_message", err)
}

func (s *Sender) envelope(m *Message) (*envelope, outcome.Result) {
	if err := m.Validate(); err != nil {
		return nil, Invalid(err)
	}
	e := &envelope{}
	e.from, _ = checkAddr(m.From.Addr)
	e.to, _ = checkAddr(m.To.Addr)
	var err error
	if s.o.BounceDomain != "" {
		if e.from, err = BounceAddress(m.SendID, s.o.BounceDomain); err != nil {
			return nil, outcome.Failed(outcome.Refused, "invalid_message", err)
		}
	}
	e.utf8 = !isASCII(e.from) || !isASCII(e.to)
	if e.data, err = m.Build(); err != nil {
		return nil, outcome.Failed(outcome.Refused, "invalid_message", err)
	}
	return e, outcome.Result{}
}

// take waits for a slot and returns a connection, a new one if fresh.
func (s *Sender) take(ctx context.Context, fresh bool) (*conn, outcome.Result) {
	select {
	case s.semaphore <- struct{}{}:
	default:
		select {
		case s.semaphore <- struct{}{}:
		case <-ctx.Done():
			return nil, outcome.Failed(outcome.Temporary, "no_connection_free", ctx.Err())
		}
	}
	if c, err := s.idle(fresh); err != nil {
		<-s.semaphore
		return nil, outcome.Failed(outcome.Temporary, "closed", err)
	} else if c != nil {
		s.reused.Add(1)
		return c, outcome.Result{}
	}
	c, err := s.o.connect(ctx)
	if err != nil {
		<-s.semaphore
		return nil, classifyConnect(err)
	}
	s.dials.Add(1)
	return c, outcome.Result{}
}

// idle returns a connection that waits, nil if a new one is to be opened.
func (s *Sender) idle(fresh bool) (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, ErrClosed
	}
	if fresh {
		// One more beside the idle ones may exceed the bound. The one idle the
		// longest goes.
		if len(s.mu.idle)+len(s.semaphore) > cap(s.semaphore) {
			s.mu.idle[0].close()
			s.mu.idle = s.mu.idle[1:]
		}
		return nil, nil
	}
	now := s.o.Now()
	for len(s.mu.idle) > 0 {
		c := s.mu.idle[len(s.mu.idle)-1]
		s.mu.idle = s.mu.idle[:len(s.mu.idle)-1]
		if now.Sub(c.since) < s.o.IdleTimeout {
			return c, nil
		}
		c.close()
	}
	return nil, nil
}

// put gives a usable connection back and frees its slot.
func (s *Sender) put(c *conn) {
	defer func() { <-s.semaphore }()
	if c.used >= s.o.MessagesPerConnection {
		c.quit(s.o.CommandTimeout)
		return
	}
	c.since = s.o.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		c.close()
		return
	}
	s.mu.idle = append(s.mu.idle, c)
	if s.mu.reaper == nil {
		s.closing.Add(1)
		s.mu.reaper = time.AfterFunc(s.o.IdleTimeout, s.reap)
	}
}

// drop closes a connection and frees its slot.
func (s *Sender) drop(c *conn) {
	c.close()
	<-s.semaphore
}

// reap closes connections that have been idle for too long and comes again
// while there are others.
func (s *Sender) reap() {
	defer s.closing.Done()
	var old []*conn
	s.mu.Lock()
	now := s.o.Now()
	for len(s.mu.idle) > 0 && now.Sub(s.mu.idle[0].since) >= s.o.IdleTimeout {
		old = append(old, s.mu.idle[0])
		s.mu.idle = s.mu.idle[1:]
	}
	s.mu.reaper = nil
	if len(s.mu.idle) > 0 && !s.mu.closed {
		s.closing.Add(1)
		s.mu.reaper = time.AfterFunc(s.o.IdleTimeout, s.reap)
	}
	s.mu.Unlock()
	for _, c := range old {
		c.quit(time.Second)
	}
}

// transact carries one message over c and gives c back or drops it. again says
// that nothing was sent and a new connection may succeed.
func (s *Sender) transact(ctx context.Context, c *conn, e *envelope) (r outcome.Result, again bool) {
	ctx, cancel := context.WithTimeout(ctx, s.o.SendTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, c.close)
	reused := c.used > 0
	c.used++

	stage, text, err := c.deliver(e)
	stopped := stop()
	if err == nil {
		if !stopped {
			s.drop(c) // closed by the context just after the answer
		} else {
			s.put(c)
		}
		r = outcome.New(outcome.Accepted, "250", text)
		r.ProviderID = queueID(text)
		return r, false
	}
	r = classify(stage, err)
	if ctx.Err() != nil && r.Cause != nil {
		r.Cause = errors.Join(ctx.Err(), r.Cause)
	}
	var answer *smtp.SMTPError
	alive := stopped && errors.As(err, &answer) && answer.Code != 421
	if alive && stage != stageDot {
		// RSET ends the transaction; after the dot it has ended already.
		alive = c.client.Reset() == nil
	}
	if alive {
		s.put(c)
		return r, false
	}
	s.drop(c)
	return r, reused && stage < stageData && r.Class == outcome.Temporary
}

// stage is how far a transaction came.
type stage uint8

const (
	stageMail stage = iota
	stageRcpt
	stageData // up to the last byte before the final dot
	stageDot  // the final dot may have left
)

// errSMTPUTF8: an address needs what the relay lacks.
var errSMTPUTF8 = &smtp.SMTPError{Code: 553, EnhancedCode: smtp.EnhancedCode{5, 6, 7}, Message: "the relay does not take addresses with other letters than ASCII (SMTPUTF8)"}

// deliver returns the stage a failure fell into; a nil error is acceptance with
// the relay's words.
func (c *conn) deliver(e *envelope) (stage, string, error) {
	opts := &smtp.MailOptions{UTF8: e.utf8}
	if _, ok := c.client.MaxMessageSize(); ok {
		opts.Size = int64(len(e.data))
	}
	if e.utf8 {
		if ok, _ := c.client.Extension("SMTPUTF8"); !ok {
			if !isASCII(e.from) {
				return stageMail, "", errSMTPUTF8
			}
			return stageRcpt, "", errSMTPUTF8
		}
	}
	if err := c.client.Mail(e.from, opts); err != nil {
		return stageMail, "", err
	}
	if err := c.client.Rcpt(e.to, nil); err != nil {
		return stageRcpt, "", err
	}
	w, err := c.client.Data()
	if err != nil {
		return stageData, "", err
	}
	// The writer keeps back at least the final dot, which Close writes.
	if _, err := io.Copy(w, &reader{b: e.data}); err != nil {
		return stageData, "", err
	}
	resp, err := w.CloseWithResponse()
	if err != nil {
		return stageDot, "", err
	}
	return stageDot, resp.StatusText, nil
}

// reader hands the message out in pieces, so that write deadlines count
// progress and not the whole.
type reader struct{ b []byte }

func (r *reader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}
