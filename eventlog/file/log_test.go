package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
)

func TestAppendReadReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/a/b"
	opts := Options{Partitions: 2, SegmentBytes: 32 << 10}
	l := mustOpen(t, dir, opts)
	var want [2][][]byte
	for i := range int64(400) {
		part := int(i % 2)
		data := payload(i, int(i))
		if i%50 == 0 {
			data = nil // an empty record is a record
		}
		if off := mustAppend(t, l, part, data); off != int64(len(want[part])) {
			t.Fatalf("offset %d, want %d", off, len(want[part]))
		}
		want[part] = append(want[part], data)
	}
	for round := range 3 {
		for part := range 2 {
			mustHold(t, l, part, 0, want[part])
		}
		mustClose(t, l)
		if _, err := l.Append(t.Context(), 0, nil); !errors.Is(err, eventlog.ErrClosed) {
			t.Fatalf("append after close: %v", err)
		}
		l = mustOpen(t, dir, opts)
		data := fmt.Appendf(nil, "round %d", round)
		mustAppend(t, l, 1, data)
		want[1] = append(want[1], data)
	}
	if s := l.Stats(); s.Segments < 4 || s.DiskBytes < 80_000 || s.Appended != 1 || s.Fsyncs == 0 || s.Failed {
		t.Fatalf("stats %+v", s)
	}
}

func TestConcurrentAppendersAndReadersL1(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	opts := smallOptions(fsys)
	opts.SegmentBytes = 64 << 10
	opts.TailBytes = 1
	l := mustOpen(t, "log", opts)
	const appenders, each = 16, 200
	var wg sync.WaitGroup
	var byOffset sync.Map
	var acked atomic.Int64
	read := func(pause bool) {
		r, err := l.Read(0, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer r.Close()
		for off := range int64(appenders * each) {
			if pause && off%500 == 0 {
				time.Sleep(5 * time.Millisecond) // a slow reader is what is tested
			}
			e, err := r.Next(t.Context())
			if err != nil || e.Offset != off {
				t.Errorf("read %d: got %d, %v", off, e.Offset, err)
				return
			}
			byOffset.LoadOrStore(off, string(e.Data))
			if got, _ := byOffset.Load(off); got != string(e.Data) {
				t.Errorf("record %d differs", off)
				return
			}
		}
	}
	wg.Go(func() { read(false) })
	wg.Go(func() { read(true) })
	for a := range appenders {
		wg.Go(func() {
			for i := range each {
				data := payload(int64(a*each+i), (a*37+i*11)%700)
				off, err := l.Append(t.Context(), 0, data)
				if err != nil {
					t.Error(err)
					return
				}
				acked.Add(1)
				if got, loaded := byOffset.LoadOrStore(off, string(data)); loaded && got != string(data) {
					t.Errorf("record %d was read as something else", off)
				}
				if _, end, _ := l.Bounds(t.Context(), 0); end <= off {
					t.Errorf("acknowledged %d is not below the end %d", off, end)
				}
			}
		})
	}
	wg.Wait()
	s := l.Stats()
	if s.Appended != appenders*each || s.QueueBytes != 0 || s.QueueRecords != 0 {
		t.Fatalf("stats %+v", s)
	}
	if s.Batches >= s.Appended {
		t.Fatalf("%d batches for %d records: appends do not share fsyncs", s.Batches, s.Appended)
	}
}

func TestOptionsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		field string
		opts  Options
	}{
		{"Partitions", Options{Partitions: -1}},
		{"Partitions", Options{Partitions: 5000}},
		{"SegmentBytes", Options{SegmentBytes: 1}},
		{"MaxRecordBytes", Options{MaxRecordBytes: 2 << 30}},
		{"QueueBytes", Options{QueueBytes: 1000}},
		{"QueueRecords", Options{QueueRecords: -1}},
		{"TailBytes", Options{TailBytes: -1}},
	} {
		c.opts.FS = vfs.NewMem()
		if _, err := Open("log", c.opts); err == nil || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

func TestPartitionCountIsFixed(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	mustClose(t, mustOpen(t, "log", Options{FS: fsys, Partitions: 3, SegmentBytes: 8192}))
	_, err := Open("log", Options{FS: fsys, Partitions: 2})
	if err == nil || !strings.Contains(err.Error(), "has 3 partitions") {
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, "log", Options{FS: fsys, Partitions: 3}))
	l := mustOpen(t, "log", Options{FS: fsys, Partitions: 3})
	for _, part := range []int{-1, 3} {
		if _, err := l.Append(t.Context(), part, nil); err == nil {
			t.Errorf("append to partition %d worked", part)
		}
	}
}

// TestDirectoryInUse opens the directory a second time from this process and
// from another.
func TestDirectoryInUse(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("MUSTER_TEST_OPEN"); dir != "" {
		_, err := Open(dir, Options{})
		if !errors.Is(err, ErrInUse) {
			t.Fatalf("opened a directory in use: %v", err)
		}
		return
	}
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{SegmentBytes: 8192})
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrInUse) {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDirectoryInUse$")
	cmd.Env = append(os.Environ(), "MUSTER_TEST_OPEN="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	mustAppend(t, l, 0, []byte("still mine"))
	mustClose(t, l)
	mustClose(t, mustOpen(t, dir, Options{}))
}

// slowFS lets a test hold fsyncs.
type slowFS struct {
	gate chan struct{}
	fail atomic.Pointer[error]
}

func (s *slowFS) MaybeError(op errorfs.Op) error {
	if op.Kind == errorfs.OpFileSyncData {
		<-s.gate
	}
	if err := s.fail.Load(); err != nil && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
		return *err
	}
	return nil
}
func (s *slowFS) String() string { return "slow" }

// gated returns a log whose fsyncs wait for the gate; closing it opens it.
func gated(t *testing.T, opts Options) (*Log, *slowFS) {
	s := &slowFS{gate: make(chan struct{})}
	opts.FS = errorfs.Wrap(vfs.NewMem(), s)
	l, err := Open("log", opts)
	if err != nil {
		t.Fatal(err)
	}
	return l, s
}

// TestQueueIsBoundedQ1 fills the queue while the disk hangs: Append refuses at
// once, and the queue serves again when the disk does.
func TestQueueIsBoundedQ1(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		opts Options
		fits int
	}{
		{"bytes", Options{QueueBytes: 10 * 1016, MaxRecordBytes: 1000}, 10},
		{"records", Options{QueueRecords: 7}, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, s := gated(t, c.opts)
			data := make([]byte, 1000)
			errs := make(chan error, c.fits)
			for range c.fits {
				go func() {
					_, err := l.Append(context.Background(), 0, data)
					errs <- err
				}()
			}
			eventually.Holds(t, "a full queue", func() bool { return l.Stats().QueueRecords == c.fits })
			if _, err := l.Append(t.Context(), 0, data); !errors.Is(err, eventlog.ErrQueueFull) {
				t.Fatal(err)
			}
			if st := l.Stats(); st.RefusedFull != 1 || st.QueueBytes != int64(c.fits)*1016 {
				t.Fatalf("stats %+v", st)
			}
			close(s.gate)
			for range c.fits {
				if err := <-errs; err != nil {
					t.Fatal(err)
				}
			}
			if off := mustAppend(t, l, 0, data); off != int64(c.fits) {
				t.Fatalf("the refused record took an offset: the next got %d", off)
			}
			mustClose(t, l)
		})
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, "log", smallOptions(vfs.NewMem()))
	if _, err := l.Append(t.Context(), 0, make([]byte, 8<<10+1)); !errors.Is(err, eventlog.ErrTooLarge) {
		t.Fatal(err)
	}
	big := payload(0, 8<<10-2)
	mustAppend(t, l, 0, big) // larger than a segment
	mustAppend(t, l, 0, big)
	mustHold(t, l, 0, 0, [][]byte{big, big})
}

// TestCancelledAppend: Append returns at once when its context ends, and the
// record, which it does not own any more, becomes durable all the same.
func TestCancelledAppend(t *testing.T) {
	t.Parallel()
	l, s := gated(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	data := []byte("cancelled")
	go func() {
		_, err := l.Append(ctx, 0, data)
		// The caller may use its buffer again.
		copy(data, "XXXXXXXXX")
		errs <- err
	}()
	eventually.Holds(t, "a queued record", func() bool { return l.Stats().QueueRecords == 1 })
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := l.Append(ctx, 0, data); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(s.gate)
	if off := mustAppend(t, l, 0, []byte("next")); off != 1 {
		t.Fatalf("offset %d", off)
	}
	mustHold(t, l, 0, 0, [][]byte{[]byte("cancelled"), []byte("next")})
	mustClose(t, l)
}

// TestFailedWriteL1 makes the disk full. Every waiting and later append fails,
// what was durable stays readable, and the next start recovers.
func TestFailedWriteL1(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	s := &slowFS{gate: make(chan struct{})}
	close(s.gate)
	opts := Options{FS: errorfs.Wrap(mem, s), Partitions: 2, SegmentBytes: 8192}
	l := mustOpen(t, "log", opts)
	want := [][]byte{payload(0, 100), payload(1, 100)}
	for _, d := range want {
		mustAppend(t, l, 0, d)
	}
	full := error(syscall.ENOSPC)
	s.fail.Store(&full)
	for range 3 {
		_, err := l.Append(t.Context(), 0, payload(2, 100))
		if !errors.Is(err, eventlog.ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	s.fail.Store(nil)
	// The disk is well again; the log must not be.
	for part := range 2 {
		if _, err := l.Append(t.Context(), part, payload(3, 100)); !errors.Is(err, eventlog.ErrFailed) {
			t.Fatal(err)
		}
	}
	mustHold(t, l, 0, 0, want)
	if st := l.Stats(); !st.Failed || st.RefusedFailed != 5 {
		t.Fatalf("stats %+v", st)
	}
	l.Close()
	opts.FS = mem.CrashClone(vfs.CrashCloneCfg{})
	l = mustOpen(t, "log", opts)
	mustHold(t, l, 0, 0, want)
	mustAppend(t, l, 0, []byte("again"))
}

// TestFsyncIsNotRepeatedL1: one failed fsync, and none follows.
func TestFsyncIsNotRepeatedL1(t *testing.T) {
	t.Parallel()
	var fsyncs, failAt atomic.Int64
	inj := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData && fsyncs.Add(1) == failAt.Load() {
			return errorfs.ErrInjected
		}
		return nil
	})
	failAt.Store(3)
	l := mustOpen(t, "log", Options{FS: errorfs.Wrap(vfs.NewMem(), inj), SegmentBytes: 8192})
	mustAppend(t, l, 0, []byte("1"))
	mustAppend(t, l, 0, []byte("2"))
	for range 3 {
		if _, err := l.Append(t.Context(), 0, []byte("3")); !errors.Is(err, eventlog.ErrFailed) {
			t.Fatal(err)
		}
	}
	l.Close()
	if n := fsyncs.Load(); n != 3 {
		t.Fatalf("%d fsyncs, the third failed", n)
	}
}

func TestCloseDrains(t *testing.T) {
	t.Parallel()
	l, s := gated(t, Options{SegmentBytes: 8192})
	errs := make(chan error, 20)
	for i := range int64(20) {
		go func() {
			_, err := l.Append(context.Background(), 0, payload(i, 50))
			errs <- err
		}()
	}
	eventually.Holds(t, "twenty queued records", func() bool { return l.Stats().QueueRecords == 20 })
	time.AfterFunc(10*time.Millisecond, func() { close(s.gate) })
	mustClose(t, l)
	mustClose(t, l)
	for range 20 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
}

// TestSteadyStateAllocations holds the line for the whole path from Append to
// a tail reader: no allocation per record.
func TestSteadyStateAllocations(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{})
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data := bytes.Repeat([]byte("x"), 400)
	ctx := context.Background()
	one := func() {
		off, err := l.Append(ctx, 0, data)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := r.Next(ctx); err != nil || e.Offset != off || !bytes.Equal(e.Data, data) {
			t.Fatalf("read %d, %v", e.Offset, err)
		}
	}
	for range 200 {
		one()
	}
	// It counts what goroutines of tests before it allocate, too: each measurement would have
	// what a record allocates.
	least := math.Inf(1)
	for range 5 {
		least = min(least, testing.AllocsPerRun(500, one))
	}
	if least > 0.1 {
		t.Fatalf("%.2f allocations per record", least)
	}
}
