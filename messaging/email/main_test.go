package email

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority is a certificate authority made for one test.
func authority(t *testing.T, name string) (*x509.CertPool, tls.Certificate) {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: ca.NotBefore, NotAfter: ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(caDER)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return pool, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// relay is a real SMTP server whose answers the test decides.
type relay struct {
	t     *testing.T
	port  int
	roots *x509.CertPool
	mechs []string
	user  string

	// Hooks, nil for acceptance; they run without mu.
	onMail, onRcpt func(c *smtp.Conn, addr string, n int) error
	onData         func(c *smtp.Conn, data []byte, n int) error

	mu struct {
		sync.Mutex
		mails      []mailed
		open, most int
		logins     []string
		commands   int
		resets     int
	}
}

type mailed struct {
	from, to string
	data     []byte
	tls      bool
}

type relayOption func(*relay, *smtp.Server)

func newRelay(t *testing.T, opts ...relayOption) *relay {
	t.Helper()
	roots, cert := authority(t, "relay.test")
	r := &relay{t: t, roots: roots, mechs: []string{sasl.Plain}, user: "muster"}
	srv := smtp.NewServer(smtp.BackendFunc(r.session))
	srv.Domain = "relay.test"
	srv.ErrorLog = log.New(io.Discard, "", 0)
	srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	srv.MaxMessageBytes = 1 << 20
	for _, o := range opts {
		o(r, srv)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.port = ln.Addr().(*net.TCPAddr).Port
	if srv.Addr == "tls" {
		ln = tls.NewListener(ln, srv.TLSConfig)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(ln)
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			srv.Close()
		}
		ln.Close() // it may not have begun to serve
		<-done
	})
	return r
}

// options point a sender at the relay.
func (r *relay) options() Options {
	return Options{
		Host: "relay.test", Port: r.port, Username: r.user, Password: "secret", RootCAs: r.roots,
		CommandTimeout: 5 * time.Second, DataTimeout: 5 * time.Second, DialTimeout: 5 * time.Second,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(address)
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
	}
}

func (r *relay) sender(change func(*Options)) *Sender {
	r.t.Helper()
	o := r.options()
	if change != nil {
		change(&o)
	}
	s, err := NewSender(o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.Close)
	return s
}

func (r *relay) mails() []mailed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]mailed(nil), r.mu.mails...)
}

func (r *relay) session(c *smtp.Conn) (smtp.Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.open++
	r.mu.most = max(r.mu.most, r.mu.open)
	return &session{r: r, c: c}, nil
}

type session struct {
	r        *relay
	c        *smtp.Conn
	from, to string
	authed   bool
}

func (s *session) AuthMechanisms() []string { return s.r.mechs }

func (s *session) Auth(mech string) (sasl.Server, error) {
	check := func(user, password string) error {
		s.r.mu.Lock()
		defer s.r.mu.Unlock()
		s.r.mu.logins = append(s.r.mu.logins, mech)
		if user != s.r.user || password != "secret" {
			return smtp.ErrAuthFailed
		}
		s.authed = true
		return nil
	}
	switch mech {
	case sasl.Plain:
		return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
	case sasl.Login:
		return &loginServer{check: check}, nil
	}
	return nil, smtp.ErrAuthUnknownMechanism
}

// loginServer words its questions unlike others.
type loginServer struct {
	check func(user, password string) error
	step  int
	user  string
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	l.step++
	switch l.step {
	case 1:
		return []byte("User Name"), false, nil
	case 2:
		l.user = string(response)
		return []byte("password please"), false, nil
	default:
		return nil, true, l.check(l.user, string(response))
	}
}

// count returns how many commands came before this one.
func (s *session) count() int {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.mu.commands++
	return s.r.mu.commands
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.r.user != "" && !s.authed {
		return &smtp.SMTPError{Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "Authentication required"}
	}
	s.from = from
	if s.r.onMail != nil {
		return s.r.onMail(s.c, from, s.count())
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	if s.r.onRcpt != nil {
		return s.r.onRcpt(s.c, to, s.count())
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.r.onData != nil {
		if err := s.r.onData(s.c, data, s.count()); err != nil {
			return err
		}
	}
	_, secure := s.c.TLSConnectionState()
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.mu.mails = append(s.r.mu.mails, mailed{s.from, s.to, bytes.Clone(data), secure})
	return nil
}

func (s *session) Reset() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.mu.resets++
}

func (s *session) Logout() error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.mu.open--
	return nil
}

var errDropped = errors.New("dropped")

func sample(to string) *Message {
	return &Message{
		ID: "send-1@news.example.com", Date: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC),
		From: Address{Name: "Zoë at Example", Addr: "news@example.com"}, ReplyTo: Address{Addr: "help@example.com"}, To: Address{Name: "Ada, \"the\" first", Addr: to},
		Subject: "Grüße – your plan", HTML: "<p>Hello <b>Ada</b></p><p><a href=\"https://example.com/x\">Read</a></p>",
		Unsubscribe: Unsubscribe{URL: "https://example.com/u/1", Mailto: "leave@example.com"},
		FeedbackID:  "campaign:acct:muster", SendID: "snd_0123", Headers: []Header{{"X-Campaign", "c 1"}},
	}
}
