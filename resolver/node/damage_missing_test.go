package node

import (
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// TestMissingFileOfTheStateIsDamage: a file of the state that is gone when a checkpoint
// is to have it stops the node for a restart, as other damage does, and the next start
// has everything again.
func TestMissingFileOfTheStateIsDamage(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{checkpoint.DirKeys, checkpoint.DirSegments} {
		t.Run(dir, func(t *testing.T) {
			d := newDamageFixture(t, 1)
			fs := d.copy(t)
			h := d.history.Clone()
			n, log := d.mustOpen(t, fs, h)
			p := n.partitions[0].Load()
			names, err := fs.List(p.ckpt.Path(dir))
			if err != nil {
				t.Fatal(err)
			}
			if len(names) == 0 {
				t.Fatalf("no files in %s", dir)
			}
			for _, name := range names {
				if err := fs.Remove(p.ckpt.Path(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
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
