package statefiles

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// watchedFile notes what is dirty when the file is synced.
type watchedFile struct {
	vfs.File
	dirty, most int64
}

func (f *watchedFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.dirty += int64(n)
	f.most = max(f.most, f.dirty)
	return n, err
}

// A file in memory cannot be written back in part: it is synced instead.
func (f *watchedFile) SyncData() error { f.dirty = 0; return f.File.SyncData() }

type watchedFS struct {
	vfs.FS
	file *watchedFile
}

func (fs *watchedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	fs.file = &watchedFile{File: f}
	return fs.file, err
}

// TestLargeFilesAreWrittenBackSteadily: what is left for the sync at the end is little.
func TestLargeFilesAreWrittenBackSteadily(t *testing.T) {
	fs := &watchedFS{FS: vfs.NewMem()}
	f, err := Create(fs, "large")
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	for range 40 { // 10 MiB; the file may change what it was given
		if _, err := f.Write(bytes.Clone(want)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if most := fs.file.most; most > 3*writeBack {
		t.Errorf("%d bytes waited to be written", most)
	}
	data, err := Read(fs, "large")
	if err != nil || !bytes.Equal(data, bytes.Repeat(want, 40)) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
