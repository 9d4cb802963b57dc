package file

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
)

func TestReadBounds(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, "log", smallOptions(vfs.NewMem()))
	if _, err := l.Read(0, 1); err == nil {
		t.Fatal("read beyond the end of an empty log")
	}
	mustAppend(t, l, 0, []byte("a"))
	if _, err := l.Read(0, -1); !errors.Is(err, eventlog.ErrTrimmed) {
		t.Fatal(err)
	}
	if _, err := l.Read(1, 0); err == nil {
		t.Fatal("read a partition that does not exist")
	}
	r, err := l.Read(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	// The reader continues after a context that ended.
	mustAppend(t, l, 0, []byte("b"))
	if e := mustNext(t, r); e.Offset != 1 || string(e.Data) != "b" {
		t.Fatalf("%d %q", e.Offset, e.Data)
	}
}

// TestReaderNeverBeforeFsync: a record that is written but not durable is not
// read.
func TestReaderNeverBeforeFsync(t *testing.T) {
	t.Parallel()
	l, s := gated(t, Options{SegmentBytes: 8192})
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done := make(chan error, 1)
	go func() { _, err := l.Append(context.Background(), 0, []byte("x")); done <- err }()
	eventually.Holds(t, "a queued record", func() bool { return l.Stats().QueueRecords == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if e, err := r.Next(ctx); err == nil {
		t.Fatalf("read offset %d before its fsync", e.Offset)
	}
	if _, end, _ := l.Bounds(t.Context(), 0); end != 0 {
		t.Fatalf("end %d before the fsync", end)
	}
	close(s.gate)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mustNext(t, r)
	mustClose(t, l)
}

// TestReaderMovesBetweenMemoryAndFiles stops and goes, so that the reader
// falls behind what memory keeps and catches up again, and compares every
// record.
func TestReaderMovesBetweenMemoryAndFiles(t *testing.T) {
	t.Parallel()
	opts := smallOptions(vfs.NewMem())
	opts.SegmentBytes = 600 << 10
	opts.MaxRecordBytes = 400 << 10
	opts.TailBytes = 1
	l := mustOpen(t, "log", opts)
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rng := rand.New(rand.NewPCG(9, 9))
	var want [][]byte
	var next int
	inMemory, inFile := 0, 0
	for range 300 {
		for range rng.IntN(6) {
			d := payload(int64(len(want)), rng.IntN(20<<10))
			if rng.IntN(60) == 0 {
				d = payload(int64(len(want)), 390<<10) // a block of its own
			}
			mustAppend(t, l, 0, d)
			want = append(want, d)
		}
		if rng.IntN(10) == 0 {
			for range 30 { // far ahead of memory
				d := payload(int64(len(want)), 30<<10)
				mustAppend(t, l, 0, d)
				want = append(want, d)
			}
		}
		for range rng.IntN(14) {
			if next == len(want) {
				break
			}
			e := mustNext(t, r)
			if e.Offset != int64(next) || !bytes.Equal(e.Data, want[next]) {
				t.Fatalf("read %d (%d bytes), want %d (%d bytes)", e.Offset, len(e.Data), next, len(want[next]))
			}
			next++
			if rr := r.(*Reader); rr.file != nil {
				inFile++
			} else {
				inMemory++
			}
		}
	}
	if inMemory < 100 || inFile < 100 {
		t.Fatalf("%d records from memory, %d from files: not the test it should be", inMemory, inFile)
	}
	// A reader may begin at any offset.
	for range 50 {
		from := rng.IntN(len(want) + 1)
		got, err := readAll(l, 0, int64(from), int64(len(want)))
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range got {
			if !bytes.Equal(d, want[from+i]) {
				t.Fatalf("record %d differs", from+i)
			}
		}
	}
	p := l.partitions[0]
	p.mu.Lock()
	held := p.mu.chain.bytes
	p.mu.Unlock()
	if held > 1<<20 {
		t.Fatalf("%d bytes are held in memory", held)
	}
}

// TestTailIsReadFromMemory: a reader that is behind by less than TailBytes
// needs no file.
func TestTailIsReadFromMemory(t *testing.T) {
	t.Parallel()
	opts := smallOptions(vfs.NewMem())
	opts.SegmentBytes = 256 << 10
	opts.TailBytes = 2 << 20
	l := mustOpen(t, "log", opts)
	for i := range int64(600) {
		mustAppend(t, l, 0, payload(i, 7<<10))
	}
	for _, c := range []struct {
		from     int64
		inMemory bool
	}{{600 - 250, true}, {100, false}} {
		r, err := l.Read(0, c.from)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		mustNext(t, r)
		if got := r.(*Reader).file == nil; got != c.inMemory {
			t.Errorf("from %d: read from memory %v, want %v", c.from, got, c.inMemory)
		}
	}
}

func TestReaderAfterClose(t *testing.T) {
	t.Parallel()
	l := mustOpen(t, "log", smallOptions(vfs.NewMem()))
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	time.AfterFunc(5*time.Millisecond, func() { l.Close() })
	if _, err := r.Next(t.Context()); !errors.Is(err, eventlog.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := l.Read(0, 0); !errors.Is(err, eventlog.ErrClosed) {
		t.Fatal(err)
	}
}

func TestTrim(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	opts := smallOptions(fsys)
	opts.SegmentBytes = 32 << 10
	opts.TailBytes = 1
	l := mustOpen(t, "log", opts)
	var want [][]byte
	for i := range int64(200) {
		d := payload(i, 3000)
		mustAppend(t, l, 0, d)
		want = append(want, d)
	}
	before := l.Stats()
	behind, err := l.Read(0, 0) // has not opened a file yet
	if err != nil {
		t.Fatal(err)
	}
	defer behind.Close()
	inside, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	mustNext(t, inside)

	if err := l.Trim(0, 100); err != nil {
		t.Fatal(err)
	}
	start, end, _ := l.Bounds(t.Context(), 0)
	if start == 0 || start > 100 || end != 200 {
		t.Fatalf("bounds [%d,%d)", start, end)
	}
	if after := l.Stats(); after.DiskBytes >= before.DiskBytes || after.Segments >= before.Segments {
		t.Fatalf("no space was freed: %+v", after)
	}
	mustHold(t, l, 0, start, want[start:])
	if _, err := behind.Next(t.Context()); !errors.Is(err, eventlog.ErrTrimmed) {
		t.Fatal(err)
	}
	// A reader inside a trimmed file may end it; then its place is gone.
	n := int64(1)
	for ; ; n++ {
		e, err := inside.Next(t.Context())
		if errors.Is(err, eventlog.ErrTrimmed) {
			break
		}
		if err != nil || e.Offset != n || n >= start {
			t.Fatalf("read %d, %v", e.Offset, err)
		}
	}
	if _, err := l.Read(0, start-1); !errors.Is(err, eventlog.ErrTrimmed) {
		t.Fatal(err)
	}

	// All of it: the last file stays.
	if err := l.Trim(0, 1<<40); err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); s.Segments != 1 {
		t.Fatalf("%d segments", s.Segments)
	}
	start, end, _ = l.Bounds(t.Context(), 0)
	if end != 200 || start > 200 {
		t.Fatalf("bounds [%d,%d)", start, end)
	}
	// Trimming what is gone is nothing.
	if err := l.Trim(0, 3); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	l = mustOpen(t, "log", opts)
	mustHold(t, l, 0, start, want[start:])
	if off := mustAppend(t, l, 0, []byte("on")); off != 200 {
		t.Fatalf("offset %d", off)
	}
}

// TestLaggingReaderAllocations: reading from files allocates nothing per
// record either.
func TestLaggingReaderAllocations(t *testing.T) {
	opts := smallOptions(vfs.NewMem())
	opts.SegmentBytes = 1 << 20
	opts.TailBytes = 1
	l := mustOpen(t, "log", opts)
	for range 4000 {
		mustAppend(t, l, 0, make([]byte, 200))
	}
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx := context.Background()
	n := testing.AllocsPerRun(2000, func() {
		if _, err := r.Next(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0.01 {
		t.Fatalf("%.3f allocations per record", n)
	}
}
