package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/logtest"
	"github.com/musterhq/muster/internal/testlevel"
)

// randomSplices are splices that fit a record of n bytes.
func randomSplices(rng *rand.Rand, n int) (out []eventlog.Splice) {
	at := 0
	for range rng.IntN(4) {
		at += rng.IntN(n - at + 1)
		s := eventlog.Splice{At: at, Len: rng.IntN(n - at + 1)}
		if rng.IntN(2) == 0 {
			s.Len = min(s.Len, 3)
		}
		s.New = bytes.Repeat([]byte{byte('A' + rng.IntN(26))}, rng.IntN(5))
		at += s.Len
		out = append(out, s)
	}
	return out
}

// redactLog is a log of two closed segments, of three records each, and an open one.
func redactLog(t *testing.T, fsys vfs.FS) *Log {
	t.Helper()
	l, err := Open("log", Options{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		if i%3 == 0 && i > 0 {
			if err := l.Roll(0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := l.Append(context.Background(), 0, fmt.Appendf(nil, "record %d of Anna and Bert", i)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func readRecords(t *testing.T, l *Log) (out []string) {
	t.Helper()
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, end, err := l.Bounds(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range end {
		e, err := r.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(e.Data))
	}
	return out
}

// anna takes the name out of a record.
func anna(offset int64) eventlog.Redaction {
	return eventlog.Redaction{Offset: offset, Splices: []eventlog.Splice{{At: len(fmt.Sprintf("record %d of ", offset)), Len: len("Anna"), New: []byte("somebody")}}}
}

// inFiles counts how often a text is in the files of the first partition, as it is or packed.
func inFiles(t *testing.T, fsys vfs.FS, what string) (in []string) {
	t.Helper()
	names, err := fsys.List("log/p0")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		b, err := readWhole(fsys, "log/p0/"+name)
		if err != nil {
			t.Fatal(err)
		}
		if n := max(strings.Count(string(b), what), bytes.Count(logtest.Packed(b), []byte(what))); n > 0 {
			in = append(in, fmt.Sprintf("%s: %d", name, n))
		}
	}
	return in
}

// TestRedaction: what is redacted is out of the files and is read as told, by
// readers that are open and by new ones, also after a start; the rest stays; a
// record can be redacted twice; what is being written is refused.
func TestRedaction(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	fsys := vfs.NewMem()
	l := redactLog(t, fsys)
	defer func() { l.Close() }()
	open, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	whole := readRecords(t, l)
	for _, list := range [][]eventlog.Redaction{{anna(6)}, {anna(1), anna(6)}} {
		if err := l.Redact(ctx, 0, list); !errors.Is(err, eventlog.ErrBeingWritten) {
			t.Fatalf("redacting the segment that takes records: %v", err)
		}
		if got := readRecords(t, l); !slices.Equal(got, whole) {
			t.Fatalf("after it was refused: %q", got)
		}
	}
	if err := l.Redact(ctx, 0, []eventlog.Redaction{{Offset: 1, Splices: []eventlog.Splice{{At: 20, Len: 100}}}}); err == nil {
		t.Fatal("a redaction beyond its record was taken")
	}
	if err := l.Redact(ctx, 0, []eventlog.Redaction{anna(1), anna(2), anna(4)}); err != nil {
		t.Fatal(err)
	}
	want := []string{"record 0 of Anna and Bert", "record 1 of somebody and Bert", "record 2 of somebody and Bert", "record 3 of Anna and Bert",
		"record 4 of somebody and Bert", "record 5 of Anna and Bert", "record 6 of Anna and Bert"}
	check := func() {
		t.Helper()
		if got := readRecords(t, l); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("got %q", got)
		}
	}
	check()
	if got := inFiles(t, fsys, "Anna"); len(got) != 3 || got[0] != "00000000000000000000.log: 1" {
		t.Fatalf("Anna is in %q", got)
	}
	for i := range want {
		e, err := open.Next(ctx)
		if err != nil || e.Offset != int64(i) || len(e.Data) == 0 {
			t.Fatalf("the open reader got %+v, %v", e, err)
		}
	}
	restart := func() (err error) {
		t.Helper()
		if l != nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		l, err = Open("log", Options{FS: fsys})
		return err
	}
	if err := restart(); err != nil {
		t.Fatal(err)
	}
	check()
	stale, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer stale.Close()
	for range 2 { // it has learnt of the redaction now
		if _, err := stale.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	bert := eventlog.Redaction{Offset: 2, Splices: []eventlog.Splice{{At: len("record 2 of some"), Len: len("body and Bert")}}}
	if err := l.Redact(ctx, 0, []eventlog.Redaction{bert, anna(3)}); err != nil {
		t.Fatal(err)
	}
	want[2], want[3] = "record 2 of some", "record 3 of somebody and Bert"
	check()
	for i := 2; i < len(want); i++ {
		if e, err := stale.Next(ctx); err != nil || i > 2 && string(e.Data) != want[i] {
			t.Fatalf("the open reader got %q, %v", e.Data, err)
		}
	}
	if err := restart(); err != nil {
		t.Fatal(err)
	}
	check()
	if err := l.Trim(0, 3); err != nil {
		t.Fatal(err)
	}
	if names, _ := fsys.List("log/p0"); strings.Contains(strings.Join(names, " "), "00000000.redacted") {
		t.Errorf("after a trim there are %q", names)
	}
}

// TestLostSidecar: a sidecar that is missing or damaged is named; it is no damage
// that could be taken for another, and nothing is read in its place.
func TestLostSidecar(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, damage := range []string{"missing", "damaged", "of another segment"} {
		fsys := vfs.NewMem()
		l := redactLog(t, fsys)
		if err := l.Redact(ctx, 0, []eventlog.Redaction{anna(1), anna(4)}); err != nil {
			t.Fatal(err)
		}
		const path = "log/p0/00000000000000000003.redacted"
		b, err := readWhole(fsys, path)
		if err != nil {
			t.Fatal(err)
		}
		switch damage {
		case "missing":
			if err := fsys.Remove(path); err != nil {
				t.Fatal(err)
			}
		case "damaged":
			b[len(b)-6] ^= 1
			writeFile(t, fsys, path, b)
		default:
			if b, err = readWhole(fsys, "log/p0/00000000000000000000.redacted"); err != nil {
				t.Fatal(err)
			}
			writeFile(t, fsys, path, b)
		}
		r, err := l.Read(0, 3)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := r.Next(ctx); err != nil || e.Offset != 3 {
			t.Fatalf("%s: what stands before: %v", damage, err)
		}
		e, err := r.Next(ctx)
		var corrupt *eventlog.CorruptError
		if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "redacted") || !strings.Contains(err.Error(), "00000000000000000003") {
			t.Errorf("%s: got %q, %v", damage, e.Data, err)
		}
		r.Close()
		l.Close()
	}
}

// TestReaderOfATrimmedRedaction: a reader in a segment that is trimmed, and whose sidecar is
// gone with it, says so. It is no damage, which would count until the next start.
func TestReaderOfATrimmedRedaction(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l := redactLog(t, vfs.NewMem())
	// Closed, so that what is read is not in memory.
	if err := errors.Join(l.Redact(ctx, 0, []eventlog.Redaction{anna(1)}), l.Close()); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, "log", l.opts)
	defer mustClose(t, l)
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.Trim(0, 3); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it stays so
		if e, err := r.Next(ctx); !errors.Is(err, eventlog.ErrTrimmed) {
			t.Errorf("%q, %v", e.Data, err)
		}
	}
	if found := l.Noticed(); len(found) > 0 {
		t.Errorf("damage of what is not there any more: %v", found)
	}
}

// TestReplacedAgain: a reader that knows what a batch was replaced by reads that without looking
// again, and what replaced it since once it was replaced again.
func TestReplacedAgain(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	l := redactLog(t, fsys)
	defer l.Close()
	seg := l.partitions[0].mu.segments[0]
	f, err := fsys.Open(seg.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	redact := func(r eventlog.Redaction) sidecar {
		t.Helper()
		if err := l.Redact(t.Context(), 0, []eventlog.Redaction{r}); err != nil {
			t.Fatal(err)
		}
		list, err := readSidecar(fsys, seg)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	known := redact(anna(1))
	again := eventlog.Redaction{Offset: 1, Splices: []eventlog.Splice{{At: 12, Len: 8, New: []byte("nobody")}}}
	for looks, want := range []string{"record 1 of somebody and Bert", "record 1 of nobody and Bert"} {
		looked := 0
		var s scanner
		s.reset(f, seg.header.salt, segmentHeaderSize, 0)
		s.knows(known, false)
		s.lookUp = func() (sidecar, bool, error) {
			looked++
			list, err := readSidecar(fsys, seg)
			return list, false, err
		}
		_, err0 := s.record()
		data, err1 := s.record()
		if err := errors.Join(err0, err1); err != nil || string(data) != want || looked != looks {
			t.Errorf("%q after %d looks, %v; want %q after %d", data, looked, err, want, looks)
		}
		redact(again)
		again.Splices[0].Len = len("nobody")
	}
}

// FuzzSidecar: no bytes make reading a sidecar fail otherwise than by a reason, and
// what is read is written as it was.
func FuzzSidecar(f *testing.F) {
	h := segmentHeader{partition: 1, first: 5, prev: 5, salt: 7, logID: 9}
	f.Add(encodeSidecar(&h, sidecar{}))
	f.Add(encodeSidecar(&h, sidecar{records: map[int64]*redacted{5: {sum: 3}, 8: {splices: []eventlog.Splice{{At: 1, Len: 2, New: []byte("x")}, {At: 9}}, sum: 1}}}))
	f.Add(encodeSidecar(&h, sidecar{batches: map[int64]*replaced{
		5: {records: 2, unpacked: 36, redacted: []uint32{1}, packed: pack(nil, []byte("frames"))},
		9: {records: 1, unpacked: 20, packed: pack(nil, nil)},
	}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, reason := decodeSidecar(b, &h)
		if reason == "" && !bytes.Equal(encodeSidecar(&h, list), b) {
			t.Errorf("read %x otherwise than it is written", b)
		}
	})
}

// crashAfter stops the world before operation n that changes the file system.
type crashAfter struct {
	mem     *vfs.MemFS
	n       int
	rng     *rand.Rand
	crashed *vfs.MemFS
}

func (c *crashAfter) String() string { return "crash" }

// MaybeError implements errorfs.Injector.
func (c *crashAfter) MaybeError(op errorfs.Op) error {
	switch {
	case c.crashed != nil:
		return errDead
	case op.Kind.ReadOrWrite() == errorfs.OpIsRead && op.Kind != errorfs.OpOpen || op.Kind == errorfs.OpLock:
		return nil
	}
	if c.n--; c.n == 0 {
		c.crashed = c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.rng.IntN(101), RNG: c.rng})
		return errDead
	}
	return nil
}

// TestRedactionEndsAfterCrash: wherever a redaction is broken off, the start after it
// leaves each record whole, as it was or as it is to be, and of what is read as
// redacted nothing is in the files.
func TestRedactionEndsAfterCrash(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	outcomes := map[string]int{}
	stopped := vfs.NewCrashableMem()
	redactLog(t, stopped).Close()
	seeds := testlevel.Count[uint64](2, 5)
	for seed := range seeds {
		for n := 1; ; n++ {
			mem := stopped.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(seed, 0))})
			c := &crashAfter{mem: mem, n: -1, rng: rand.New(rand.NewPCG(seed, uint64(n)))}
			l, err := open("log", Options{FS: errorfs.Wrap(mem, c)})
			if err != nil {
				t.Fatal(err)
			}
			c.n = n
			err = l.Redact(ctx, 0, []eventlog.Redaction{anna(1), anna(2)})
			if err == nil {
				l.Close()
				break
			}
			l.release((*partition).abandon)
			l, err = Open("log", Options{FS: c.crashed})
			if err != nil {
				t.Fatalf("crash before operation %d: %v", n, err)
			}
			got := readRecords(t, l)
			l.Close()
			left := len(inFiles(t, c.crashed, "1 of Anna")) + len(inFiles(t, c.crashed, "2 of Anna"))
			switch {
			case got[1] == "record 1 of Anna and Bert" && got[2] == "record 2 of Anna and Bert":
				outcomes["before"]++
			case got[1] == "record 1 of somebody and Bert" && got[2] == "record 2 of somebody and Bert" && left == 0:
				outcomes["after"]++
			default:
				t.Fatalf("crash before operation %d: read %q, %d in files", n, got[1:3], left)
			}
		}
	}
	if outcomes["before"] == 0 || outcomes["after"] == 0 {
		t.Fatalf("the test does not see both: %v", outcomes)
	}
}
