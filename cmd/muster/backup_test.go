package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestL1BackupAndRestore: a directory that was killed, backed up and restored has
// everything that was acknowledged; one in use is not backed up, and none is
// restored over.
func TestL1BackupAndRestore(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	dir, store := t.TempDir(), "file://"+filepath.ToSlash(t.TempDir())
	data := filepath.Join(dir, "data")
	s := serve(t, dir, "--checkpoint-interval", "100ms")
	for i := range 30 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d@x.io"},"properties":{"n":%d}}`, i%10, i))
	}
	if code, out, errs := muster(t, "", "backup", "--data", data, "--to", store); code != 0 || !strings.Contains(out, "backup 2") {
		t.Errorf("a directory in use: %d %s", code, errs)
	}
	s.kill()

	// Backups and restores that are killed leave nothing that is taken for one.
	r := rand.New(rand.NewPCG(1, 1))
	killed := func(args ...string) {
		cmd := command(args...)
		ok(t, cmd.Start())
		time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond) // the moment of a kill is random
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for range 3 {
		killed("backup", "--data", data, "--to", store)
	}
	code, out, errs := muster(t, "", "backup", "--data", data, "--to", store)
	if code != 0 || !strings.Contains(out, "backup 2") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	lost := t.TempDir()
	ok(t, os.Rename(filepath.Join(dir, "credentials.json"), filepath.Join(lost, "credentials.json")))
	ok(t, os.RemoveAll(dir))
	restored := filepath.Join(lost, "data")
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(restored, name))
		return err == nil
	}
	for range 5 {
		killed("restore", "--from", store, "--data", restored)
		if there("RESTORING") {
			if code, _, errs := muster(t, "", "serve", "--data", restored, "--listen", "127.0.0.1:0"); code != 1 || !strings.Contains(errs, "muster restore again") {
				t.Fatalf("served from a part: %d %s", code, errs)
			}
		} else if there("log") {
			break // it was through
		}
	}
	if there("RESTORING") || !there("log") {
		code, _, errs := muster(t, "", "restore", "--from", store, "--data", restored)
		if code != 0 {
			t.Fatalf("%d %s", code, errs)
		}
	}
	if code, _, errs := muster(t, "", "restore", "--from", store, "--data", restored); code != 1 || !strings.Contains(errs, "not empty") {
		t.Errorf("restored over a directory: %d %s", code, errs)
	}
	s = serve(t, lost)
	if n := s.events("seen"); n != 30 {
		t.Errorf("%d events", n)
	}
	if n := s.preview(`{"kind":"activity","event":"seen","count":{"op":">=","value":3}}`); n != 10 {
		t.Errorf("%d profiles", n)
	}
	s.event(`{"event_type":"seen","user":{"email":"new@x.io"}}`)
	s.stop()
	if code, out, errs := muster(t, "", "restore", "--from", store, "--list"); code != 0 || !strings.Contains(out, "files") {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

// TestR1CheckpointsAreShared: a node without state fetches what another left, and
// has the same.
func TestR1CheckpointsAreShared(t *testing.T) {
	t.Parallel()
	inModes(t, sharesCheckpoints)
}

func sharesCheckpoints(t *testing.T, args []string) {
	t.Parallel()
	dir := t.TempDir()
	args = append(args, "--checkpoints", "file://"+filepath.ToSlash(t.TempDir()))
	s := serve(t, dir, args...)
	for i := range 20 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d@x.io"}}`, i))
	}
	s.stop()
	lost := "data" // all of it, where the log is in Kafka
	if args[0] == "--checkpoints" {
		lost = "data/state"
	}
	ok(t, os.RemoveAll(filepath.Join(dir, filepath.FromSlash(lost))))
	s = serve(t, dir, args...)
	if n := s.preview(`{"kind":"activity","event":"seen"}`); n != 20 {
		t.Errorf("%d profiles", n)
	}
	if !strings.Contains(s.log(), "fetched a shared checkpoint") || strings.Contains(s.log(), "replaying") {
		t.Errorf("it was not fetched, or not the newest one:\n%s", s.log())
	}
	s.stop()

	// Those of another log are refused.
	other := t.TempDir()
	code, _, errs := muster(t, "", append([]string{"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(other, "data")}, args[len(args)-2:]...)...)
	if code != 1 || !strings.Contains(errs, "belong to another log") {
		t.Errorf("%d %s", code, errs)
	}
}
