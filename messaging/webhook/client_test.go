package webhook

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

func client(t *testing.T, opts Options) *Client {
	t.Helper()
	if opts.Now == nil {
		opts.Now = time.Now
	}
	c, err := NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func server(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

var open = Options{Guard: Guard{AllowPrivate: true}}

func TestDeliverSigned(t *testing.T) {
	s := secretOf(t, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	body := `{"type":"email.opened"}`
	var calls atomic.Int32
	srv := server(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		got, _ := io.ReadAll(r.Body)
		if err := Verify(r.Header.Get, got, []Secret{s}, time.Now()); err != nil {
			t.Error(err)
		}
		if string(got) != body || r.Method != "POST" || r.Header.Get("Content-Type") != "application/json" ||
			r.Header.Get("X-Shop") != "7" || r.Header.Get("User-Agent") != "Muster-Webhooks/1" {
			t.Errorf("%s %s %v", r.Method, got, r.Header)
		}
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "thanks\x00\xff")
	})
	res := client(t, open).Deliver(context.Background(), Request{
		ID: "msg_1", URL: srv.URL, Headers: map[string]string{"X-Shop": "7"}, Body: []byte(body), Secrets: []Secret{s},
	})
	if res.Class != Delivered || res.Status != 202 || res.Answer != "thanks" || res.Reason != "" || calls.Load() != 1 {
		t.Fatalf("%+v after %d calls", res, calls.Load())
	}
	// Without secrets: an id, no signature.
	srv2 := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(HeaderSignature) != "" || r.Header.Get(HeaderID) != "msg_2" || r.Method != "PUT" || r.Header.Get("Content-Type") != "text/plain" {
			t.Error(r.Method, r.Header)
		}
	})
	res = client(t, open).Deliver(context.Background(), Request{ID: "msg_2", URL: srv2.URL, Method: "PUT", Headers: map[string]string{"content-type": "text/plain"}})
	if res.Class != Delivered {
		t.Fatalf("%+v", res)
	}
}

func TestDeliverClasses(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	opts := open
	opts.Now = func() time.Time { return now }
	c := client(t, opts)
	for _, k := range []struct {
		status int
		after  string
		class  Class
		wait   time.Duration
	}{
		{200, "", Delivered, 0},
		{204, "", Delivered, 0},
		{299, "", Delivered, 0},
		{302, "", Retry, 0},
		{304, "", Retry, 0},
		{400, "", Retry, 0},
		{401, "", Retry, 0},
		{404, "60", Retry, 0},
		{410, "", Gone, 0},
		{429, "120", Retry, 2 * time.Minute},
		{429, "999999999999999999999", Retry, MaxRetryAfter},
		{429, "-5", Retry, 0},
		{429, "soon", Retry, 0},
		{503, now.Add(time.Hour).Format(http.TimeFormat), Retry, time.Hour},
		{503, now.Add(-time.Hour).Format(http.TimeFormat), Retry, 0},
		{503, now.Add(400 * 24 * time.Hour).Format(http.TimeFormat), Retry, MaxRetryAfter},
		{500, "60", Retry, 0},
	} {
		srv := server(t, func(w http.ResponseWriter, r *http.Request) {
			if k.after != "" {
				w.Header().Set("Retry-After", k.after)
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(k.status)
		})
		res := c.Deliver(context.Background(), Request{ID: "m", URL: srv.URL})
		if res.Class != k.class || res.Status != k.status || res.RetryAfter != k.wait || (res.Reason == "") != (k.class == Delivered) {
			t.Errorf("%d Retry-After %q: %+v", k.status, k.after, res)
		}
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var reached atomic.Bool
	target := server(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		srv := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target.URL, status) })
		res := client(t, open).Deliver(context.Background(), Request{ID: "m", URL: srv.URL})
		if res.Class != Retry || !strings.Contains(res.Reason, "redirects") {
			t.Errorf("%d: %+v", status, res)
		}
	}
	if reached.Load() {
		t.Error("a redirect was followed")
	}
}

// TestMain names a proxy in the environment.
func TestProxyIsIgnored(t *testing.T) {
	resolver, _ := fakeDNS(t, "127.0.0.1")
	srv := server(t, func(http.ResponseWriter, *http.Request) {})
	opts := open
	opts.Resolver = resolver
	res := client(t, opts).Deliver(context.Background(), Request{ID: "m", URL: "http://hook.example.com:" + port(srv)})
	if res.Class != Delivered {
		t.Fatalf("%+v", res)
	}
}

func TestRefusedRequests(t *testing.T) {
	var reached atomic.Bool
	srv := server(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	big := make(map[string]string)
	for i := range MaxHeaders + 1 {
		big[fmt.Sprint("x-", i)] = "v"
	}
	for name, r := range map[string]Request{
		"no id":       {URL: srv.URL},
		"dotted id":   {ID: "a.b", URL: srv.URL},
		"id breaks":   {ID: "a\r\nX: y", URL: srv.URL},
		"method":      {ID: "m", URL: srv.URL, Method: "CONNECT"},
		"host":        {ID: "m", URL: srv.URL, Headers: map[string]string{"HOST": "x"}},
		"length":      {ID: "m", URL: srv.URL, Headers: map[string]string{"content-Length": "1"}},
		"encoding":    {ID: "m", URL: srv.URL, Headers: map[string]string{"Transfer-Encoding": "chunked"}},
		"signature":   {ID: "m", URL: srv.URL, Headers: map[string]string{"Webhook-Signature": "x"}},
		"header name": {ID: "m", URL: srv.URL, Headers: map[string]string{"a b": "x"}},
		"line break":  {ID: "m", URL: srv.URL, Headers: map[string]string{"a": "x\r\nb: c"}},
		"many":        {ID: "m", URL: srv.URL, Headers: big},
		"long header": {ID: "m", URL: srv.URL, Headers: map[string]string{"a": strings.Repeat("x", MaxHeaderBytes)}},
		"body":        {ID: "m", URL: srv.URL, Body: make([]byte, MaxBodyBytes+1)},
		"zero secret": {ID: "m", URL: srv.URL, Secrets: []Secret{{}}},
		"secrets":     {ID: "m", URL: srv.URL, Secrets: make([]Secret, MaxSecrets+1)},
		"url":         {ID: "m", URL: "http://x:y@" + srv.Listener.Addr().String()},
	} {
		if res := client(t, open).Deliver(context.Background(), r); res.Class != Refused || res.Reason == "" {
			t.Errorf("%s: %+v", name, res)
		}
	}
	if reached.Load() {
		t.Error("a refused request was sent")
	}
}

func TestW1LiteralAddress(t *testing.T) {
	var reached atomic.Bool
	srv := server(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	res := client(t, Options{}).Deliver(context.Background(), Request{ID: "m", URL: srv.URL})
	if res.Class != Refused || !strings.Contains(res.Reason, "--allow-private-webhooks") || reached.Load() {
		t.Fatalf("%+v, reached: %v", res, reached.Load())
	}
}

// A public name that leads to a private address is stopped at the socket.
func TestW1NameOfPrivateAddress(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "64:ff9b::7f00:1"} {
		var reached atomic.Bool
		srv := server(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
		resolver, _ := fakeDNS(t, addr)
		res := client(t, Options{Resolver: resolver}).Deliver(context.Background(), Request{ID: "m", URL: "http://hook.example.com:" + port(srv)})
		if res.Class != Refused || !strings.HasPrefix(res.Reason, "url leads to") || reached.Load() {
			t.Errorf("%s: %+v, reached: %v", addr, res, reached.Load())
		}
	}
}

// A name that is public when first looked up and private at the next look-up: a
// check before the dial would have let it through.
func TestW1Rebinding(t *testing.T) {
	var reached atomic.Bool
	srv := server(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	resolver, asked := fakeDNS(t, "192.0.2.200", "127.0.0.1")
	ctx := context.Background()
	if addrs, err := resolver.LookupHost(ctx, "hook.example.com"); err != nil || addrs[0] != "192.0.2.200" {
		t.Fatal(addrs, err)
	}
	res := client(t, Options{Resolver: resolver}).Deliver(ctx, Request{ID: "m", URL: "http://hook.example.com:" + port(srv)})
	if res.Class != Refused || reached.Load() || asked.Load() < 2 {
		t.Fatalf("%+v, reached: %v, asked %d times", res, reached.Load(), asked.Load())
	}
}

func TestW4SlowReceivers(t *testing.T) {
	stop := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(stop) }) }
	t.Cleanup(release)
	wait := func(r *http.Request) {
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}
	silent := server(t, func(w http.ResponseWriter, r *http.Request) { wait(r) })
	// Answers 200 at once and never ends its body: the status has decided.
	dripping := server(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "so far")
		w.(http.Flusher).Flush()
		wait(r)
	})
	t.Cleanup(release)
	c := client(t, open)
	began := time.Now()
	res := c.Deliver(context.Background(), Request{ID: "m", URL: silent.URL, Timeout: 50 * time.Millisecond})
	if res.Class != Retry || res.Aborted || !strings.Contains(res.Reason, "50ms") {
		t.Errorf("silent: %+v", res)
	}
	res = c.Deliver(context.Background(), Request{ID: "m", URL: dripping.URL, Timeout: 3 * time.Second})
	if res.Class != Delivered || res.Answer != "so far" {
		t.Errorf("dripping: %+v", res)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if res = c.Deliver(ctx, Request{ID: "m", URL: silent.URL}); res.Class != Retry || !res.Aborted {
		t.Errorf("aborted: %+v", res)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestW4LargeAnswers(t *testing.T) {
	var wrote atomic.Int64
	endless := server(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(strings.Repeat("é", 16<<10))
		for {
			n, err := w.Write(chunk)
			wrote.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	res := client(t, open).Deliver(context.Background(), Request{ID: "m", URL: endless.URL})
	if res.Class != Delivered || len(res.Answer) != keptAnswerBytes || strings.Trim(res.Answer, "é") != "" {
		t.Errorf("%v with %d bytes kept", res.Class, len(res.Answer))
	}
	headers := server(t, func(w http.ResponseWriter, r *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) })
	if res := client(t, open).Deliver(context.Background(), Request{ID: "m", URL: headers.URL}); res.Class != Retry {
		t.Errorf("headers: %+v", res)
	}
}

func TestNetworkErrorsAreRetried(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	res := client(t, open).Deliver(context.Background(), Request{ID: "m", URL: srv.URL + "/?token=private"})
	if res.Class != Retry || !strings.Contains(res.Reason, "refused") || strings.Contains(res.Reason, "private") {
		t.Errorf("closed port: %+v", res)
	}
	tls := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	tls.Config.ErrorLog = nil
	t.Cleanup(tls.Close)
	res = client(t, open).Deliver(context.Background(), Request{ID: "m", URL: tls.URL})
	if res.Class != Retry || !strings.Contains(res.Reason, "certificate") {
		t.Errorf("unknown authority: %+v", res)
	}
	opts := open
	opts.RootCAs = x509.NewCertPool()
	opts.RootCAs.AddCert(tls.Certificate())
	if res = client(t, opts).Deliver(context.Background(), Request{ID: "m", URL: tls.URL}); res.Class != Delivered {
		t.Errorf("known authority: %+v", res)
	}
	resolver, _ := fakeDNS(t)
	res = client(t, Options{Resolver: resolver}).Deliver(context.Background(), Request{ID: "m", URL: "http://hook.example.com/"})
	if res.Class != Retry {
		t.Errorf("unknown name: %+v", res)
	}
}

func port(s *httptest.Server) string {
	_, p, _ := net.SplitHostPort(s.Listener.Addr().String())
	return p
}

// fakeDNS is a name server that answers each look-up with the next of addrs (the
// last one for ever after), whatever the name.
func fakeDNS(t *testing.T, addrs ...string) (*net.Resolver, *atomic.Int32) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		// A look-up asks for both types; each type counts for itself.
		turn := map[dnsmessage.Type]int{}
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			if len(addrs) == 0 {
				m.RCode = dnsmessage.RCodeNameError
			} else {
				addr := net.ParseIP(addrs[min(turn[q.Type], len(addrs)-1)])
				turn[q.Type]++
				h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
				if v4 := addr.To4(); v4 != nil && q.Type == dnsmessage.TypeA {
					asked.Add(1)
					m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AResource{A: [4]byte(v4)}}}
				} else if v4 == nil && q.Type == dnsmessage.TypeAAAA {
					asked.Add(1)
					m.Answers = []dnsmessage.Resource{{Header: h, Body: &dnsmessage.AAAAResource{AAAA: [16]byte(addr)}}}
				}
			}
			if out, err := m.Pack(); err == nil {
				conn.WriteTo(out, from)
			}
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}, &asked
}
