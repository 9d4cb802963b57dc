package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// fullFS is a file system that takes only so many more bytes: files that grow, and
// new files, take of them. What is overwritten takes none.
type fullFS struct {
	vfs.FS
	// free are the bytes left, negative for no limit.
	free *int64
}

// inodeBytes is what a new file takes.
const inodeBytes = 64

var errFull = &os.PathError{Op: "write", Path: "disk", Err: syscall.ENOSPC}

// take takes up to n bytes and says how many there were.
func (f fullFS) take(n int64) int64 {
	if *f.free < 0 {
		return n
	}
	n = min(n, *f.free)
	*f.free -= n
	return n
}

func (f fullFS) made(path string, make func() (vfs.File, error)) (vfs.File, error) {
	if _, err := f.FS.Stat(path); err != nil && f.take(inodeBytes) < inodeBytes {
		return nil, errFull
	}
	file, err := make()
	if err != nil {
		return nil, err
	}
	return &fullFile{file, f}, nil
}

func (f fullFS) Create(path string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return f.made(path, func() (vfs.File, error) { return f.FS.Create(path, c) })
}

func (f fullFS) OpenReadWrite(path string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return f.made(path, func() (vfs.File, error) { return f.FS.OpenReadWrite(path, c, o...) })
}

type fullFile struct {
	vfs.File
	fs fullFS
}

func (f *fullFile) WriteAt(b []byte, at int64) (int, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	grow := at + int64(len(b)) - max(info.Size(), at)
	if grow <= 0 {
		return f.File.WriteAt(b, at)
	}
	n := len(b) - int(grow-f.fs.take(grow))
	if n < len(b) {
		err = errFull
	}
	if n > 0 {
		if _, err := f.File.WriteAt(b[:n], at); err != nil {
			return 0, err
		}
	}
	return n, err
}

func (f *fullFile) Write(b []byte) (int, error) {
	if n := f.fs.take(int64(len(b))); n < int64(len(b)) {
		return 0, errFull
	}
	return f.File.Write(b)
}

// TestFullDisk: a log on a full disk refuses records and stores none of them, continues
// to be read, and takes records again when there is space; what it acknowledged is
// there after a crash, what it refused is not.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	free, now := int64(-1), time.UnixMilli(0)
	mem := vfs.NewCrashableMem()
	opts := smallOptions(fullFS{mem, &free})
	opts.Now = func() time.Time { return now }
	l := mustOpen(t, "log", opts)
	kept := [][]byte{payload(0, 700)}
	mustAppend(t, l, 0, kept[0])

	for round := range 3 {
		free = 0
		refused := 0
		for range 40 {
			now = now.Add(noSpacePause)
			data := payload(int64(100*round+refused), 600)
			off, err := l.Append(t.Context(), 0, data)
			switch {
			case err == nil:
				if off != int64(len(kept)) {
					t.Fatalf("offset %d, want %d", off, len(kept))
				}
				kept = append(kept, data)
			case errors.Is(err, eventlog.ErrNoSpace) && errors.Is(err, syscall.ENOSPC):
				refused++
			default:
				t.Fatal(err)
			}
		}
		if s := l.Stats(); refused < 30 || !s.NoSpace || s.Failed || s.RefusedNoSpace == 0 {
			t.Fatalf("%d refused, %+v", refused, s)
		}
		// Within the pause nothing is tried.
		if _, err := l.Append(t.Context(), 0, []byte("x")); !errors.Is(err, eventlog.ErrNoSpace) {
			t.Fatal(err)
		}
		checkRecords(t, l, kept)
		free = -1
		now = now.Add(noSpacePause)
		data := payload(int64(1000+round), 900)
		mustAppend(t, l, 0, data)
		kept = append(kept, data)
		if s := l.Stats(); s.NoSpace {
			t.Fatalf("%+v", s)
		}
	}
	after := mem.CrashClone(vfs.CrashCloneCfg{})
	opts.FS = after
	checkRecords(t, mustOpen(t, "log", opts), kept)
	mustClose(t, l)
}

func checkRecords(t *testing.T, l *Log, want [][]byte) {
	t.Helper()
	_, end, err := l.Bounds(context.Background(), 0)
	if err != nil || end != int64(len(want)) {
		t.Fatalf("the log ends at %d, want %d: %v", end, len(want), err)
	}
	got, err := readAll(l, 0, 0, end)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if string(got[i]) != string(want[i]) {
			t.Fatalf("record %d is %.20q, want %.20q", i, got[i], want[i])
		}
	}
}

// TestFullDiskAtStart: a new log on a full disk is refused with the reason.
func TestFullDiskAtStart(t *testing.T) {
	t.Parallel()
	free := int64(200)
	mem := vfs.NewMem()
	_, err := Open("log", smallOptions(fullFS{mem, &free}))
	if !errors.Is(err, eventlog.ErrNoSpace) {
		t.Fatal(err)
	}
	free = -1
	mustOpen(t, "log", smallOptions(fullFS{mem, &free}))
}

// TestFullDiskUnderway: many append and one follows the log while the disk fills and
// empties; each record is acknowledged and read once, at its offset, or refused and
// never read.
func TestFullDiskUnderway(t *testing.T) {
	t.Parallel()
	free := int64(-1)
	fsys := &switchFS{fullFS: fullFS{vfs.NewMem(), &free}}
	opts := smallOptions(fsys)
	var clock atomic.Int64
	opts.Now = func() time.Time { return time.Unix(0, clock.Load()) }
	opts.SegmentBytes, opts.TailBytes = 64<<10, blockBytes
	l := mustOpen(t, "log", opts)
	const appenders, each = 4, 1500
	var mu sync.Mutex
	acked := map[int64]string{}
	refused := 0
	var working sync.WaitGroup
	for a := range appenders {
		working.Go(func() {
			for i := range each {
				data := fmt.Sprintf("%d-%d-%s", a, i, payload(int64(a*each+i), i%700))
				off, err := l.Append(context.Background(), 0, []byte(data))
				clock.Add(int64(noSpacePause / 50))
				mu.Lock()
				switch {
				case err == nil && acked[off] == "":
					acked[off] = data
				case errors.Is(err, eventlog.ErrNoSpace):
					refused++
				default:
					t.Errorf("offset %d: %v", off, err)
				}
				mu.Unlock()
				if (a*each+i)%97 == 0 {
					fsys.set(int64(i%3)*20_000 - 1)
				}
			}
		})
	}
	read := make(chan map[int64]string)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		out := map[int64]string{}
		defer func() { read <- out }()
		r, err := l.Read(0, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer r.Close()
		for {
			e, err := r.Next(ctx)
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			out[e.Offset] = string(e.Data)
			if string(e.Data) == "last" {
				return
			}
		}
	}()
	working.Wait()
	fsys.set(-1)
	clock.Add(int64(noSpacePause))
	off := mustAppend(t, l, 0, []byte("last"))
	acked[off] = "last"
	defer cancel()
	have := <-read
	if len(have) != len(acked) || refused == 0 || int64(len(acked)) != off+1 {
		t.Fatalf("%d acknowledged, %d read, %d refused, the log ends at %d", len(acked), len(have), refused, off+1)
	}
	for off, data := range acked {
		if have[off] != data {
			t.Fatalf("offset %d: read %.20q, acknowledged %.20q", off, have[off], data)
		}
	}
	t.Logf("%d acknowledged, %d refused", len(acked), refused)
}

// switchFS is a fullFS whose space another goroutine changes.
type switchFS struct {
	fullFS
	mu sync.Mutex
}

func (s *switchFS) set(free int64) {
	s.mu.Lock()
	*s.free = free
	s.mu.Unlock()
}

func (s *switchFS) wrap(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return &switchFile{f, s}, nil
}

func (s *switchFS) OpenReadWrite(path string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrap(s.fullFS.OpenReadWrite(path, c, o...))
}

type switchFile struct {
	vfs.File
	fs *switchFS
}

func (f *switchFile) WriteAt(b []byte, at int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.File.WriteAt(b, at)
}
