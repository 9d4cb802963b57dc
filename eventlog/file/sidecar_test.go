package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// restOf redacts the text that the redaction of [anna] has left behind "record N of ".
func restOf(offset int64) eventlog.Redaction {
	return eventlog.Redaction{Offset: offset, Splices: []eventlog.Splice{{At: len(fmt.Sprintf("record %d of ", offset)), Len: len("somebody and Bert"), New: []byte("-")}}}
}

func mustRedact(t *testing.T, l *Log, list ...eventlog.Redaction) {
	t.Helper()
	if err := l.Redact(t.Context(), 0, list); err != nil {
		t.Fatal(err)
	}
}

// TestSidecarOfAnotherTime: an older sidecar beside a segment has bytes that were redacted
// since. It is damage, for a reader, a check and a scrub, also where the other records fit.
func TestSidecarOfAnotherTime(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	l := redactLog(t, fsys)
	mustRedact(t, l, anna(1))
	path := segmentOf(fsys, 0).sidecarPath(redactedSuffix)
	older := readFile(t, fsys, path)
	mustRedact(t, l, restOf(1))
	newer := readFile(t, fsys, path)
	want := readRecords(t, l)
	mustClose(t, l)
	writeFile(t, fsys, path, older)

	c, err := Check(fsys, "log")
	if err != nil || !slices.ContainsFunc(c.Findings, func(f Finding) bool { return isCorrupt(f.Err) && strings.Contains(f.Err.Error(), otherSidecar) }) {
		t.Errorf("%v, %+v", err, c.Findings)
	}
	l = mustOpen(t, "log", Options{FS: fsys})
	r, err := l.Read(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if e, err := r.Next(t.Context()); !isCorrupt(err) {
		t.Errorf("read %q, %v", e.Data, err)
	}
	var found error
	if err := l.Scrub(t.Context(), func(context.Context, int) error { return nil }, func(err error) { found = err }); err != nil || !isCorrupt(found) {
		t.Errorf("a scrub found %v, %v", found, err)
	}
	mustClose(t, l)

	// What has not been overwritten names the one before.
	writeFile(t, fsys, path, older)
	writeFile(t, fsys, segmentOf(fsys, 0).sidecarPath(redactingSuffix), nil)
	l = mustOpen(t, "log", Options{FS: fsys})
	if got := readRecords(t, l); got[1] != "record 1 of somebody and Bert" {
		t.Errorf("got %q", got[1])
	}
	mustClose(t, l)
	writeFile(t, fsys, path, newer)
	writeFile(t, fsys, segmentOf(fsys, 0).sidecarPath(redactingSuffix), nil)
	l = mustOpen(t, "log", Options{FS: fsys})
	if got := readRecords(t, l); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	mustClose(t, l)

	// Damage to what is left in the segment does not matter: nothing of it is read.
	b := readFile(t, fsys, segmentOf(fsys, 0).path)
	const from = segmentHeaderSize + batchHeaderSize + 20 // not in the head of a batch
	at := from + bytes.Index(b[from:], tombstone(20, 0)[:16])
	b[at] ^= 1
	writeFile(t, fsys, segmentOf(fsys, 0).path, b)
	l = mustOpen(t, "log", Options{FS: fsys})
	defer mustClose(t, l)
	if got := readRecords(t, l); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestCopyOfWhatIsTrimmed (L1): a segment that is redacted and trimmed between Link and
// LinkSidecars is whole in the copy, and has nothing of what was redacted.
func TestCopyOfWhatIsTrimmed(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		fsys := vfs.NewMem()
		l := redactLog(t, fsys)
		if before {
			mustRedact(t, l, anna(1))
		}
		links, err := l.Link("copy")
		if err != nil {
			t.Fatal(err)
		}
		if !before {
			mustRedact(t, l, anna(1))
		}
		mustRedact(t, l, restOf(1))
		want := readRecords(t, l)
		if err := l.Trim(0, 6); err != nil {
			t.Fatal(err)
		}
		if err := l.CheckLinked(t.Context(), "copy", links, nil, nil); err != nil || len(l.Noticed()) > 0 {
			t.Errorf("redacted before %t: %v, noticed %v", before, err, l.Noticed())
		}
		if _, err := l.LinkSidecars("copy", links); err != nil {
			t.Fatal(err)
		}
		mustClose(t, l)
		c := mustOpen(t, "copy", Options{FS: fsys})
		if got := readRecords(t, c); !slices.Equal(got, want[:len(got)]) || len(got) != len(want) {
			t.Errorf("redacted before %t: got %q", before, got)
		}
		mustClose(t, c)
	}
}

// TestTrimLeavesCopiesAlone: a copy that is complete, and one that was given up, do not
// matter to a trim.
func TestTrimLeavesCopiesAlone(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	l := redactLog(t, fsys)
	defer mustClose(t, l)
	links, err := l.Link("complete")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Link("given up"); err != nil {
		t.Fatal(err)
	}
	if err := fsys.RemoveAll("given up"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.LinkSidecars("complete", links); err != nil {
		t.Fatal(err)
	}
	mustRedact(t, l, anna(1))
	if err := l.Trim(0, 6); err != nil {
		t.Fatal(err)
	}
	complete := &segment{path: "complete/p0/" + segmentName(0)}
	if _, err := fsys.Stat(complete.sidecarPath(redactedSuffix)); !isNotExist(err) {
		t.Errorf("the complete copy has a sidecar: %v", err)
	}
	if n := len(l.partitions[0].linked); n != 0 {
		t.Errorf("%d copies are remembered", n)
	}
}

// beginRedaction puts a sidecar beside the first segment and overwrites nothing, as where that
// fails.
func beginRedaction(t *testing.T, l *Log, r eventlog.Redaction) {
	t.Helper()
	p, seg := l.partitions[0], l.partitions[0].mu.segments[0]
	have, err := readSidecar(l.opts.FS, seg)
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.opts.FS.Open(seg.path)
	if err != nil {
		t.Fatal(err)
	}
	now, _, err := replaceBatches(f, seg, have, false, []eventlog.Redaction{r})
	if err = errors.Join(err, f.Close()); err == nil {
		err = p.writeSidecar(seg, now)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCopyBesideAnEndedRedaction: a segment was copied before its bytes were overwritten, by a
// redaction that had begun before the copy and ended before LinkSidecars.
func TestCopyBesideAnEndedRedaction(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	l := redactLog(t, fsys)
	mustRedact(t, l, anna(1))
	p, seg := l.partitions[0], segmentOf(fsys, 0)
	beginRedaction(t, l, restOf(1))
	links, err := l.Link("links")
	if err != nil {
		t.Fatal(err)
	}
	copied := readFile(t, fsys, seg.path)
	if err := l.CheckLinked(t.Context(), "links", links, nil, nil); err != nil {
		t.Error(err)
	}
	if err := p.redactSegment(p.mu.segments[0], 0, nil); err != nil { // ends it
		t.Fatal(err)
	}
	more, err := l.LinkSidecars("links", links)
	if err != nil {
		t.Fatal(err)
	}
	want := readRecords(t, l)
	mustClose(t, l)
	if err := fsys.MkdirAll("copy/p0", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, x := range append(links.Files, more...) {
		writeFile(t, fsys, "copy/"+x.Path, readFile(t, fsys, "links/"+x.Path))
	}
	writeFile(t, fsys, "copy/p0/"+segmentName(0), copied)
	if c, err := Check(fsys, "copy"); err != nil || !c.Whole() {
		t.Errorf("%v, %+v", err, c.Findings)
	}
	c := mustOpen(t, "copy", Options{FS: fsys})
	defer mustClose(t, c)
	if got := readRecords(t, c); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestCheckOfATrimmedCopy: a segment that is trimmed before a redaction of it was ended is whole
// in the copy, and damage in it is none of the log.
func TestCheckOfATrimmedCopy(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	l := redactLog(t, fsys)
	defer mustClose(t, l)
	mustRedact(t, l, anna(1))
	beginRedaction(t, l, restOf(1))
	links, err := l.Link("links")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Trim(0, 6); err != nil {
		t.Fatal(err)
	}
	if err := l.CheckLinked(t.Context(), "links", links, nil, nil); err != nil {
		t.Error(err)
	}
	path := "links/p0/" + segmentName(3)
	b := readFile(t, fsys, path)
	b[segmentHeaderSize+batchHeaderSize+5] ^= 1
	writeFile(t, fsys, path, b)
	if err := l.CheckLinked(t.Context(), "links", links, nil, nil); err == nil || isCorrupt(err) || len(l.Noticed()) > 0 {
		t.Errorf("%v, noticed %v", err, l.Noticed())
	}
}

// TestRedactionOfARemovedFile is refused, and makes no file.
func TestRedactionOfARemovedFile(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	l := redactLog(t, fsys)
	defer mustClose(t, l)
	path := segmentOf(fsys, 0).path
	if err := fsys.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := l.Redact(t.Context(), 0, []eventlog.Redaction{anna(1)}); !isCorrupt(err) {
		t.Error(err)
	}
	if _, err := fsys.Stat(path); !isNotExist(err) {
		t.Errorf("the file is there again: %v", err)
	}
}

// TestNoSpaceForASidecar: one that cannot be written leaves nothing of itself.
func TestNoSpaceForASidecar(t *testing.T) {
	t.Parallel()
	mem, free := vfs.NewMem(), int64(-1)
	l := mustOpen(t, "log", Options{FS: fullFS{mem, &free}})
	defer mustClose(t, l)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 10 {
		noise := make([]byte, 20_000)
		for j := range noise {
			noise[j] = byte(rng.Uint32())
		}
		mustAppend(t, l, 0, append(fmt.Appendf(nil, "record %d of Anna and Bert", i), noise...))
	}
	if err := l.Roll(0); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, 0, []byte("x"))
	free = 10_000
	if err := l.Redact(t.Context(), 0, []eventlog.Redaction{anna(1)}); !errors.Is(err, errFull.Err) {
		t.Fatal(err)
	}
	names, err := mem.List("log/p0")
	if err != nil || slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, tmpSuffix) }) {
		t.Errorf("%q, %v", names, err)
	}
	free = -1
	mustRedact(t, l, anna(1))
}

// eventsFS notes when the lock is given up and a sidecar is put in place, and holds the latter
// up.
type eventsFS struct {
	vfs.FS
	mu      sync.Mutex
	events  []string
	holding func()
}

func (f *eventsFS) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, what)
}

func (f *eventsFS) Rename(from, to string) error {
	if strings.HasSuffix(to, redactedSuffix) {
		f.holding()
		f.note("sidecar")
	}
	return f.FS.Rename(from, to)
}

type noteOnClose struct {
	io.Closer
	fs *eventsFS
}

func (c noteOnClose) Close() error {
	c.fs.note("unlocked")
	return c.Closer.Close()
}

func (f *eventsFS) Lock(name string) (io.Closer, error) {
	c, err := f.FS.Lock(name)
	return noteOnClose{c, f}, err
}

// TestCloseWaitsForARedaction: another process that opened the files in the middle of one
// could redact, too, and one of the two would be lost.
func TestCloseWaitsForARedaction(t *testing.T) {
	t.Parallel()
	mem := vfs.NewMem()
	mustClose(t, redactLog(t, mem))
	fsys, begun := &eventsFS{FS: mem}, make(chan struct{})
	l := mustOpen(t, "log", Options{FS: fsys})
	fsys.holding = func() {
		close(begun)
		<-l.closing
		time.Sleep(50 * time.Millisecond) // a Close that does not wait is done by then
	}
	redacted := make(chan error, 1)
	go func() { redacted <- l.Redact(context.Background(), 0, []eventlog.Redaction{anna(1)}) }()
	<-begun
	mustClose(t, l)
	if err := <-redacted; err != nil {
		t.Error(err)
	}
	if want := []string{"sidecar", "unlocked"}; !slices.Equal(fsys.events, want) {
		t.Errorf("%q", fsys.events)
	}
}

// TestReplayOfMissingRecords: a file that goes between a check and the replay is an error.
func TestReplayOfMissingRecords(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	l := redactLog(t, fsys)
	id := l.id
	mustClose(t, l)
	if err := fsys.Remove(segmentOf(fsys, 3).path); err != nil {
		t.Fatal(err)
	}
	var got []int64
	err := Replay(t.Context(), fsys, "log", id, 0, 0, 7, func(offset int64, _ []byte) error {
		got = append(got, offset)
		return nil
	})
	if err == nil || !slices.Equal(got, []int64{0, 1, 2}) {
		t.Errorf("replayed %v, %v", got, err)
	}
}

// TestHeadsOfNoWriter: heads with a right checksum that no writer makes.
func TestHeadsOfNoWriter(t *testing.T) {
	t.Parallel()
	for _, h := range []batchHeader{
		{kind: batchPacked, first: 5, records: 2, body: 100, unpacked: maxBatchBytes + 1},
		{kind: batchPacked, first: maxOffset + 1, records: 1, body: 100, unpacked: 100},
		{kind: batchMark, first: maxOffset + 1},
	} {
		if h.check(h.first) == "" {
			t.Errorf("%+v is taken", h)
		}
	}
	for _, h := range []batchHeader{
		{kind: batchPacked, first: 5, records: 2, body: 100, unpacked: maxBatchBytes},
		{kind: batchPacked, first: 5, records: 1, body: 100, unpacked: maxUnpacked},
		{kind: batchMark, first: maxOffset},
	} {
		if reason := h.check(h.first); reason != "" {
			t.Errorf("%+v: %s", h, reason)
		}
	}
}

// TestReplayDoesNotReadSeals: a check passes over what is behind the last record of a closed
// segment, and so does a replay.
func TestReplayDoesNotReadSeals(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	l := redactLog(t, fsys)
	id := l.id
	mustClose(t, l)
	path := segmentOf(fsys, 0).path
	b := readFile(t, fsys, path)
	seal := bytes.LastIndex(b, batchMagicBytes)
	b[seal+5] ^= 1
	writeFile(t, fsys, path, b)
	if c, err := Check(fsys, "log"); err != nil || !c.Whole() {
		t.Fatalf("%v, %+v", err, c.Findings)
	}
	n := 0
	if err := Replay(t.Context(), fsys, "log", id, 0, 0, 7, func(int64, []byte) error { n++; return nil }); err != nil || n != 7 {
		t.Errorf("%d records, %v", n, err)
	}
}

// TestStartKeepsWhatCannotBeReplaced: a sidecar whose checksums are right and which makes no
// sense does not cost a start the batch that it names.
func TestStartKeepsWhatCannotBeReplaced(t *testing.T) {
	t.Parallel()
	frames := func(first int64, n int) []byte {
		var b []byte
		for i := range n {
			b = appendFrame(b, first+int64(i), []byte("x"))
		}
		return b
	}
	for name, x := range map[string]*replaced{
		"more records":   {records: 2, unpacked: uint32(len(frames(1, 2))), packed: pack(nil, frames(1, 2))},
		"another length": {records: 1, unpacked: 99, packed: pack(nil, frames(1, 1))},
		"another offset": {records: 1, unpacked: uint32(len(frames(2, 1))), packed: pack(nil, frames(2, 1))},
	} {
		fsys := vfs.NewMem()
		l := redactLog(t, fsys)
		h := l.partitions[0].mu.segments[0].header
		mustClose(t, l)
		seg := segmentOf(fsys, 0)
		before := readFile(t, fsys, seg.path)
		writeFile(t, fsys, seg.sidecarPath(redactedSuffix), encodeSidecar(&h, sidecar{batches: map[int64]*replaced{1: x}}))
		writeFile(t, fsys, seg.sidecarPath(redactingSuffix), nil)
		if l, err := Open("log", Options{FS: fsys}); !isCorrupt(err) {
			t.Errorf("%s: opened, %v", name, err)
			if err == nil {
				mustClose(t, l)
			}
		}
		if !bytes.Equal(readFile(t, fsys, seg.path), before) {
			t.Errorf("%s: the segment was changed", name)
		}
	}
}
