package file

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/testlevel"
)

// stage is how the log under damage was left.
type stage string

const (
	closed   stage = "closed"
	killed   stage = "killed"   // idle before the kill: a mark stands at the end
	unmarked stage = "unmarked" // killed between the last fsync and its mark
)

// damageLog makes the files of a log with a trimmed start, several segments
// and the last batch of many records. It returns them with the records.
func damageLog(t *testing.T, how stage) (files map[string][]byte, start int64, want [][]byte, lastBatch int) {
	t.Helper()
	fsys := vfs.NewMem()
	l, err := open("log", smallOptions(fsys))
	if err != nil {
		t.Fatal(err)
	}
	p := l.partitions[0]
	put := func(n, size int) {
		for range n {
			data := payload(int64(len(want)), size)
			w, _, err := p.enqueue(data, nil)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, data)
			defer func() {
				if err := <-w.done; err != nil {
					t.Fatal(err)
				}
			}()
		}
		p.step()
	}
	for range 22 {
		put(3, 120)
	}
	if err := l.Trim(0, int64(len(want)/2)); err != nil {
		t.Fatal(err)
	}
	start, _ = p.bounds()
	if start == 0 || len(p.mu.segments) < 2 {
		t.Fatalf("start %d, %d segments: not the log this test needs", start, len(p.mu.segments))
	}
	lastBatch = 5
	put(lastBatch, 190)
	switch how {
	case closed:
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	case killed:
		p.idle()
		l.release((*partition).abandon)
	case unmarked:
		l.release((*partition).abandon)
	}
	return snapshot(t, fsys, "log"), start, want[start:], lastBatch
}

// inspect opens a log and reads all of it.
func inspect(fsys vfs.FS) (start int64, got [][]byte, err error) {
	l, err := open("log", smallOptions(fsys))
	if err != nil {
		return 0, nil, err
	}
	defer l.release((*partition).abandon)
	start, end := l.partitions[0].bounds()
	got, err = readAll(l, 0, start, end)
	return start, got, err
}

// TestFlippedByteL1 damages each byte of each file in turn (every third where
// the log was killed, unless MUSTER_LONG is set, and of these every fifth at the quick level). The log then
// either still holds every record or is a CorruptError that names the file.
// Only when the last batch has no mark behind it may that batch be cut.
func TestFlippedByteL1(t *testing.T) {
	t.Parallel()
	for _, how := range []stage{closed, killed, unmarked} {
		t.Run(string(how), func(t *testing.T) {
			files, wantStart, want, lastBatch := damageLog(t, how)
			rng := rand.New(rand.NewPCG(7, 7))
			var flips, refused, cut int
			step := testlevel.Count(5, 1)
			if how != closed && !testlevel.Long() {
				step *= 3
			}
			for _, path := range slices.Sorted(maps.Keys(files)) {
				for i := 0; i < len(files[path]); i += step {
					bad := bytes.Clone(files[path])
					bad[i] ^= byte(1 + rng.IntN(255))
					damaged := maps.Clone(files)
					damaged[path] = bad
					start, got, err := inspect(restore(t, damaged))
					flips++
					where := fmt.Sprintf("%s byte %d: %02x became %02x", path, i, files[path][i], bad[i])
					if err != nil {
						c := asCorrupt(err)
						if c == nil {
							t.Fatalf("%s: %v", where, err)
						}
						if c.File != path && !(strings.HasSuffix(c.File, ".log")) {
							t.Fatalf("%s: the error blames %s", where, c.File)
						}
						if c.File == path && strings.HasSuffix(path, ".log") && i >= segmentHeaderSize && c.Position > int64(i) {
							t.Fatalf("%s: the error names byte %d: %v", where, c.Position, err)
						}
						refused++
						continue
					}
					lost := len(want) - len(got)
					if start != wantStart || lost != 0 && (how != unmarked || lost != lastBatch) {
						t.Fatalf("%s: in silence, the log became [%d,+%d), it was [%d,+%d)", where, start, len(got), wantStart, len(want))
					}
					if lost != 0 {
						cut++
					}
					for k := range got {
						if !bytes.Equal(got[k], want[k]) {
							t.Fatalf("%s: in silence, record %d changed", where, start+int64(k))
						}
					}
				}
			}
			t.Logf("%d flips: %d refused, %d cut the last batch, the rest harmless", flips, refused, cut)
			if refused == 0 || (cut > 0) != (how == unmarked) {
				t.Fatal("not the outcomes expected")
			}
		})
	}
}

// TestTruncatedTailL1 cuts the last file at every length. Whole batches before
// the cut stay; the rest goes. This is what a write that never reached the
// disk leaves.
func TestTruncatedTailL1(t *testing.T) {
	t.Parallel()
	files, start, want, lastBatch := damageLog(t, unmarked)
	names := slices.Sorted(maps.Keys(files))
	var last string
	for _, n := range names {
		if strings.HasSuffix(n, ".log") {
			last = n
		}
	}
	used := lastNonZero(files[last]) + 1
	lastSize := batchHeaderSize
	for _, r := range want[len(want)-lastBatch:] {
		lastSize += len(r) + frameOverhead
	}
	for n := used - lastSize; n <= used; n++ {
		damaged := maps.Clone(files)
		damaged[last] = files[last][:n]
		fsys := restore(t, damaged)
		gotStart, got, err := inspect(fsys)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		expect := len(want) - lastBatch
		if n == used {
			expect = len(want)
		}
		if gotStart != start || len(got) != expect {
			t.Fatalf("%d bytes: [%d,+%d), want [%d,+%d)", n, gotStart, len(got), start, expect)
		}
		// The log takes records again, and a second start finds them.
		l := mustOpen(t, "log", smallOptions(fsys))
		if off := mustAppend(t, l, 0, []byte("after")); off != start+int64(expect) {
			t.Fatalf("%d bytes: appended at %d", n, off)
		}
		mustClose(t, l)
		if _, got, err = inspect(fsys); err != nil || len(got) != expect+1 {
			t.Fatalf("%d bytes: %d records after an append, %v", n, len(got), err)
		}
	}
}

// TestTornBlocksL1 loses any set of the 512-byte sectors of the last batch: it
// is cut, never called damage, although later sectors of it are whole.
func TestTornBlocksL1(t *testing.T) {
	t.Parallel()
	files, start, want, lastBatch := damageLog(t, unmarked)
	var last string
	for n := range files {
		if strings.HasSuffix(n, ".log") && n > last {
			last = n
		}
	}
	used := lastNonZero(files[last]) + 1
	lastSize := batchHeaderSize
	for _, r := range want[len(want)-lastBatch:] {
		lastSize += len(r) + frameOverhead
	}
	from := used - lastSize
	rng := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		bad := bytes.Clone(files[last])
		lost := false
		for s := from / 512 * 512; s < used; s += 512 {
			if rng.IntN(2) == 0 {
				clear(bad[max(s, from):min(s+512, used)])
				lost = true
			}
		}
		damaged := maps.Clone(files)
		damaged[last] = bad
		fsys := restore(t, damaged)
		gotStart, got, err := inspect(fsys)
		expect := len(want)
		if lost {
			expect -= lastBatch
			// What was cut cannot come back under a later batch.
			if after := readFile(t, fsys, last); lastNonZero(after) >= from+batchHeaderSize {
				t.Fatalf("bytes of the cut batch are left at %d", lastNonZero(after))
			}
		}
		if err != nil || gotStart != start || len(got) != expect {
			t.Fatalf("%d records of %d, %v", len(got), expect, err)
		}
	}
}

// TestMissingFiles removes each file in turn.
func TestMissingFiles(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	l := mustOpen(t, "log", smallOptions(fsys))
	for i := range int64(120) {
		mustAppend(t, l, 0, payload(i, 200))
	}
	mustClose(t, l)
	files := snapshot(t, fsys, "log")
	if len(files) < 7 {
		t.Fatalf("only %d files", len(files))
	}
	for path := range files {
		if strings.HasSuffix(path, lockName) {
			continue // nothing is lost without it
		}
		damaged := maps.Clone(files)
		delete(damaged, path)
		_, err := Open("log", smallOptions(restore(t, damaged)))
		c := asCorrupt(err)
		if c == nil {
			t.Fatalf("without %s: %v", path, err)
		}
		if c.File != path {
			t.Errorf("without %s: %v", path, err)
		}
	}
	// A whole segment of another place does not pass for this one.
	var logs []string
	for path := range files {
		if strings.HasSuffix(path, ".log") {
			logs = append(logs, path)
		}
	}
	slices.Sort(logs)
	damaged := maps.Clone(files)
	damaged[logs[1]], damaged[logs[2]] = files[logs[2]], files[logs[1]]
	if _, err := Open("log", smallOptions(restore(t, damaged))); asCorrupt(err) == nil {
		t.Fatalf("two segments swapped: %v", err)
	}
	// Nor do records that stand at another position of their segment.
	damaged = maps.Clone(files)
	bad := bytes.Clone(files[logs[1]])
	copy(bad[segmentHeaderSize:], bad[segmentHeaderSize+272:])
	damaged[logs[1]] = bad
	if _, _, err := inspect(restore(t, damaged)); asCorrupt(err) == nil {
		t.Fatalf("records moved: %v", err)
	}
}

// TestUnmarkedBatchIsWrittenAgainL1: after a failed fsync the page cache may
// hold a batch that the disk has not. A start must write it again before it
// counts as durable; the fsync alone would say yes to nothing.
func TestUnmarkedBatchIsWrittenAgainL1(t *testing.T) {
	t.Parallel()
	files, start, want, lastBatch := damageLog(t, unmarked)
	mem := restore(t, files)
	rec := &recorder{FS: mem}
	_, got, err := inspect(rec)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d records, %v", len(got), err)
	}
	var records []byte
	for i, r := range want[len(want)-lastBatch:] {
		records = appendFrame(records, start+int64(len(want)-lastBatch+i), r)
	}
	size := batchHeaderSize + len(pack(nil, records))
	var last string
	for n := range files {
		if strings.HasSuffix(n, ".log") && n > last {
			last = n
		}
	}
	end := int64(lastNonZero(files[last]) + 1)
	// In order: the batch, an fsync, the mark, an fsync.
	wantOps := []string{
		fmt.Sprintf("write %d+%d", end-int64(size), size), "sync",
		fmt.Sprintf("write %d+%d", end, batchHeaderSize), "sync",
	}
	if !slices.Equal(rec.ops, wantOps) {
		t.Fatalf("start did %v, want %v", rec.ops, wantOps)
	}
}

// recorder notes the writes and fsyncs to segment files.
type recorder struct {
	vfs.FS
	ops []string
}

func (r *recorder) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := r.FS.OpenReadWrite(name, c, opts...)
	return &recordedFile{f, r}, err
}

type recordedFile struct {
	vfs.File
	r *recorder
}

func (f *recordedFile) WriteAt(b []byte, off int64) (int, error) {
	f.r.ops = append(f.r.ops, fmt.Sprintf("write %d+%d", off, len(b)))
	return f.File.WriteAt(b, off)
}
func (f *recordedFile) Sync() error     { f.r.ops = append(f.r.ops, "sync"); return f.File.Sync() }
func (f *recordedFile) SyncData() error { f.r.ops = append(f.r.ops, "sync"); return f.File.SyncData() }

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}
