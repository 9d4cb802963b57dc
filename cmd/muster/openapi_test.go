package main

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
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
)

// TestOpenAPIFitsTheServer tells a story to a server in a process of its own and
// checks every request and answer against the document that it serves.
func TestOpenAPIFitsTheServer(t *testing.T) {
	s := serve(t, t.TempDir(), "--allow-private-webhooks")
	openapitest.Walk(t, s.origin, s.creds, openapitest.Story())
	s.stop()
}

// TestOpenAPIHasEveryRoute compares the document with the routes of the server,
// both ways, with their permissions.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	eng, err := engine.Open(t.Context(), engine.Options{Dir: filepath.Join(t.TempDir(), "data"), Logger: slog.New(slog.DiscardHandler), MaxRecordBytes: 16 << 20})
	ok(t, err)
	defer func() { ok(t, eng.Close(t.Context())) }()
	in := ingest.Options{Now: time.Now, Rand: rand.Reader, Metrics: metrics.NewSet()}
	events, err := ingest.New(eng.Node, eng.Node, in)
	ok(t, err)
	s := &services{}
	s.keys, err = keyapi.New(keyapi.Options{Node: eng.Node, History: eng.History, Events: events, Now: time.Now, Rand: rand.Reader})
	ok(t, err)
	defer s.keys.Close()
	s.console, err = api.New(api.Options{Node: eng.Node, History: eng.History, Now: time.Now, Rand: rand.Reader})
	ok(t, err)
	defer s.console.Close()
	r := api.NewRouter()
	ok(t, (&serveConfig{}).route(r, s, events))

	// What the server answers, by method and path.
	routes := map[string]string{
		"GET /healthz": "none", "GET /readyz": "none", "GET /metrics": "none", // answered by Ops, before the router
	}
	for _, x := range s.keys.Routes() {
		routes[x.Method+" "+x.Path] = x.Permission
	}
	permissions := map[string]string{}
	for _, x := range s.console.Routes() {
		path := api.Prefix + x.Path
		if strings.HasPrefix(x.Path, "/inbound/") {
			path = x.Path
		}
		permissions[x.Method+" "+path] = x.Permission
	}
	for method, paths := range r.List() {
		for _, path := range paths {
			switch {
			case path == "/api/v1", path == "/v1", path == "/api/v1/{path:*}", path == "/v1/{path:*}":
				// The key surfaces have routes of their own.
			case strings.HasPrefix(path, "/api/v1/events"):
				routes["POST "+path] = "app-secret"
			case path == "/t/{token:*}":
				routes["GET /t/{token}"], routes["POST /t/{token}"] = "none", "none"
			case path == "/reference/reference.css", path == "/reference/reference.js", method == "HEAD":
				// Parts of the page, and the same without a body.
			case path == "/openapi.json", path == "/reference":
				routes[method+" "+path] = "none"
			default:
				name := method + " " + path
				permission, known := permissions[name]
				if !known {
					t.Errorf("%s is registered, and the API does not know it", name)
				}
				routes[name] = permission
			}
		}
	}
	document, err := openapi.Document()
	ok(t, err)
	var doc struct {
		Paths map[string]map[string]struct {
			Permission string `json:"x-permission"`
		}
	}
	ok(t, json.Unmarshal(document, &doc))
	described := map[string]string{}
	for path, item := range doc.Paths {
		for method, op := range item {
			described[strings.ToUpper(method)+" "+path] = op.Permission
		}
	}
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		if have, known := described[name]; !known {
			t.Errorf("%s is not described", name)
		} else if have != routes[name] {
			t.Errorf("%s is described to need %q; it needs %q", name, have, routes[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		if _, known := routes[name]; !known {
			t.Errorf("%s is described, and there is no such route", name)
		}
	}
	if len(described) < 130 {
		t.Errorf("only %d operations were compared", len(described))
	}
}
