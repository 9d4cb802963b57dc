package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// batch sends a batch of events of a type, of ten thousand people in turn.
func (s *server) batch(kind string, first, n int) {
	s.t.Helper()
	var b strings.Builder
	b.WriteString(`{"events":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"event_type":%q,"user":{"email":"p%d@x.io"},"properties":{"n":%d}}`, kind, (first+i)%10_000, first+i)
	}
	b.WriteString(`]}`)
	var a struct{ Accepted int }
	if status := s.call("POST", "/api/v1/events/batch", b.String(), &a, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret); status != 202 || a.Accepted != n {
		s.t.Fatalf("batch: %d, %d accepted", status, a.Accepted)
	}
}

// untilRebuildCheckpoint waits until the rebuilding of history has left a checkpoint
// of its own, or is done.
func (s *server) untilRebuildCheckpoint(data string) {
	s.t.Helper()
	eventually.Holds(s.t, "a checkpoint of the rebuilding", func() bool {
		names, err := filepath.Glob(filepath.Join(data, "state", "p0", "rebuild", "checkpoints", "0*", "MANIFEST"))
		ok(s.t, err)
		return len(names) > 0 || strings.Contains(s.log(), "history is complete again")
	})
}

// exported counts the events that the export writes, each once, when history has all;
// ok is false while it is being rebuilt, and the answer then says so.
func (s *server) exported() (n int, ok bool) {
	s.t.Helper()
	var in struct{ Data struct{ Token string } }
	if s.token == "" {
		s.call("POST", api.Prefix+"/session", fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, s.creds.ConsolePassword), &in)
		s.token = in.Data.Token
	}
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.origin+api.Prefix+"/export/events", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	switch {
	case res.StatusCode == http.StatusServiceUnavailable:
		if !strings.Contains(string(b), "history is being rebuilt from the log: ") && !strings.Contains(string(b), "history is not available") || res.Header.Get("Retry-After") == "" {
			s.t.Fatalf("while history is rebuilt: %s, Retry-After %q", b, res.Header.Get("Retry-After"))
		}
		return 0, false
	case err != nil || res.StatusCode != http.StatusOK:
		return 0, false // damage was met in the middle of the answer
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		at := strings.Index(line, `"properties":`)
		key := line[at : strings.Index(line[at:], "}")+at]
		if seen[key] {
			s.t.Fatalf("exported twice: %s", line)
		}
		seen[key] = true
	}
	return len(seen), true
}

// TestL2KilledWhileHistoryIsRebuilt: history is lost at every other start, events go
// on arriving, and the server is killed at any moment of the rebuilding: in the end
// history has each event once (L1, L2). A rebuilding that was cut off continues from its
// own checkpoint only while history has the rows below that. Until history is complete
// requests that need it get a 503 that says so.
func TestL2KilledWhileHistoryIsRebuilt(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	kills := 4
	if testlevel.Long() {
		kills = 20
	}
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(7, 7))
	// Small generations: the rebuilding leaves checkpoints, too.
	args := []string{"--checkpoint-interval", "100ms", "--generation-bytes", "1MiB"}
	s := serve(t, dir, args...)
	sent := 0
	for range 40 {
		s.batch("seen", sent, 1000)
		sent += 1000
	}
	// History has all rows, and the newest checkpoint has not.
	eventually.Holds(t, "history is asked", func() bool { _, whole := s.exported(); return whole })
	s.batch("seen", sent, 10)
	sent += 10
	s.stop()
	s = serve(t, dir, args...)
	wentOn := 0
	kill := func() {
		s.kill()
		if strings.Contains(s.log(), "the rebuilding of history continues where it was cut off") {
			wentOn++
		}
	}
	// A kill may find the rebuilding already done, on a busy machine every one of a few:
	// until one did not, the log grows and the kills continue.
	for i := 0; i < kills || wentOn == 0 && i < 10*kills; i++ {
		kill()
		for _, name := range []string{"history.duckdb", "history.duckdb.wal"} {
			if i%2 == 1 {
				break // it has what was rebuilt before the kill
			}
			if err := os.Remove(filepath.Join(dir, "data", name)); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		s = serve(t, dir, args...)
		s.batch("seen", sent, 10)
		sent += 10
		for range 20 {
			if i < kills {
				break
			}
			s.batch("seen", sent, 1000)
			sent += 1000
		}
		if i%2 == 0 {
			s.untilRebuildCheckpoint(filepath.Join(dir, "data"))
		}
		time.Sleep(time.Duration(rng.IntN(1+i%2*400)) * time.Millisecond) // the moment of a kill is random
	}
	kill()
	s = serve(t, dir)
	n, whole := 0, false
	eventually.Holds(t, "history is whole", func() bool { n, whole = s.exported(); return whole })
	if n != sent {
		t.Fatalf("%d events in history, want %d\n%s", n, sent, s.log())
	}
	if n := s.events("seen"); n != sent {
		t.Errorf("%d events in the state, want %d", n, sent)
	}
	s.stop()
	if wentOn == 0 {
		t.Error("no rebuilding continued from a checkpoint of its own")
	}
}
