package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query/cache"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

// slowCopy is a history whose copies take as long as what is done meanwhile.
type slowCopy struct {
	cache.Backend
	meanwhile func()
}

func (s *slowCopy) CopyTo(ctx context.Context, path string) error {
	s.meanwhile()
	return s.Backend.(copier).CopyTo(ctx, path)
}

// TestBackupOfALogThatIsToBeTrimmed: whatever checkpoints are written while history is copied
// for a backup, its log continues one of those that it has, so that what is restored starts.
// The log is trimmed after it.
func TestBackupOfALogThatIsToBeTrimmed(t *testing.T) {
	ctx, fs := t.Context(), vfs.Default
	o := Options{Dir: t.TempDir(), HistoryLimits: HistoryLimits{HistoryMemory: 128 << 20, HistoryThreads: 1}}
	e := &Engine{dir: o.Dir}
	closed := false
	stop := func() {
		t.Helper()
		if err := e.Close(context.Background()); err != nil && !closed {
			t.Fatal(err)
		}
		closed = true
	}
	defer stop()
	if err := e.openFiles(ctx, fs, o); err != nil {
		t.Fatal(err)
	}
	back, err := e.openBackend(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	history := &slowCopy{Backend: back}
	if e.History, err = cache.New(history, cache.Options{}); err != nil {
		t.Fatal(err)
	}
	e.Node, err = node.Open(ctx, node.Options{FS: fs, Dir: filepath.Join(o.Dir, "state"), Log: e.Log, LogName: e.identity, History: e.History,
		Now: time.Now, Rand: rand.Reader, TrimLog: true, Trimming: &e.trimming, CheckpointInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	start := func() int64 {
		t.Helper()
		start, _, err := e.file.Bounds(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		return start
	}
	// Each checkpoint is of a segment of its own. The log is trimmed to the older of two.
	checkpoints := func() {
		t.Helper()
		for range 3 {
			env := eventlog.Envelope{Kind: eventlog.KindContinue, StampMs: time.Now().UnixMilli()}
			_, err := io.ReadFull(rand.Reader, env.ID[:])
			var out resolver.Outcome
			if err := errors.Join(err, e.file.Roll(0), e.Node.Submit(ctx, 0, env.Append(nil), &out), e.Node.Checkpoint()); err != nil {
				t.Fatal(err)
			}
		}
	}
	checkpoints()
	before := start()
	if before == 0 {
		t.Fatal("the log was not trimmed")
	}
	history.meanwhile = checkpoints
	r, err := e.link(ctx, filepath.Join(o.Dir, BackupDir))
	if err != nil {
		t.Fatal(err)
	}
	last, err := r.Last()
	if err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(t.TempDir(), "restored")
	for _, f := range append(r.Sources, last...) {
		b, err := os.ReadFile(f.From)
		if f.Size >= 0 {
			b = b[:f.Size]
		}
		path := filepath.Join(restored, filepath.FromSlash(f.Path))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	checkpoints()
	if start() == before {
		t.Error("the log is not trimmed after a backup")
	}
	stop()
	o.Dir = restored
	again, err := Open(ctx, o)
	if err != nil {
		t.Fatalf("what is restored does not start: %v", err)
	}
	if err := again.Close(ctx); err != nil {
		t.Error(err)
	}
}
