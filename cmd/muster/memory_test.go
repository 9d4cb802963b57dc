package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testlevel"
)

// metric reads one number of GET /metrics.
func (s *server) metric(name string) float64 {
	s.t.Helper()
	res, err := http.Get(s.origin + "/metrics")
	ok(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(s.t, err)
	for line := range strings.Lines(string(b)) {
		if rest, is := strings.CutPrefix(line, name+" "); is {
			v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
			ok(s.t, err)
			return v
		}
	}
	s.t.Fatalf("no metric %s", name)
	return 0
}

// TestQ1BodiesOfAllSurfacesAreBounded: hundreds of connections that send all but the
// end of a large body, with a key or without any credentials, take no more than
// --max-inflight-bytes, which the gauge shows; the service continues.
func TestQ1BodiesOfAllSurfacesAreBounded(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	const limit, body = 32 << 20, 1_040_000
	s := serve(t, t.TempDir(), "--max-inflight-bytes", "32MiB")
	before := s.metric("process_resident_memory_bytes")
	part := strings.Repeat("x", body-100)
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	open := func(n int, path, headers string) {
		for range n {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.origin, "http://"))
			ok(t, err)
			conns = append(conns, c)
			go fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: m\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, headers, body, part)
		}
	}
	open(200, "/console/api/v1/session", "")
	open(110, "/api/v1/contacts", "Authorization: Bearer "+s.creds.APIKey+"\r\n")
	most, resident := 0.0, 0.0
	// For a while, and until there is much: bodies come slowly on a busy machine. The most
	// in this while is what is measured.
	for begun := time.Now(); time.Since(begun) < 4*time.Second || most < limit/2 && time.Since(begun) < time.Minute; time.Sleep(50 * time.Millisecond) {
		most, resident = max(most, s.metric("muster_ingest_in_flight_bytes")), max(resident, s.metric("process_resident_memory_bytes"))
	}
	if most < limit/2 || most > limit {
		t.Errorf("%.0f bytes in flight at most, of %d", most, limit)
	}
	if grown := resident - before; grown > 4*limit {
		t.Errorf("the process grew by %.0f bytes", grown)
	}
	// Signing in has its own room.
	res, err := http.Post(s.origin+"/console/api/v1/session", "application/json",
		strings.NewReader(fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, s.creds.ConsolePassword)))
	ok(t, err)
	defer res.Body.Close()
	if res.StatusCode != 200 {
		t.Errorf("sign-in is answered %d", res.StatusCode)
	}
	t.Logf("%.1f MB in flight, the process grew by %.1f MB", most/1e6, (resident-before)/1e6)
}
