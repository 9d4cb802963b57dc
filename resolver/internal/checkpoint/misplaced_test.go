package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// madeMeanwhile is a file system in which another partition makes its directory, and the
// one above it: after a Stat of that one, or before a List of the one that has it.
type madeMeanwhile struct {
	vfs.FS
	above, made string
}

func (f madeMeanwhile) Stat(name string) (vfs.FileInfo, error) {
	info, err := f.FS.Stat(name)
	if name == f.above && err != nil {
		if err := f.MkdirAll(f.made, 0o700); err != nil {
			return nil, err
		}
	}
	return info, err
}

func (f madeMeanwhile) List(dir string) ([]string, error) {
	if dir == f.PathDir(f.above) {
		if err := f.MkdirAll(f.made, 0o700); err != nil {
			return nil, err
		}
	}
	return f.FS.List(dir)
}

// TestMisplacedBesideAnotherPartition: a directory that another partition makes meanwhile is
// not taken for a file in its place, and what partitions have in common is set aside once.
func TestMisplacedBesideAnotherPartition(t *testing.T) {
	t.Parallel()
	t.Run("the directory is made meanwhile", func(t *testing.T) {
		t.Parallel()
		above := filepath.Join(t.TempDir(), "state")
		made := filepath.Join(above, "p0", DirCheckpoints)
		c := &Dir{FS: madeMeanwhile{vfs.Default, above, made}, Root: filepath.Join(above, "p1")}
		aside, err := c.SetMisplacedAside()
		if err != nil || len(aside) > 0 {
			t.Errorf("set aside %v, %v; expected nothing", aside, err)
		}
		if _, err := os.Stat(made); err != nil {
			t.Error(err)
		}
	})
	t.Run("a file is there", func(t *testing.T) {
		t.Parallel()
		for range 100 {
			above := filepath.Join(t.TempDir(), "state")
			if err := os.WriteFile(above, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			var set atomic.Int64
			var all sync.WaitGroup
			for p := range 4 {
				all.Go(func() {
					c := &Dir{FS: vfs.Default, Root: filepath.Join(above, fmt.Sprintf("p%d", p))}
					aside, err := c.SetMisplacedAside()
					set.Add(int64(len(aside)))
					if err == nil {
						err = c.FS.MkdirAll(c.Path(DirCheckpoints), 0o700)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			entries, err := os.ReadDir(above)
			if err != nil || len(entries) != 4 || set.Load() != 1 {
				t.Fatalf("%d partitions have a directory and %d files were set aside, expected 4 and 1; %v", len(entries), set.Load(), err)
			}
		}
	})
}
