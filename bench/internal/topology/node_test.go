package topology

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
)

// startScript starts a node that says it is ready, and continues with the rest of
// its script when proceed is called: a script that continued at once could end before
// its start was seen.
func startScript(t *testing.T, rest string) (n *Node, proceed func()) {
	t.Helper()
	dir := t.TempDir()
	binary, started := filepath.Join(dir, "muster"), filepath.Join(dir, "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	// serve --data DIR --listen HOST:PORT
	if err := os.WriteFile(binary, []byte("#!/bin/sh\necho ready on $5\nread line < "+started+"\n"+rest+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := NewCluster(ClusterOptions{Dir: filepath.Join(dir, "nodes"), Binary: binary, Nodes: 1, Partitions: 1, Timeout: time.Minute, Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c.Nodes[0], func() {
		if err := os.WriteFile(started, []byte("\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A node may end by itself only if it may lose its partitions, and says so.
func TestANodeThatEndsByItselfIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		rest          string
		mayEnd, wrong bool
	}{
		"it crashed":             {"exit 1", false, true},
		"it crashed when frozen": {"exit 1", true, true},
		"no node took over":      {"echo another has taken over", false, true},
		"another took over":      {"echo another has taken over", true, false},
	} {
		n, proceed := startScript(t, c.rest)
		proceed()
		<-n.running().Done()
		if c.mayEnd {
			n.MayEnd()
		}
		if err := n.Kill(); errors.Is(err, child.ErrExited) != c.wrong || !c.wrong && err != nil {
			t.Errorf("%s: error %v", name, err)
		}
	}
	n, proceed := startScript(t, "exec sleep 60")
	proceed()
	if err := errors.Join(n.Kill(), n.Kill()); err != nil || n.running() != nil {
		t.Errorf("killing a node that runs, and again: %v", err)
	}
}
