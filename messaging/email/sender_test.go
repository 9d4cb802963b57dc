package email

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"
	"github.com/emersion/go-smtp"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/messaging/outcome"
)

func TestSendOverSTARTTLSWithLogin(t *testing.T) {
	for _, mech := range []string{"PLAIN", "LOGIN"} {
		r := newRelay(t, func(r *relay, _ *smtp.Server) { r.mechs = []string{"XOAUTH2", mech} })
		s := r.sender(func(o *Options) { o.BounceDomain = "bounces.example.com" })
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		m := sample("ada@example.org")
		m.Keys = testKeys(t, "example.com")
		if got := s.Send(t.Context(), m); !got.OK() || got.Err() != nil {
			t.Fatalf("%+v", got)
		}
		mails := r.mails()
		if len(mails) != 1 || mails[0].from != "bounce+snd_0123@bounces.example.com" || mails[0].to != "ada@example.org" || !mails[0].tls {
			t.Fatalf("%+v", mails)
		}
		// As received: dot-stuffed and undone, signatures hold.
		vs, err := dkim.VerifyWithOptions(bytes.NewReader(mails[0].data), &dkim.VerifyOptions{LookupTXT: zone(t, m.Keys)})
		if err != nil || len(vs) != 2 || vs[0].Err != nil || vs[1].Err != nil {
			t.Errorf("%+v, %v", vs, err)
		}
		if r.mu.logins[0] != mech || s.Stats() != (Stats{Dials: 1, Sent: 1, Reused: 1}) {
			t.Errorf("%v, %+v", r.mu.logins, s.Stats())
		}
	}
}

func TestImplicitTLSAndNoTLS(t *testing.T) {
	r := newRelay(t, func(_ *relay, srv *smtp.Server) { srv.Addr = "tls" })
	if got := r.sender(func(o *Options) { o.TLS = ImplicitTLS }).Send(t.Context(), sample("a@example.org")); !got.OK() || !r.mails()[0].tls {
		t.Errorf("%+v", got)
	}
	r = newRelay(t, func(_ *relay, srv *smtp.Server) { srv.AllowInsecureAuth = true })
	if got := r.sender(func(o *Options) { o.TLS, o.PlaintextAuth = NoTLS, true }).Send(t.Context(), sample("a@example.org")); !got.OK() || r.mails()[0].tls {
		t.Errorf("%+v", got)
	}
}

// What is wrong with the relay or our settings is distinguished from what may pass.
func TestConnectFailures(t *testing.T) {
	otherRoots, _ := authority(t, "relay.test")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, c := range map[string]struct {
		relay  relayOption
		change func(*Options)
		class  outcome.Class
		code   string
	}{
		"wrong password":      {nil, func(o *Options) { o.Password = "guess" }, outcome.Refused, "535 5.7.8"},
		"unknown authority":   {nil, func(o *Options) { o.RootCAs = otherRoots }, outcome.Refused, "certificate"},
		"certificate of else": {nil, func(o *Options) { o.Host = "other.test" }, outcome.Refused, "certificate"},
		"any certificate":     {nil, func(o *Options) { o.RootCAs, o.SkipVerify = otherRoots, true }, outcome.Accepted, "250"},
		"no STARTTLS":         {func(_ *relay, srv *smtp.Server) { srv.TLSConfig = nil }, nil, outcome.Refused, "configuration"},
		"no login we know":    {func(r *relay, _ *smtp.Server) { r.mechs = []string{"XOAUTH2"} }, nil, outcome.Refused, "configuration"},
		"login forgotten":     {nil, func(o *Options) { o.Username, o.Password = "", "" }, outcome.Refused, "530 5.7.0"},
		"no relay": {nil, func(o *Options) {
			o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, closed.Addr().String())
			}
		}, outcome.Temporary, "network"},
	} {
		opts := []relayOption{}
		if c.relay != nil {
			opts = append(opts, c.relay)
		}
		r := newRelay(t, opts...)
		got := r.sender(c.change).Send(t.Context(), sample("a@example.org"))
		if got.Class != c.class || got.Code != c.code {
			t.Errorf("%s: %+v", name, got)
		}
		if !got.OK() && len(r.mails()) != 0 {
			t.Errorf("%s: a mail arrived", name)
		}
	}
}

func TestOptionsNameTheRemedy(t *testing.T) {
	for word, o := range map[string]Options{
		"host":                    {},
		"tls":                     {Host: "h", TLS: "ssl"},
		"port":                    {Host: "h", Port: 70000},
		"username":                {Host: "h", Password: "x"},
		"in the clear":            {Host: "h", TLS: NoTLS, Username: "u"},
		"bounce":                  {Host: "h", BounceDomain: "a b"},
		"connections":             {Host: "h", Connections: 65},
		"messages per connection": {Host: "h", MessagesPerConnection: -1},
		"command timeout":         {Host: "h", CommandTimeout: -1},
		"local name":              {Host: "h", LocalName: "a\r\nb"},
	} {
		if _, err := NewSender(o); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
}

func TestAnswersByStage(t *testing.T) {
	e := func(code int, a, b, c int) error {
		return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{a, b, c}, Message: "says\r\nthe relay"}
	}
	none := func(code int) error {
		return &smtp.SMTPError{Code: code, EnhancedCode: smtp.NoEnhancedCode, Message: "says the relay"}
	}
	type want struct {
		class outcome.Class
		hard  bool
		code  string
	}
	for _, c := range []struct {
		stage string
		err   error
		want  want
	}{
		{"mail", e(550, 5, 7, 1), want{outcome.Refused, false, "550 5.7.1"}},
		{"mail", e(553, 5, 1, 8), want{outcome.Refused, false, "553 5.1.8"}},
		{"mail", e(552, 5, 3, 4), want{outcome.Permanent, false, "552 5.3.4"}},
		{"mail", e(451, 4, 3, 0), want{outcome.Temporary, false, "451 4.3.0"}},
		{"rcpt", e(550, 5, 1, 1), want{outcome.Permanent, true, "550 5.1.1"}},
		{"rcpt", e(554, 5, 1, 2), want{outcome.Permanent, true, "554 5.1.2"}},
		{"rcpt", e(550, 5, 2, 1), want{outcome.Permanent, true, "550 5.2.1"}},
		{"rcpt", none(550), want{outcome.Permanent, true, "550"}},
		{"rcpt", none(554), want{outcome.Permanent, false, "554"}},
		{"rcpt", e(552, 5, 2, 2), want{outcome.Permanent, false, "552 5.2.2"}},
		{"rcpt", e(550, 5, 7, 1), want{outcome.Permanent, false, "550 5.7.1"}},
		{"rcpt", e(550, 5, 1, 8), want{outcome.Refused, false, "550 5.1.8"}},
		{"rcpt", e(530, 5, 7, 0), want{outcome.Refused, false, "530 5.7.0"}},
		{"rcpt", e(450, 4, 2, 0), want{outcome.Temporary, false, "450 4.2.0"}},
		{"rcpt", e(452, 4, 2, 2), want{outcome.Temporary, false, "452 4.2.2"}},
		{"data", e(550, 5, 7, 1), want{outcome.Permanent, false, "550 5.7.1"}},
		{"data", none(550), want{outcome.Permanent, false, "550"}},
		{"data", e(550, 5, 1, 1), want{outcome.Permanent, true, "550 5.1.1"}},
		{"data", e(451, 4, 7, 1), want{outcome.Temporary, false, "451 4.7.1"}},
	} {
		r := newRelay(t)
		fail := true
		switch c.stage {
		case "mail":
			r.onMail = func(*smtp.Conn, string, int) error { return map[bool]error{true: c.err}[fail] }
		case "rcpt":
			r.onRcpt = func(*smtp.Conn, string, int) error { return map[bool]error{true: c.err}[fail] }
		default:
			r.onData = func(*smtp.Conn, []byte, int) error { return map[bool]error{true: c.err}[fail] }
		}
		s := r.sender(nil)
		got := s.Send(t.Context(), sample("a@example.org"))
		if (want{got.Class, got.Hard, got.Code}) != c.want || got.Text != "says the relay" {
			t.Errorf("%s %v: %+v", c.stage, c.err, got)
		}
		// The connection continues for the next message, from a clean state.
		r.mu.Lock()
		if c.stage == "rcpt" && r.mu.resets == 0 {
			t.Errorf("%v: the transaction was left open", c.err)
		}
		r.mu.Unlock()
		fail = false
		if got := s.Send(t.Context(), sample("b@example.org")); !got.OK() || s.Stats().Dials != 1 {
			t.Errorf("%s %v: then %+v, %+v", c.stage, c.err, got, s.Stats())
		}
	}
}

// The relay takes the whole message and vanishes: whether it was accepted is not
// known, and it must not be sent again here.
func TestConnectionLostAfterTheDotIsAmbiguous(t *testing.T) {
	r := newRelay(t)
	var received atomic.Int32
	r.onData = func(c *smtp.Conn, _ []byte, _ int) error {
		if received.Add(1) == 2 {
			c.Conn().Close()
			return errDropped
		}
		return nil
	}
	s := r.sender(nil)
	if got := s.Send(t.Context(), sample("a@example.org")); !got.OK() {
		t.Fatalf("%+v", got)
	}
	got := s.Send(t.Context(), sample("b@example.org"))
	if got.Class != outcome.Ambiguous || got.Cause == nil || received.Load() != 2 {
		t.Errorf("%+v after %d receptions", got, received.Load())
	}
	if got := s.Send(t.Context(), sample("c@example.org")); !got.OK() || s.Stats().Dials != 2 {
		t.Errorf("then %+v, %+v", got, s.Stats())
	}
}

func TestNoAnswerToTheDotIsAmbiguous(t *testing.T) {
	r := newRelay(t)
	release := make(chan struct{})
	received := make(chan struct{}, 2)
	r.onData = func(*smtp.Conn, []byte, int) error { received <- struct{}{}; <-release; return nil }
	s := r.sender(func(o *Options) { o.DataTimeout = 150 * time.Millisecond })
	if got := s.Send(t.Context(), sample("a@example.org")); got.Class != outcome.Ambiguous {
		t.Errorf("time-out: %+v", got)
	}
	s = r.sender(nil)
	<-received
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { <-received; cancel() }() // behind the dot
	if got := s.Send(ctx, sample("a@example.org")); got.Class != outcome.Ambiguous || !errors.Is(got.Err(), context.Canceled) {
		t.Errorf("cancelled: %+v", got)
	}
	close(release)
}

// Relays hang up on idle or long-used connections; a message must not suffer.
func TestUsedConnectionThatEndsIsReplaced(t *testing.T) {
	for _, how := range []string{"421", "dropped"} {
		r := newRelay(t)
		r.onMail = func(c *smtp.Conn, addr string, n int) error {
			if n != 3 {
				return nil
			}
			if how == "421" {
				defer time.AfterFunc(20*time.Millisecond, func() { c.Conn().Close() })
				return &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 4, 2}, Message: "closing"}
			}
			c.Conn().Close()
			return errDropped
		}
		s := r.sender(nil)
		for i := range 5 {
			if got := s.Send(t.Context(), sample(fmt.Sprintf("a%d@example.org", i))); !got.OK() {
				t.Errorf("%s: message %d: %+v", how, i, got)
			}
		}
		if n := len(r.mails()); n != 5 || s.Stats().Dials != 2 {
			t.Errorf("%s: %d mails over %d connections", how, n, s.Stats().Dials)
		}
	}
	// On a new connection 421 is an answer, not a reason to dial on and on.
	r := newRelay(t)
	r.onMail = func(*smtp.Conn, string, int) error {
		return &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 7, 0}, Message: "slow down"}
	}
	s := r.sender(nil)
	if got := s.Send(t.Context(), sample("a@example.org")); got.Class != outcome.Temporary || got.Code != "421 4.7.0" || s.Stats().Dials != 1 {
		t.Errorf("%+v, %+v", got, s.Stats())
	}
}

func TestRefusalsBeforeTheRelayIsAsked(t *testing.T) {
	r := newRelay(t)
	s := r.sender(func(o *Options) { o.BounceDomain = "b.example.com" })
	for name, c := range map[string]struct {
		change func(*Message)
		class  outcome.Class
		hard   bool
	}{
		"recipient": {func(m *Message) { m.To.Addr = "no address" }, outcome.Permanent, true},
		"sender":    {func(m *Message) { m.From.Addr = "no address" }, outcome.Refused, false},
		"send id":   {func(m *Message) { m.SendID = "a b" }, outcome.Refused, false},
	} {
		m := sample("a@example.org")
		c.change(m)
		if got := s.Send(t.Context(), m); got.Class != c.class || got.Hard != c.hard {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if s.Stats().Dials != 0 {
		t.Error("the relay was bothered")
	}
	m := sample("üda@example.org") // needs SMTPUTF8, which this relay lacks
	if got := s.Send(t.Context(), m); got.Class != outcome.Permanent || got.Hard || got.Code != "553 5.6.7" {
		t.Errorf("%+v", got)
	}
	big := sample("a@example.org")
	big.HTML = strings.Repeat("x ", 600_000)
	if got := s.Send(t.Context(), big); got.Class != outcome.Permanent || got.Hard || !strings.HasPrefix(got.Code, "552") {
		t.Errorf("%+v", got)
	}
}

// Many senders share few connections, and each connection carries many messages.
func TestPoolIsBoundedAndReused(t *testing.T) {
	count := 400
	if testlevel.Long() {
		count = 100_000
	}
	r := newRelay(t)
	r.onRcpt = func(_ *smtp.Conn, to string, _ int) error {
		if strings.HasPrefix(to, "bad") {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "unknown"}
		}
		return nil
	}
	s := r.sender(func(o *Options) { o.Connections, o.MessagesPerConnection = 3, max(50, count/100) })
	var wg sync.WaitGroup
	var next, bounced atomic.Int64
	for range 12 {
		wg.Go(func() {
			for n := next.Add(1); n <= int64(count); n = next.Add(1) {
				to := strconv.FormatInt(n, 10) + "@example.org"
				if n%10 == 0 {
					to = "bad" + to
				}
				m := sample(to)
				m.ID = to
				switch got := s.Send(t.Context(), m); {
				case got.Hard:
					bounced.Add(1)
				case !got.OK():
					t.Errorf("%s: %+v", to, got)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, m := range r.mails() {
		seen[m.to]++
	}
	if len(seen) != count-count/10 || bounced.Load() != int64(count/10) || int(s.Stats().Sent) != len(seen) {
		t.Errorf("%d recipients, %d bounced, %+v", len(seen), bounced.Load(), s.Stats())
	}
	for to, n := range seen {
		if n != 1 {
			t.Errorf("%s got %d", to, n)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if limit := count/max(50, count/100) + 6; int(s.Stats().Dials) > limit {
		t.Errorf("%d connections for %d messages, expected up to %d", s.Stats().Dials, count, limit)
	}
	// A connection that said QUIT may end at the relay after the next began.
	if r.mu.most > 3+3 {
		t.Errorf("%d connections at once", r.mu.most)
	}
}

func TestWaitingForAConnectionEndsWithTheContext(t *testing.T) {
	r := newRelay(t)
	release := make(chan struct{})
	entered := make(chan struct{})
	r.onMail = func(*smtp.Conn, string, int) error { close(entered); <-release; return nil }
	s := r.sender(func(o *Options) { o.Connections = 1 })
	done := make(chan outcome.Result)
	go func() { done <- s.Send(context.Background(), sample("a@example.org")) }()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := s.Send(ctx, sample("b@example.org")); got.Class != outcome.Temporary || got.Code != "no_connection_free" {
		t.Errorf("%+v", got)
	}
	close(release)
	if got := <-done; !got.OK() {
		t.Errorf("%+v", got)
	}
	s.Close()
	if got := s.Send(t.Context(), sample("c@example.org")); got.Class != outcome.Temporary || !errors.Is(got.Err(), ErrClosed) {
		t.Errorf("after Close: %+v", got)
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	r := newRelay(t)
	s := r.sender(func(o *Options) { o.IdleTimeout = 50 * time.Millisecond })
	if got := s.Send(t.Context(), sample("a@example.org")); !got.OK() {
		t.Fatal(got)
	}
	eventually.Holds(t, "the connection is closed", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.mu.open == 0
	})
	if got := s.Send(t.Context(), sample("b@example.org")); !got.OK() || s.Stats().Dials != 2 {
		t.Errorf("%+v, %+v", got, s.Stats())
	}
}

// A hostile relay that talks without end costs neither memory nor time.
func TestEndlessAnswerIsCut(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		line := bytes.Repeat([]byte("220-welcome\r\n"), 100)
		for {
			if _, err := c.Write(line); err != nil {
				return
			}
		}
	}()
	s, err := NewSender(Options{Host: "127.0.0.1", Port: ln.Addr().(*net.TCPAddr).Port, TLS: NoTLS})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Send(t.Context(), sample("a@example.org")); got.Class != outcome.Temporary || !errors.Is(got.Err(), errLongAnswer) {
		t.Errorf("%+v", got)
	}
	ln.Close()
	<-done
}

func TestQueueID(t *testing.T) {
	for text, want := range map[string]string{
		"Ok: queued as 4F3A21C0": "4F3A21C0", "OK id=1a2B3c-000-Xy": "1a2b3c-000-xy", "2.0.0 Ok: queued": "", "": "",
		"Message accepted <id 5>": "5", "as": "",
	} {
		if got := queueID(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
