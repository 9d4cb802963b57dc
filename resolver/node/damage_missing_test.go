package node

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/checkpoint"
)

// TestMissingFileOfTheStateIsDamage: files of the state that are gone when a checkpoint is
// to have them, and the directory of the store that is gone, stop the node for a restart, as
// other damage does, and the next start has everything again.
func TestMissingFileOfTheStateIsDamage(t *testing.T) {
	t.Parallel()
	empty := func(t *testing.T, fs vfs.FS, dir string) {
		names, err := fs.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 {
			t.Fatalf("no files in %s", dir)
		}
		for _, name := range names {
			if err := fs.Remove(fs.PathJoin(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(t *testing.T, fs vfs.FS, dir string) {
		if err := fs.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, dir string
		damage    func(t *testing.T, fs vfs.FS, dir string)
	}{
		{"keys emptied", checkpoint.DirKeys, empty},
		{"segments emptied", checkpoint.DirSegments, empty},
		{"live removed", checkpoint.DirLive, remove},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDamageFixture(t, 1)
			fs := d.copy(t)
			h := d.history.Clone()
			n, log := d.mustOpen(t, fs, h)
			p := n.partitions[0].Load()
			c.damage(t, fs, p.ckpt.Path(c.dir))
			d.submit(t, rand.New(rand.NewPCG(1, 9)), n, 100)
			p.checkpoint.request()
			select {
			case <-n.Failed():
			case <-time.After(time.Minute):
				t.Fatal("the node continues")
			}
			if err := n.Err(); !errors.Is(err, ErrStateDamaged) {
				t.Errorf("%v", err)
			}
			_ = n.Close(t.Context())
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			n, log = d.mustOpen(t, fs, h)
			if err := n.Checkpoint(); err != nil {
				t.Error(err)
			}
			d.stop(t, n, log)
		})
	}
}
