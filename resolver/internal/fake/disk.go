package fake

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// CrashFS is a disk that can be cloned as a crash leaves it. MemFS locks itself up
// when that happens during a Link, so the two keep apart.
type CrashFS struct {
	*vfs.MemFS
	links sync.RWMutex
}

func (fs *CrashFS) Link(old, now string) error {
	fs.links.RLock()
	defer fs.links.RUnlock()
	return fs.MemFS.Link(old, now)
}

// Crash returns the disk as a crash at this moment leaves it.
func (fs *CrashFS) Crash(rng *rand.Rand) *CrashFS {
	fs.links.Lock()
	defer fs.links.Unlock()
	return &CrashFS{MemFS: fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})}
}

// ScarceFS is a file system that is full while Full is set.
type ScarceFS struct {
	vfs.FS
	Full *atomic.Bool
	// Room are the bytes of tables that are written nevertheless.
	Room *atomic.Int64
}

// NewScarceFS is a file system that has space.
func NewScarceFS(fs vfs.FS) ScarceFS { return ScarceFS{fs, new(atomic.Bool), new(atomic.Int64)} }

func (s ScarceFS) err() error {
	if s.Full.Load() {
		return &os.PathError{Op: "write", Path: "disk", Err: syscall.ENOSPC}
	}
	return nil
}

func (s ScarceFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := s.err(); err != nil && s.Room.Load() <= 0 {
		return nil, err
	}
	f, err := s.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	return &scarceFile{f, s, name}, nil
}

func (s ScarceFS) Link(from, to string) error {
	if err := s.err(); err != nil {
		return err
	}
	return s.FS.Link(from, to)
}

type scarceFile struct {
	vfs.File
	fs   ScarceFS
	name string
}

func (f *scarceFile) Write(b []byte) (int, error) {
	if err := f.fs.err(); err != nil && (!strings.HasSuffix(f.name, ".sst") || f.fs.Room.Add(-int64(len(b))) < 0) {
		return 0, err
	}
	return f.File.Write(b)
}

// FilesBelow lists the files of a directory and those below, in order.
func FilesBelow(t *testing.T, fs vfs.FS, dir string) (out []string) {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, n := range names {
		path := fs.PathJoin(dir, n)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			out = append(out, FilesBelow(t, fs, path)...)
		} else {
			out = append(out, path)
		}
	}
	return out
}

// A DamageKind changes the content of a file; it returns nil where the file is to be
// removed, and ok false where it has nothing to change.
type DamageKind struct {
	Name string
	Do   func(b []byte) (_ []byte, ok bool)
}

func flipped(at func(n int) int) func(b []byte) ([]byte, bool) {
	return func(b []byte) ([]byte, bool) {
		if len(b) == 0 {
			return b, false
		}
		b = bytes.Clone(b)
		b[at(len(b))] ^= 0x10
		return b, true
	}
}

// DamageKinds are the kinds of damage that tests do.
var DamageKinds = []DamageKind{
	{"removed", func([]byte) ([]byte, bool) { return nil, true }},
	{"emptied", func(b []byte) ([]byte, bool) { return []byte{}, len(b) > 0 }},
	{"last byte lost", func(b []byte) ([]byte, bool) { return b[:max(len(b)-1, 0)], len(b) > 0 }},
	{"half lost", func(b []byte) ([]byte, bool) { return b[:len(b)/2], len(b) > 0 }},
	{"first byte flipped", flipped(func(int) int { return 0 })},
	{"middle byte flipped", flipped(func(n int) int { return n / 2 })},
	{"last byte flipped", flipped(func(n int) int { return n - 1 })},
}

// DamageFile changes a file in place, under all its names.
func DamageFile(t *testing.T, fs vfs.FS, path string, kind DamageKind) bool {
	t.Helper()
	b, err := statefiles.Read(fs, path)
	if err != nil {
		t.Fatal(err)
	}
	changed, ok := kind.Do(b)
	if !ok {
		return false
	}
	if changed == nil {
		err = fs.Remove(path)
	} else {
		err = Overwrite(fs, path, changed)
	}
	if err != nil {
		t.Fatal(err)
	}
	return true
}

// Overwrite gives the file behind a path, whatever other names it has, another
// content. A file cannot be cut short in place there: one that becomes shorter gets
// a file of its own.
func Overwrite(fs vfs.FS, path string, b []byte) error {
	info, err := fs.Stat(path)
	if err != nil {
		return err
	}
	if int64(len(b)) != info.Size() {
		return errors.Join(fs.Remove(path), statefiles.Write(fs, path, b))
	}
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Sync(), f.Close())
}
