package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/musterhq/muster/eventlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// smallOptions make segments, blocks of space and queues small enough to meet
// every edge with a few records.
func smallOptions(fsys vfs.FS) Options {
	return Options{
		FS: fsys, SegmentBytes: 4 << 10, MaxRecordBytes: 8 << 10,
		Rand: rand.NewChaCha8([32]byte{1}),
	}
}

func mustOpen(t testing.TB, dir string, opts Options) *Log {
	t.Helper()
	l, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func mustClose(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// payload is the record test i appends: its size and bytes follow from i.
func payload(i int64, size int) []byte {
	b := make([]byte, size)
	rng := rand.New(rand.NewPCG(uint64(i), uint64(size)))
	for j := range b {
		b[j] = byte(rng.Uint32())
	}
	return append(fmt.Appendf(nil, "%d:", i), b...)
}

func mustAppend(t testing.TB, l *Log, part int, data []byte) int64 {
	t.Helper()
	off, err := l.Append(t.Context(), part, data)
	if err != nil {
		t.Fatal(err)
	}
	return off
}

// readAll reads [from, to) and returns copies.
func readAll(l eventlog.Log, part int, from, to int64) ([][]byte, error) {
	r, err := l.Read(part, from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out [][]byte
	for off := from; off < to; off++ {
		e, err := r.Next(context.Background())
		if err != nil {
			return out, err
		}
		if e.Offset != off {
			return out, fmt.Errorf("offset %d after %d", e.Offset, off-1)
		}
		out = append(out, bytes.Clone(e.Data))
	}
	return out, nil
}

// mustHold checks that the partition holds exactly the records from offset
// start on.
func mustHold(t testing.TB, l *Log, part int, start int64, want [][]byte) {
	t.Helper()
	s, e, err := l.Bounds(t.Context(), part)
	if err != nil {
		t.Fatal(err)
	}
	if s != start || e != start+int64(len(want)) {
		t.Fatalf("bounds [%d,%d), want [%d,%d)", s, e, start, start+int64(len(want)))
	}
	got, err := readAll(l, part, s, e)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("record %d differs: %.40q, want %.40q", start+int64(i), got[i], want[i])
		}
	}
}

// mustNext fails when Next takes long.
func mustNext(t testing.TB, r eventlog.Reader) eventlog.Entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := r.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func asCorrupt(err error) *eventlog.CorruptError {
	var c *eventlog.CorruptError
	if errors.As(err, &c) {
		return c
	}
	return nil
}

// snapshot copies all files below dir of a memory file system.
func snapshot(t testing.TB, fsys vfs.FS, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		path := fsys.PathJoin(dir, name)
		info, err := fsys.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			for k, v := range snapshot(t, fsys, path) {
				out[k] = v
			}
			continue
		}
		out[path] = readFile(t, fsys, path)
	}
	return out
}

func readFile(t testing.TB, fsys vfs.FS, path string) []byte {
	t.Helper()
	f, err := fsys.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size())
	if len(b) > 0 {
		if _, err := f.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func writeFile(t testing.TB, fsys vfs.FS, path string, data []byte) {
	t.Helper()
	if err := fsys.MkdirAll(fsys.PathDir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := fsys.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// A memory file system turns the bits of what it was given to write, in builds with the
	// race detector.
	if _, err := f.Write(bytes.Clone(data)); err != nil {
		t.Fatal(err)
	}
}

// restore makes a memory file system with these files.
func restore(t testing.TB, files map[string][]byte) *vfs.MemFS {
	t.Helper()
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("log", 0o755); err != nil {
		t.Fatal(err)
	}
	for path, data := range files {
		writeFile(t, fsys, path, bytes.Clone(data))
	}
	return fsys
}
