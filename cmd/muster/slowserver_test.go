package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// writes hands on what is written.
type writes chan string

func (w writes) Write(b []byte) (int, error) { w <- string(b); return len(b), nil }

// TestSlowServerIsSaid: a request that a server takes and lets wait is said, once until
// there is an answer; one that is answered is not.
func TestSlowServerIsSaid(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-proceed
		}
	}))
	defer server.Close()
	said := make(writes, 16)
	p := &patient{RoundTripper: &http.Transport{}, after: 20 * time.Millisecond, to: said}
	client := http.Client{Transport: p}
	defer client.CloseIdleConnections()
	for range 2 {
		done := make(chan error)
		go func() {
			res, err := client.Get(server.URL + "/slow")
			if err == nil {
				err = res.Body.Close()
			}
			done <- err
		}()
		select {
		case line := <-said:
			if !strings.Contains(line, server.URL+" has not answered for 20ms") || !strings.HasSuffix(line, "\n") {
				t.Errorf("%q", line)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("nothing is said")
		}
		proceed <- struct{}{}
		ok(t, <-done)
	}
	p.after = time.Hour
	res, err := client.Get(server.URL)
	ok(t, err)
	ok(t, res.Body.Close())
	if len(said) != 0 {
		t.Errorf("%q", <-said)
	}
}
