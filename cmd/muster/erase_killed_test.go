package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// TestL1KilledWhileRedacted: people are erased while events continue, and the server is
// killed at any moment of what follows: nothing of them stays in a file, every other
// acknowledged event is there (L1, L2), and comes back with state and history removed.
func TestL1KilledWhileRedacted(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	rng := rand.New(rand.NewPCG(5, 5))
	args := []string{"--checkpoint-interval", "100ms"}
	s := serve(t, dir, args...)
	sent, erased := 0, 0
	for range 10 {
		s.batch("seen", sent, 1000)
		sent += 1000
	}
	const tag = "zqerasedzq"
	for range rounds(4, 20) {
		id := s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%s-%d@people.example","first_name":"%[1]s"},"properties":{"text":"%[1]s"}}`, tag, erased))
		s.batch("seen", sent, 10)
		sent += 10
		s.console("DELETE", "/profiles/"+id, "", nil)
		erased++
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond) // the moment of a kill is random
		s.kill()
		s = serve(t, dir, args...)
		s.batch("seen", sent, 10)
		sent += 10
	}
	eventually.Succeeds(t, func() error {
		if in := holds(t, data, tag); len(in) > 0 {
			return fmt.Errorf("%v have something of the erased\n%s", in, s.log())
		}
		return nil
	})
	whole := func() {
		t.Helper()
		n, ok := 0, false
		eventually.Holds(t, "history is whole", func() bool { n, ok = s.exported(); return ok })
		if n != sent {
			t.Fatalf("%d events of %d in history\n%s", n, sent, s.log())
		}
	}
	whole()
	s.stop()
	ok(t, os.RemoveAll(filepath.Join(data, "state")))
	found, err := filepath.Glob(filepath.Join(data, "history.duckdb*"))
	ok(t, err)
	for _, name := range found {
		ok(t, os.RemoveAll(name))
	}
	s = serve(t, dir, args...)
	whole()
	if in := holds(t, data, tag); len(in) > 0 {
		t.Errorf("rebuilt: %v have something of the erased", in)
	}
	s.stop()
}
