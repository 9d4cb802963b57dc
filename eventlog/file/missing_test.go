package file

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestMissingNamesEachFile: whatever file of the log is removed while it is in use is named.
func TestMissingNamesEachFile(t *testing.T) {
	fsys := vfs.NewMem()
	l := mustOpen(t, "log", smallOptions(fsys))
	defer mustClose(t, l)
	for i := range int64(200) {
		mustAppend(t, l, 0, payload(i, 150))
	}
	if err := l.Trim(0, 60); err != nil {
		t.Fatal(err)
	}
	if gone, err := l.Missing(); err != nil || len(gone) != 0 {
		t.Fatalf("with all files there: %v %v", gone, err)
	}
	files := snapshot(t, fsys, "log")
	if len(files) < 5 {
		t.Fatalf("%d files are too few for this test", len(files))
	}
	for path := range files {
		if fsys.PathBase(path) == "LOCK" { // held, and of no record
			continue
		}
		if err := fsys.Rename(path, "away"); err != nil {
			t.Fatal(err)
		}
		if gone, err := l.Missing(); err != nil || len(gone) != 1 || asCorrupt(gone[0]).File != path {
			t.Errorf("without %s: %v %v", path, gone, err)
		}
		if err := fsys.Rename("away", path); err != nil {
			t.Fatal(err)
		}
	}
}
