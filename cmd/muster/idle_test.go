package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestServerStopsAnswering: a request whose server says nothing, or nothing more in the
// middle of its answer, ends with an error that says so; one whose answer is read slowly,
// or comes slowly, does not.
func TestServerStopsAnswering(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/mute":
			<-hang
		case "/stops":
			_, _ = io.WriteString(w, "{}\n")
			w.(http.Flusher).Flush()
			<-hang
		default:
			for range 5 {
				_, _ = io.WriteString(w, "{}\n")
				w.(http.Flusher).Flush()
			}
		}
	}))
	defer server.Close()
	defer close(hang)
	get := func(path string, first, idle, slow time.Duration) (string, error) {
		client := http.Client{Transport: &bounded{&http.Transport{}, first, idle}}
		defer client.CloseIdleConnections()
		res, err := client.Get(server.URL + path)
		if err != nil {
			return "", unreachable(server.URL, "to", err)
		}
		defer res.Body.Close()
		var out strings.Builder
		b := make([]byte, 3)
		for err == nil {
			var n int
			n, err = res.Body.Read(b)
			out.Write(b[:n])
			time.Sleep(slow) // a slow reader is what is tested
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return out.String(), err
	}
	const short, long = 30 * time.Millisecond, time.Hour
	if _, err := get("/mute", short, long, 0); err == nil || !strings.Contains(err.Error(), "does not answer: no answer within 30ms; ") {
		t.Errorf("no answer: %v", err)
	}
	if out, err := get("/stops", long, short, 0); out != "{}\n" || err == nil || !strings.Contains(err.Error(), server.URL+" sent nothing for 30ms in the middle of its answer") {
		t.Errorf("half an answer: %q %v", out, err)
	}
	if out, err := get("/", long, time.Minute, 2*short); out != strings.Repeat("{}\n", 5) || err != nil {
		t.Errorf("read slowly: %q %v", out, err)
	}
}
