package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// answerTime is how long a command waits for an answer before it says that it waits.
const answerTime = 5 * time.Second

// patient says when a server lets a request wait: one that accepts connections and never
// answers must not look like a slow import. It says so once until an answer comes.
type patient struct {
	http.RoundTripper
	after time.Duration

	mu   sync.Mutex
	to   io.Writer
	said bool
}

// RoundTrip implements [http.RoundTripper].
func (p *patient) RoundTrip(req *http.Request) (*http.Response, error) {
	waiting := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.said {
			fmt.Fprintf(p.to, "%s://%s has not answered for %s; still waiting. If it is not a muster server, stop this and give the server's URL with --to\n", req.URL.Scheme, req.URL.Host, p.after)
		}
		p.said = true
	}
	// The time counts from the connection: one that is not made has a time limit and an
	// error of its own.
	var late *time.Timer
	var mu sync.Mutex
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		mu.Lock()
		defer mu.Unlock()
		if late != nil { // a request that is sent again on another connection
			late.Stop()
		}
		late = time.AfterFunc(p.after, waiting)
	}}
	res, err := p.RoundTripper.RoundTrip(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	mu.Lock()
	if late != nil {
		late.Stop()
	}
	mu.Unlock()
	if err == nil {
		p.mu.Lock()
		p.said = false
		p.mu.Unlock()
	}
	return res, err
}

// CloseIdleConnections lets [http.Client.CloseIdleConnections] reach the transport.
func (p *patient) CloseIdleConnections() {
	if t, is := p.RoundTripper.(interface{ CloseIdleConnections() }); is {
		t.CloseIdleConnections()
	}
}
