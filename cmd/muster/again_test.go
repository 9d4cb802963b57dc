package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestL1DamageWhileServing: files of the state that are damaged while the server has them
// open, in all checkpoints as well, cost a pause: the same process starts again, makes
// the state again from the log and has everything that was acknowledged (L1).
func TestL1DamageWhileServing(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	ids := map[string]bool{}
	for i := range 200 {
		ids[s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"p%d@x.io","attributes":{"n":%d}}}`, i, i))] = true
	}
	s.stop()
	// Nothing is in memory after a start: each profile is read from the store.
	s = serve(t, dir)
	tables, err := filepath.Glob(filepath.Join(dir, "data", "state", "p0", "live", "*.sst"))
	ok(t, err)
	if len(tables) == 0 {
		t.Fatal("no tables")
	}
	for _, path := range tables {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		ok(t, err)
		info, err := f.Stat()
		ok(t, err)
		_, err = f.WriteAt(make([]byte, info.Size()), 0)
		ok(t, errors.Join(err, f.Close()))
	}
	s.token = ""
	var in struct{ Data struct{ Token string } }
	s.call("POST", "/console/api/v1/session", fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, s.creds.ConsolePassword), &in)
	for id := range ids {
		if s.call("GET", "/console/api/v1/profiles/"+id, "", nil, "Authorization", "Bearer "+in.Data.Token) != 200 {
			break
		}
	}
	s.origin = ""
	s.untilReady()
	if n := s.events("seen"); n != 200 {
		t.Errorf("%d events, want 200", n)
	}
	for i := range 200 {
		var p struct{ Attributes struct{ N int } }
		s.console("GET", fmt.Sprintf("/profiles?email=p%d@x.io", i), "", &p)
		if p.Attributes.N != i {
			t.Errorf("profile %d has %d", i, p.Attributes.N)
		}
	}
	if log := s.log(); !strings.Contains(log, "starting again to rebuild damaged files") || !strings.Contains(log, "rebuilding the state from the beginning of the log") || strings.Contains(log, "goroutine ") {
		t.Errorf("%s", log)
	}
	s.stop()
}
