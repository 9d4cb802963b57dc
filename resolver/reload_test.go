package resolver

import (
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/state"
)

// durable is a recorder whose machine can be read back from a checkpoint.
type durable struct {
	*recorder
	ckpt checkpoint.Dir
}

func newDurable(t testing.TB, settings Settings) *durable {
	t.Helper()
	return newDurableUnder(t, settings, ApplyVersion)
}

// newDurableUnder is newDurable with an account that a build with older rules made.
func newDurableUnder(t testing.TB, settings Settings, applyVersion int) *durable {
	t.Helper()
	d := &durable{&recorder{t: t, now: 1_000_000_000_000}, checkpoint.Dir{FS: vfs.NewMem(), Root: "p"}}
	if err := d.ckpt.FS.MkdirAll(d.ckpt.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := d.ckpt.Prepare(); err != nil {
		t.Fatal(err)
	}
	d.open(checkpoint.Manifest{})
	t.Cleanup(func() { d.close() })
	b := testBootstrap(settings)
	b.ApplyVersion = applyVersion
	d.command(CommandBootstrap, b)
	return d
}

func (d *durable) open(f checkpoint.Manifest) {
	d.t.Helper()
	if err := d.ckpt.Restore(f); err != nil {
		d.t.Fatal(err)
	}
	s, err := state.Open(d.ckpt.FS, d.ckpt.Path(checkpoint.DirLive), 1<<20, state.NewPebbleLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		d.t.Fatal(err)
	}
	var runs []*dedup.Run
	for _, name := range f.Runs {
		r, err := dedup.OpenRun(d.ckpt.FS, d.ckpt.Path(checkpoint.DirKeys, name), name)
		if err != nil {
			d.t.Fatal(err)
		}
		runs = append(runs, r)
	}
	old := d.m
	if d.m, err = loadMachine(s, f, nil, runs); err != nil {
		d.t.Fatal(err)
	}
	if old != nil {
		for _, id := range old.records.List() {
			d.m.records.Add(id)
		}
	}
	if err = d.m.adoptSegments(d.ckpt.ReadSegments(f.Segments)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *durable) close() {
	d.t.Helper()
	for _, r := range d.m.idempotencyKeys.Runs {
		_ = r.Close()
	}
	if err := d.m.store.DB.Close(); err != nil {
		d.t.Fatal(err)
	}
}

// reload writes a checkpoint and continues with what is read back from it, which
// must be the same state (R1).
func (d *durable) reload() {
	d.t.Helper()
	d.command(access.CommandSessionDelete, access.SessionDelete{}) // no two checkpoints at one offset
	d.reopen()
}

// reopen is reload at an offset that has no checkpoint yet.
func (d *durable) reopen() {
	d.t.Helper()
	before := hashOf(d.t.(*testing.T), d.m)
	f := d.m.Freeze()
	w, err := d.ckpt.Write(f, d.m.store.DB, nil, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.m.Thaw(w)
	if got := hashOf(d.t.(*testing.T), d.m); got != before {
		d.t.Fatal("R1: writing a checkpoint changed the state")
	}
	d.close()
	list, err := d.ckpt.List()
	if err != nil {
		d.t.Fatal(err)
	}
	saved, _, err := d.ckpt.ReadManifest(list[len(list)-1])
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.ckpt.Prepare(); err != nil {
		d.t.Fatal(err)
	}
	d.open(saved)
	if got := hashOf(d.t.(*testing.T), d.m); got != before {
		d.t.Fatal("R1: the state read back from a checkpoint differs")
	}
}
