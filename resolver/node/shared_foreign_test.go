package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/fake"
)

// TestSharedCheckpointsOfAnotherLog: a place that has checkpoints of a log of the same name,
// such as a topic that was deleted since, spoils no directory. A node that has a checkpoint of
// the log continues with that, and one that has none is refused; both name the place.
func TestSharedCheckpointsOfAnotherLog(t *testing.T) {
	t.Parallel()
	old := newPair(t)
	a := old.open("a")
	old.events(a, 3)
	old.stop(a)
	shared := old.shelf.has(0)

	p := newPair(t)
	p.id, p.opened = 100, 100 // other records
	alone := func(o *Options) { o.Shared = nil }
	n, err := p.try("b", alone)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Command(context.Background(), testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	p.stop(n)
	keep(t, p.fs, "b", "older") // a state that is older than what is shared
	keep(t, p.fs, "b", "member")
	if n, err = p.try("b", alone); err != nil {
		t.Fatal(err)
	}
	p.events(n, 10)
	want := p.state(n)
	p.stop(n)

	p.shelf = old.shelf
	if n, err := p.try("none", nil); !errors.Is(err, checkpoint.ErrOtherLog) || !strings.Contains(err.Error(), "the shelf") || !strings.Contains(err.Error(), "another place for --checkpoints") || strings.Contains(err.Error(), "away") {
		t.Fatalf("%v %v", n, err)
	}
	if left := fake.FilesBelow(t, p.fs, "none"); len(left) > 0 {
		t.Errorf("the refused start left %v", left)
	}
	var lines strings.Builder
	logged := func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(io.Writer(&lines), nil)) }
	if n, err = p.try("older", logged); err != nil {
		t.Fatal(err)
	}
	if got, st := p.state(n), n.Stats()[0]; got != want || st.Records == 0 {
		t.Errorf("R1: %s after %d records, want %s", got, st.Records, want)
	}
	if st := n.Stats()[0]; !st.SharedFailing || !strings.Contains(lines.String(), "level=ERROR") || !strings.Contains(lines.String(), "the shelf") {
		t.Errorf("%+v %s", st, lines.String())
	}
	p.stop(n)

	// Where other nodes have the partition, what is here stays, since nobody else has it.
	member := func(o *Options) { o.Owned = []int{} }
	if n, err = p.try("member", member); err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprint(fake.FilesBelow(t, p.fs, "member"))
	if err := n.Forget(context.Background(), 0); !errors.Is(err, checkpoint.ErrOtherLog) || !strings.Contains(err.Error(), "the shelf") {
		t.Error(err)
	}
	if after := fmt.Sprint(fake.FilesBelow(t, p.fs, "member")); after != before {
		t.Errorf("files changed: %s became %s", before, after)
	}
	p.stop(n)
	if have := old.shelf.has(0); !slices.Equal(have, shared) {
		t.Errorf("%v is shared beside what another log has there: %v", have, shared)
	}
}

// TestSharedCheckpointOfLostRecords: where the shared checkpoint went on from the node's own,
// the log has lost records since, and the node's own is refused with it.
func TestSharedCheckpointOfLostRecords(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	a := p.open("a")
	p.events(a, 2)
	p.stop(a)
	keep(t, p.fs, "a", "older")
	keep(t, p.fs, "log", "older log")
	a = p.open("a")
	p.events(a, 2)
	p.stop(a)

	// The log as it was before, and went on without what is lost.
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(p.fixture.log.Close())
	ok(p.fs.RemoveAll("log"))
	ok(p.fs.Rename("older log", "log"))
	p.openLog(t)
	p.log = &sharedLog{Log: p.fixture.log}
	p.id, p.history = 100, &fake.History{Rand: p.history.Rand}
	n, err := p.try("other", func(o *Options) { o.Shared = nil })
	ok(err)
	p.events(n, 8)
	p.stop(n)
	before := fmt.Sprint(fake.FilesBelow(t, p.fs, "older"))
	if n, err := p.try("older", nil); !errors.Is(err, checkpoint.ErrOtherLog) || !strings.Contains(err.Error(), "the shelf") {
		t.Fatalf("%v %v", n, err)
	}
	if after := fmt.Sprint(fake.FilesBelow(t, p.fs, "older")); after != before {
		t.Errorf("the refused start changed files: %s became %s", before, after)
	}
}

// keep copies a directory.
func keep(t *testing.T, fs vfs.FS, from, to string) {
	t.Helper()
	if _, err := vfs.Clone(fs, fs, from, to, vfs.CloneSync); err != nil {
		t.Fatal(err)
	}
}
