package main

import (
	"crypto/rand"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/keyapi"
	"github.com/musterhq/muster/api/openapi"
	"github.com/musterhq/muster/api/openapi/openapitest"
	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/resolver/inapp"
)

// TestOpenAPIFitsTheServer tells a story to a server in a process of its own and
// checks every request and answer against the document that it serves.
func TestOpenAPIFitsTheServer(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir(), "--allow-private-webhooks")
	openapitest.Walk(t, s.origin, s.creds, s.signInToken(), openapitest.Story())
	s.stop()
}

// TestOpenAPIHasEveryRoute compares what is documented with what the router takes,
// both ways.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	t.Parallel()
	eng, err := engine.Open(t.Context(), engine.Options{Dir: filepath.Join(t.TempDir(), "data"), Logger: slog.New(slog.DiscardHandler), MaxRecordBytes: 16 << 20})
	ok(t, err)
	defer func() { ok(t, eng.Close(t.Context())) }()
	in := ingest.Options{Now: time.Now, Rand: rand.Reader, Metrics: metrics.NewSet()}
	events, err := ingest.New(eng.Node, eng.Node, in)
	ok(t, err)
	s := &services{}
	s.console, err = api.New(api.Options{Node: eng.Node, History: eng.History, Now: time.Now, Rand: rand.Reader})
	ok(t, err)
	defer s.console.Close()
	s.keys, err = keyapi.New(keyapi.Options{Node: eng.Node, History: eng.History, Events: events, Console: s.console, Now: time.Now, Rand: rand.Reader})
	ok(t, err)
	defer s.keys.Close()
	r := api.NewRouter()
	ok(t, (&serveConfig{}).route(r, s, events))

	// What the router takes, by method and path, is what is documented. The surfaces of
	// keys are behind one pattern each, and find their operations themselves.
	described := map[string]bool{}
	for _, g := range append(operations(s.keys, events, s.console), openapi.Operations()) {
		for i := range g.Operations {
			described[g.Operations[i].Method+" "+g.Surface.Prefix+g.Operations[i].Path] = true
		}
	}
	if len(described) < 130 {
		t.Errorf("only %d operations are described", len(described))
	}
	registered := map[string]bool{
		"GET /healthz": true, "GET /readyz": true, "GET /metrics": true, // answered by Ops, before the router
	}
	for name := range described {
		if method, path, _ := strings.Cut(name, " "); strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/api/v1/") && (method != "POST" || !strings.HasPrefix(path, "/api/v1/events")) {
			registered[name] = true
		}
	}
	for method, paths := range r.List() {
		for _, path := range paths {
			switch {
			case path == "/api/v1", path == "/v1", path == "/api/v1/{path:*}", path == "/v1/{path:*}":
			case strings.HasPrefix(path, "/api/v1/events"):
				registered["POST "+path] = true
			case path == "/t/{token:*}", path == "/preferences/{token:*}", path == "/forms/{id:*}":
				path = strings.TrimSuffix(path, ":*}") + "}"
				registered["GET "+path], registered["POST "+path] = true, true
			case path == "/in-app/{path:*}":
				for _, name := range []string{"inbox", "stream", "muster-inapp.js"} {
					registered["GET /in-app/"+name] = true
				}
				for _, deed := range inapp.Deeds {
					registered["POST /in-app/inbox/{id}/"+deed] = true
				}
			case path == "/reference/reference.css", path == "/reference/reference.js", method == "HEAD":
				// Parts of the page, and the same without a body.
			case path == "/", path == "/console", strings.HasPrefix(path, "/console/") && !strings.HasPrefix(path, "/console/api/"):
				// The web console.
			default:
				registered[method+" "+path] = true
			}
		}
	}
	for name := range registered {
		if !described[name] {
			t.Errorf("%s is not described", name)
		}
	}
	for name := range described {
		if !registered[name] {
			t.Errorf("%s is described, and there is no such route", name)
		}
	}
}
