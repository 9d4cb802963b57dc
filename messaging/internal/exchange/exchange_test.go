package exchange

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func post(t *testing.T, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "1.1.1.1": true,
		"127.0.0.1": false, "10.0.0.1": false, "192.168.1.1": false, "172.16.0.1": false, "169.254.169.254": false,
		"::1": false, "fe80::1": false, "fd00::1": false, "::ffff:127.0.0.1": false, "::ffff:10.1.1.1": false,
		"0.0.0.0": false, "::": false, "224.0.0.1": false, "255.255.255.255": false, "100.64.1.1": false,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false,
	} {
		if got := Public(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}

func TestPrivateAddressesAreNotDialled(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer srv.Close()
	client := NewClient(TransportOptions{})
	defer client.CloseIdleConnections()
	_, err := Do(context.Background(), client, post(t, srv.URL, ""), time.Second)
	if !errors.Is(err, ErrPrivateAddress) {
		t.Fatalf("got %v", err)
	}
	// A name that resolves to loopback is judged by its address.
	_, err = Do(context.Background(), client, post(t, strings.Replace(srv.URL, "127.0.0.1", "localhost", 1), ""), time.Second)
	if !errors.Is(err, ErrPrivateAddress) {
		t.Fatalf("got %v", err)
	}
}

func TestRedirectsAreAnswersNotFollowed(t *testing.T) {
	hits := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits++
		http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	client := NewClient(TransportOptions{AllowPrivate: true})
	defer client.CloseIdleConnections()
	a, err := Do(context.Background(), client, post(t, srv.URL, "x"), 5*time.Second)
	if err != nil || a.Status != http.StatusTemporaryRedirect || hits != 1 {
		t.Fatalf("%+v, %v, %d hits", a, err, hits)
	}
}

// A lost answer must be told from a request that never left.
func TestLostAnswerIsMarkedSent(t *testing.T) {
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
		if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			buf := make([]byte, 1)
			req.Body.Read(buf)
		}
		c.Close()
	}()
	client := NewClient(TransportOptions{AllowPrivate: true})
	defer client.CloseIdleConnections()
	_, err = Do(context.Background(), client, post(t, "http://"+ln.Addr().String(), "x"), 5*time.Second)
	if !errors.Is(err, ErrSent) {
		t.Errorf("dropped after the request: %v", err)
	}
	<-done
	ln.Close()
	_, err = Do(context.Background(), client, post(t, "http://"+ln.Addr().String(), "x"), 5*time.Second)
	if err == nil || errors.Is(err, ErrSent) {
		t.Errorf("without a listener: %v", err)
	}
}

func TestAnswerIsBoundedAndTimed(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return
		}
		w.Write(make([]byte, 1<<20))
	}))
	defer srv.Close()
	defer close(release)
	client := NewClient(TransportOptions{AllowPrivate: true})
	defer client.CloseIdleConnections()
	a, err := Do(context.Background(), client, post(t, srv.URL, ""), 5*time.Second)
	if err != nil || len(a.Body) != MaxBody {
		t.Fatalf("%v", err)
	}
	_, err = Do(context.Background(), client, post(t, srv.URL+"/slow", ""), 2*time.Second)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrSent) {
		t.Fatalf("got %v", err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-3": 0, "soon": 0, "999999999999": maxRetryAfter, "99999999999999999999": 0,
		"Wed, 04 Mar 2026 05:07:07 GMT": time.Minute, "Wed, 04 Mar 2020 05:07:07 GMT": 0,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}
