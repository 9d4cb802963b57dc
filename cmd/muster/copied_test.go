package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestCopyOfALivingNode: a copy of a node's directory does not take its place while it
// runs, whether nodes share a secret or not. It does when that is frozen, which looks as
// if it had died, and that then says what has happened.
func TestCopyOfALivingNode(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"one node": nil, "several nodes": {"--cluster-secret", clusterSecret}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(append(kafkaArgs(t), "--kafka-session-timeout", "6s", "--kafka-partitions", "1"), args...)
			dir := t.TempDir()
			first := serve(t, dir, args...)
			first.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
			copied := t.TempDir()
			copyName(t, dir, copied)
			beside := launch(t, copied, args...)
			code, errs := beside.untilEnded(30*time.Second), beside.log()
			if at := strings.TrimPrefix(first.origin, "http://"); code != exitFailed || !strings.Contains(errs, "is a copy of the directory of node ") || !strings.Contains(errs, at) || !strings.Contains(errs, "--data") {
				t.Errorf("the copy: %d %s", code, errs)
			}
			if n := first.events("seen"); n != 1 {
				t.Errorf("%d events", n)
			}
			first.event(`{"event_type":"seen","user":{"email":"b@x.io"}}`)

			// Killed and started again, whoever has its old address.
			first.kill()
			first = serve(t, dir, args...)
			if n := first.events("seen"); n != 2 {
				t.Errorf("%d events after a start", n)
			}

			freeze(t, first)
			next := launch(t, copied, args...)
			next.untilReady()
			ok(t, first.Cmd.Process.Signal(syscall.SIGCONT))
			if code := first.untilEnded(60 * time.Second); code != exitFailed || !strings.Contains(first.log(), "a copy of the other") {
				t.Errorf("status %d:\n%s", code, first.log())
			}
			next.stop()
		})
	}
}

func freeze(t *testing.T, s *server) {
	t.Helper()
	ok(t, s.Cmd.Process.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { s.Cmd.Process.Signal(syscall.SIGCONT) })
}

// copyName copies of a running node what makes its directory that of the node; the rest
// comes from the log. The credentials are those of the company that is there.
func copyName(t *testing.T, from, to string) {
	t.Helper()
	ok(t, os.MkdirAll(filepath.Join(to, "data"), 0o700))
	for _, name := range []string{"data/log.json", "credentials.json"} {
		b, err := os.ReadFile(filepath.Join(from, name))
		ok(t, err)
		ok(t, os.WriteFile(filepath.Join(to, name), b, 0o600))
	}
}
