package node

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/resolver/internal/fake"
)

// TestL1StateDirectoriesLast: once a node has started, a machine that fails keeps the
// partition's directory: marks such as dirRebuild are in it, also before there is a
// checkpoint.
func TestL1StateDirectoriesLast(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	log, err := file.Open("log", file.Options{FS: fs, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	node, err := Open(context.Background(), Options{FS: fs, Dir: "state", Log: log, History: &fake.History{Rand: rand.New(rand.NewPCG(1, 1))},
		Now: func() time.Time { return time.UnixMilli(1_000_000_000_000) }, Rand: &fake.Random{Rand: rand.New(rand.NewPCG(1, 2))}})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close(context.Background())
	failed := fs.CrashClone(vfs.CrashCloneCfg{})
	if _, err := failed.Stat("state/p0"); err != nil {
		t.Error(err)
	}
}
