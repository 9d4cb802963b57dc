package push

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/musterhq/muster/messaging/internal/exchange"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is set by tests.
type clock struct {
	sync.Mutex
	t time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.Lock()
	defer c.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.Lock()
	defer c.Unlock()
	c.t = c.t.Add(d)
}

// service is an HTTPS endpoint with HTTP/2 that records what it gets.
type service struct {
	*httptest.Server
	mu struct {
		sync.Mutex
		requests []request
	}
	answer func(w http.ResponseWriter, r request)
}

type request struct {
	*http.Request
	body []byte
}

func newService(t *testing.T, answer func(w http.ResponseWriter, r request)) *service {
	t.Helper()
	s := &service{answer: answer}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		q := request{r, body}
		s.mu.Lock()
		s.mu.requests = append(s.mu.requests, q)
		s.mu.Unlock()
		s.answer(w, q)
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Server.Close)
	return s
}

func (s *service) last() request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.requests[len(s.mu.requests)-1]
}

// options trust the service's certificate.
func (s *service) options(t *testing.T, c *clock) Options {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	client := exchange.NewClient(exchange.TransportOptions{AllowPrivate: true, RootCAs: roots})
	t.Cleanup(client.CloseIdleConnections)
	return Options{Client: client, Now: c.now, Timeout: 5 * time.Second, AllowPrivate: true}
}

func ecPEM(t *testing.T) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key, pkcs8(t, key)
}

func pkcs8(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sample() *Notification {
	return &Notification{
		Title: "Hello, Zoë", Body: "Your order is on its way", Link: "https://example.com/orders/1", Collapse: "orders-1",
		TTL: time.Hour, Urgency: UrgencyHigh, ID: "snd_1", Data: map[string]string{"order": "1"},
	}
}
