package resolver

import (
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"log/slog"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkLoad loads the newest checkpoint of a partition's directory, named by
// MUSTER_PARTITION_DIR, and says what its phases took. The directory is used as a
// node would: keep a copy.
func BenchmarkLoad(b *testing.B) {
	dir := os.Getenv("MUSTER_PARTITION_DIR")
	if dir == "" {
		b.Skip("MUSTER_PARTITION_DIR is not set")
	}
	c := checkpoint.Dir{FS: vfs.Default, Root: dir}
	log := slog.New(slog.NewTextHandler(b.Output(), nil))
	for b.Loop() {
		if err := c.Prepare(); err != nil {
			b.Fatal(err)
		}
		offsets, err := c.List()
		if err != nil || len(offsets) == 0 {
			b.Fatal(offsets, err)
		}
		f, ids, err := c.ReadManifest(offsets[len(offsets)-1])
		if err != nil {
			b.Fatal(err)
		}
		c.Took = checkpoint.NewPhases()
		m, err := LoadCheckpoint(&c, f, ids, 64<<20, slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		log.Info("loaded", c.Took.Attr())
		b.StopTimer()
		if err := closeAll(m.store, m.idempotencyKeys.Runs); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
