package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/fake"
)

// TestErasedPersonLeavesOlderCheckpoints: checkpoints of before an erasure, as a restore
// with a later log leaves them, do not keep the person, though nothing else happens. Nor do
// those that this start, or one before, has set aside.
func TestErasedPersonLeavesOlderCheckpoints(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, fs vfs.FS, dir string, oldest, newest string){
		"whole": func(*testing.T, vfs.FS, string, string, string) {},
		"damaged": func(t *testing.T, fs vfs.FS, dir string, _, newest string) {
			fake.DamageFile(t, fs, fs.PathJoin(dir, newest, checkpoint.FileManifest), fake.DamageKinds[4])
		},
		"set aside before": func(t *testing.T, fs vfs.FS, dir string, oldest, _ string) {
			if _, err := vfs.Clone(fs, fs, fs.PathJoin(dir, oldest), fs.PathJoin(dir, checkpoint.DamagedPrefix+oldest)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) { erasedLeavesOlder(t, damage) })
	}
}

func erasedLeavesOlder(t *testing.T, damage func(t *testing.T, fs vfs.FS, dir string, oldest, newest string)) {
	ctx := context.Background()
	fs := vfs.NewMem()
	history := &fake.History{Rand: rand.New(rand.NewPCG(1, 3))}
	n, halt := eraseNode(t, fs, history)
	if _, err := n.Command(ctx, testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	event := func(email string) eventlog.Event {
		return eventlog.Event{Type: []byte("bought"), Email: []byte(email)}
	}
	gone := submitEvents(t, n, event("gone-person@x.io"))[0].Profile
	if err := n.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	submitEvents(t, n, event("stays-here@x.io"))
	if err := n.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if _, err := vfs.Clone(fs, fs, "state/p0/"+checkpoint.DirCheckpoints, "kept"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Command(ctx, testAccount, resolver.CommandContactErase, resolver.ContactErase{ID: gone.String()}); err != nil {
		t.Fatal(err)
	}
	await(t, n)
	halt()
	if err := fs.RemoveAll("state"); err != nil {
		t.Fatal(err)
	}
	if err := fs.MkdirAll("state/p0", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := fs.Rename("kept", "state/p0/"+checkpoint.DirCheckpoints); err != nil {
		t.Fatal(err)
	}
	names, err := fs.List("state/p0/" + checkpoint.DirCheckpoints)
	if err != nil || len(names) != checkpoint.Kept {
		t.Fatal(names, err)
	}
	slices.Sort(names)
	damage(t, fs, "state/p0/"+checkpoint.DirCheckpoints, names[0], names[1])
	if !fileHolds(t, fs, "gone-person@x.io") {
		t.Fatal("the test does not find what is stored")
	}
	_, halt = eraseNode(t, fs, history)
	defer halt()
	eventually.Succeeds(t, func() error {
		if fileHolds(t, fs, "gone-person@x.io") {
			return errors.New("the erased person is in a file still")
		}
		return nil
	})
	eventually.Succeeds(t, func() error {
		names, err := fs.List("state/p0/" + checkpoint.DirCheckpoints)
		if err == nil && len(names) != checkpoint.Kept {
			err = fmt.Errorf("checkpoints %v", names)
		}
		return err
	})
	if !fileHolds(t, fs, "stays-here@x.io") {
		t.Error("L1: what stays is gone")
	}
}

// downHistory takes no rows while it is down.
type downHistory struct {
	*fake.History
	down atomic.Bool
}

func (h *downHistory) Append(ctx context.Context, b *query.Batch) error {
	if h.down.Load() {
		return errors.New("down")
	}
	return h.History.Append(ctx, b)
}

// TestErasedPersonLeavesRowsOfCheckpoints: a checkpoint from behind an erasure that history was
// down for has the person's events among the rows for history. It does not stay either.
func TestErasedPersonLeavesRowsOfCheckpoints(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fs := vfs.NewMem()
	history := &downHistory{History: &fake.History{Rand: rand.New(rand.NewPCG(1, 3))}}
	n, halt := eraseNode(t, fs, history)
	defer halt()
	if _, err := n.Command(ctx, testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	history.down.Store(true)
	gone := submitEvents(t, n, eventlog.Event{Type: []byte("bought"), Email: []byte("gone-person@x.io"), Properties: []byte(`{"what":"gone-thing"}`)})[0].Profile
	if _, err := n.Command(ctx, testAccount, resolver.CommandContactErase, resolver.ContactErase{ID: gone.String()}); err != nil {
		t.Fatal(err)
	}
	if err := n.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if !fileHolds(t, fs, "gone-thing") {
		t.Fatal("the test does not find what is stored")
	}
	history.down.Store(false)
	await(t, n)
	eventually.Succeeds(t, func() error {
		if fileHolds(t, fs, "gone-thing") {
			return errors.New("what the person did is in a file")
		}
		return nil
	})
}
