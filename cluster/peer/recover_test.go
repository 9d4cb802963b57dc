package peer

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/panics"
)

// TestPanicAtTheOwner: a request that panics at the node that it is handed to is
// answered 500 and not tried again: it may have changed something.
func TestPanicAtTheOwner(t *testing.T) {
	t.Parallel()
	_, router, owner := two(t, 2*time.Second)
	var calls atomic.Int32
	owner.handle = func(*fasthttp.RequestCtx) {
		calls.Add(1)
		panic("the owner is broken")
	}
	res, body := router.send("POST", "/x", []byte("{}"))
	if res.StatusCode != 500 || !strings.HasPrefix(body, "refused: the server failed") || calls.Load() != 1 {
		t.Errorf("%d %s after %d calls", res.StatusCode, body, calls.Load())
	}
	if n := owner.peers.opts.Metrics.GetOrCreateCounter(panics.Metric).Get(); n != 1 {
		t.Errorf("%d panics counted", n)
	}
}

// TestAuthenticatedAtTheOwner: the node that has the client's connection learns that
// its owner has taken the credentials; the client sees nothing of that, and cannot
// say so itself.
func TestAuthenticatedAtTheOwner(t *testing.T) {
	t.Parallel()
	_, router, owner := two(t, 2*time.Second)
	var authenticated atomic.Bool
	router.after = func(rc *fasthttp.RequestCtx) { authenticated.Store(ingest.TakeAuthenticated(rc)) }
	for path, want := range map[string]bool{"/right": true, "/wrong": false} {
		owner.handle = func(rc *fasthttp.RequestCtx) {
			if string(rc.Path()) == "/right" {
				ingest.Authenticated(rc)
			}
		}
		res, _ := router.send("GET", path, nil, headerAuthenticated, "1")
		if authenticated.Load() != want || res.Header.Get(headerAuthenticated) != "" {
			t.Errorf("%s: authenticated is %v, the client sees %v", path, authenticated.Load(), res.Header)
		}
	}
}
