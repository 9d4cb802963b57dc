package file

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// version1Log is a log that a build wrote before batches were packed: 18 records in batches of
// one, two and three, in segments that begin with 0, 6 and 12, the records 1, 4 and 7 redacted.
func version1Log(t *testing.T) (fsys *vfs.MemFS, want []string) {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir("testdata/version1", func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var name string
			if name, err = filepath.Rel("testdata/version1", path); err == nil {
				files[filepath.ToSlash(name)], err = os.ReadFile(path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 18 {
		want = append(want, fmt.Sprintf("record %d of Anna and Bert", i))
	}
	for _, i := range []int{1, 4, 7} {
		want[i] = fmt.Sprintf("record %d of somebody and Bert", i)
	}
	return restore(t, files), want
}

func segmentOf(fsys vfs.FS, first int64) *segment {
	seg := &segment{path: "log/p0/" + segmentName(first)}
	seg.header, _, _, _ = readHeader(fsys, seg.path)
	return seg
}

// record1At is where record 1 of version1Log stands: the first of the second batch.
const record1At = segmentHeaderSize + batchHeaderSize + len("record 0 of Anna and Bert") + frameOverhead + batchHeaderSize

// asAppended takes the redaction of record 1 back in the segment, not in the sidecar.
func asAppended(t *testing.T, fsys vfs.FS) {
	t.Helper()
	path := segmentOf(fsys, 0).path
	b := readFile(t, fsys, path)
	frame := b[record1At:][:len("record 1 of Anna and Bert")+frameOverhead]
	copy(frame[frameHeadSize:], "record 1 of Anna")
	end := len(frame) - 4
	binary.LittleEndian.PutUint32(frame[end:], checksum(frame[:end]))
	writeFile(t, fsys, path, b)
}

// TestVersion1IsRead: a log of version 1 is read with what was redacted of it, goes on in a new
// segment, is redacted again, and keeps what the build that wrote it reads as it was.
func TestVersion1IsRead(t *testing.T) {
	t.Parallel()
	fsys, want := version1Log(t)
	before := readFile(t, fsys, segmentOf(fsys, 12).path)
	l := mustOpen(t, "log", smallOptions(fsys))
	check := func(l *Log) {
		t.Helper()
		if got := readRecords(t, l); !slices.Equal(got, want) {
			t.Fatalf("got %q", got)
		}
	}
	check(l)
	for i := range 2 {
		want = append(want, fmt.Sprintf("record %d of Anna and Bert", 18+i))
		mustAppend(t, l, 0, []byte(want[18+i]))
	}
	check(l)
	after := readFile(t, fsys, segmentOf(fsys, 12).path)
	if at := lastNonZero(before) + 1 - batchHeaderSize; !bytes.Equal(before[:at], after[:at]) { // up to the mark
		t.Error("a segment of version 1 was changed")
	}
	for _, first := range []int64{12, 18} {
		if got, want := segmentOf(fsys, first).header.version, uint32(1+first/18); got != want {
			t.Errorf("segment %d is of version %d, want %d", first, got, want)
		}
	}
	redact := func(list ...eventlog.Redaction) {
		t.Helper()
		if err := l.Redact(context.Background(), 0, list); err != nil {
			t.Fatal(err)
		}
	}
	redact(anna(2), anna(5), anna(13))
	redact(eventlog.Redaction{Offset: 1, Splices: []eventlog.Splice{{At: 12, Len: 8, New: []byte("nobody")}}})
	want[1], want[2], want[5], want[13] = "record 1 of nobody and Bert", "record 2 of somebody and Bert", "record 5 of somebody and Bert", "record 13 of somebody and Bert"
	check(l)
	for _, of := range []string{"1 of Anna", "2 of Anna", "4 of Anna", "5 of Anna", "7 of Anna", "13 of Anna", "1 of somebody"} {
		if in := inFiles(t, fsys, "record "+of); len(in) > 0 {
			t.Errorf("%q is in %q", of, in)
		}
	}
	for first, sum := range map[int64][2]int{0: {2, 0}, 6: {0, 1}, 12: {1, 0}} {
		seg := segmentOf(fsys, first)
		if list, err := readSidecar(fsys, seg); err != nil || len(list.batches) != sum[0] || len(list.records) != sum[1] {
			t.Errorf("beside segment %d: %d batches, %d records, %v", first, len(list.batches), len(list.records), err)
		}
	}
	mustClose(t, l)
	if c, err := Check(fsys, "log"); err != nil || !c.Whole() || c.Ends[0] != 20 {
		t.Fatalf("%+v, %v", c, err)
	}
	check(mustOpen(t, "log", smallOptions(fsys)))
}

// TestVersion1RedactionIsEnded: a start ends a redaction that a build of version 1 began.
func TestVersion1RedactionIsEnded(t *testing.T) {
	t.Parallel()
	fsys, want := version1Log(t)
	asAppended(t, fsys)
	if in := inFiles(t, fsys, "record 1 of Anna"); len(in) != 1 {
		t.Fatalf("the test's redaction has nothing to do: %q", in)
	}
	writeFile(t, fsys, segmentOf(fsys, 0).sidecarPath(redactingSuffix), nil)
	if c, err := Check(fsys, "log"); err != nil || !c.Whole() {
		t.Fatalf("%+v, %v", c, err)
	}
	l := mustOpen(t, "log", smallOptions(fsys))
	defer mustClose(t, l)
	if got := readRecords(t, l); !slices.Equal(got, want) {
		t.Fatalf("got %q", got)
	}
	if in := append(inFiles(t, fsys, "record 1 of Anna"), inFiles(t, fsys, "record 4 of Anna")...); len(in) > 0 {
		t.Errorf("left in %q", in)
	}
	if undone, err := redacting(l.opts.FS, segmentOf(fsys, 0)); err != nil || undone {
		t.Errorf("it is not noted as ended: %v, %v", undone, err)
	}
}

// TestVersion1LostSidecar: without the sidecar of version 1 a redacted record is damage that
// names it.
func TestVersion1LostSidecar(t *testing.T) {
	t.Parallel()
	fsys, _ := version1Log(t)
	if err := fsys.Remove(segmentOf(fsys, 6).sidecarPath(redactedSuffix)); err != nil {
		t.Fatal(err)
	}
	l := mustOpen(t, "log", smallOptions(fsys))
	defer mustClose(t, l)
	r, err := l.Read(0, 6)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if e, err := r.Next(t.Context()); err != nil || e.Offset != 6 {
		t.Fatalf("what stands before: %v", err)
	}
	if _, err = r.Next(t.Context()); asCorrupt(err) == nil || !bytes.Contains([]byte(err.Error()), []byte("redacted")) {
		t.Errorf("%v", err)
	}
}

// TestCompareVersion1: logs of version 1 are compared as those of the present one are.
func TestCompareVersion1(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		change func(*testing.T, vfs.FS)
		fork   int64
	}{
		"equal":        {func(*testing.T, vfs.FS) {}, -1},
		"not yet gone": {asAppended, -1},
		"redacted twice": {func(t *testing.T, fsys vfs.FS) {
			l := mustOpen(t, "log", smallOptions(fsys))
			if err := errors.Join(l.Redact(t.Context(), 0, []eventlog.Redaction{anna(3)}), l.Redact(t.Context(), 0, []eventlog.Redaction{anna(5)}), l.Close()); err != nil {
				t.Fatal(err)
			}
		}, -1},
		"redacted again": {func(t *testing.T, fsys vfs.FS) {
			l := mustOpen(t, "log", smallOptions(fsys))
			if err := errors.Join(l.Redact(t.Context(), 0, []eventlog.Redaction{anna(2), anna(3)}), l.Close()); err != nil {
				t.Fatal(err)
			}
		}, -1},
		"other text": {func(t *testing.T, fsys vfs.FS) {
			path := segmentOf(fsys, 0).path
			b := readFile(t, fsys, path)
			size := len("record 1 of Anna and Bert") + frameOverhead
			frame := b[record1At+size:][:size] // record 2
			frame[frameHeadSize+12] = 'H'
			binary.LittleEndian.PutUint32(frame[size-4:], checksum(frame[:size-4]))
			writeFile(t, fsys, path, b)
		}, 2},
	} {
		for _, swap := range []bool{false, true} {
			a, _ := version1Log(t)
			b, _ := version1Log(t)
			x.change(t, b)
			if swap {
				a, b = b, a
			}
			both := snapshot(t, a, "log")
			for path, data := range snapshot(t, b, "log") {
				both["other"+path[len("log"):]] = data
			}
			err := Compare(restore(t, both), "log", "other", 0, nil)
			var forked *ForkedError
			if !errors.As(err, &forked) {
				forked = &ForkedError{Offset: -1}
			}
			if forked.Offset != x.fork || x.fork < 0 && err != nil {
				t.Errorf("%s, swapped %v: %v", name, swap, err)
			}
		}
	}
}

// TestTornTombstone: however much of a redacted batch is overwritten when a redaction is cut
// off, the batch is read as it is to be, in segments of both versions.
func TestTornTombstone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version         uint32
		segment, record int64
	}{
		{rawVersion, 0, 2},
		{rawVersion, 12, 14}, // the first that is redacted of the segment, and the second of its batch
		{packedVersion, 0, 2},
	} {
		version := c.version
		var fsys vfs.FS
		var l *Log
		if version == rawVersion {
			fsys, _ = version1Log(t)
			l = mustOpen(t, "log", smallOptions(fsys))
		} else {
			fsys = vfs.NewMem()
			l = redactLog(t, fsys)
		}
		mustAppend(t, l, 0, []byte("the last"))
		if err := l.Roll(0); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, 0, []byte("the last but one"))
		before := readFile(t, fsys, segmentOf(fsys, c.segment).path)
		if err := l.Redact(t.Context(), 0, []eventlog.Redaction{anna(c.record)}); err != nil {
			t.Fatal(err)
		}
		want := readRecords(t, l)
		mustClose(t, l)
		seg := segmentOf(fsys, c.segment)
		list, err := readSidecar(fsys, seg)
		if err != nil {
			t.Fatal(err)
		}
		f, err := fsys.Open(seg.path)
		if err != nil {
			t.Fatal(err)
		}
		places, err := placesOf(f, seg, list)
		if err := errors.Join(err, f.Close()); err != nil || len(places) == 0 {
			t.Fatal(places, err)
		}
		after := readFile(t, fsys, seg.path)
		for _, at := range places {
			for k := range at.size + 1 {
				for _, fromEnd := range []bool{false, true} {
					torn := bytes.Clone(after)
					if fromEnd {
						copy(torn[at.pos:][:at.size-k], before[at.pos:])
					} else {
						copy(torn[at.pos:][k:at.size], before[at.pos:][k:])
					}
					files := snapshot(t, fsys, "log")
					files[seg.path] = torn
					files[seg.sidecarPath(redactingSuffix)] = nil
					torned := restore(t, files)
					if c, err := Check(torned, "log"); err != nil || !c.Whole() {
						t.Fatalf("version %d, %d bytes: %+v, %v", version, k, c, err)
					}
					l, err := Open("log", smallOptions(torned))
					if err != nil {
						t.Fatal(err)
					}
					if got := readRecords(t, l); !slices.Equal(got, want) {
						t.Fatalf("version %d, %d bytes: got %q", version, k, got)
					}
					if got := readFile(t, torned, seg.path); !bytes.Equal(got[at.pos:][:at.size], after[at.pos:][:at.size]) {
						t.Fatalf("version %d, %d bytes: the start leaves %x", version, k, got[at.pos:][:at.size])
					}
					// The same while the log is open, as by an error of the disk: it is ended by the next redaction.
					writeFile(t, torned, seg.path, torn)
					writeFile(t, torned, seg.sidecarPath(redactingSuffix), nil)
					again := eventlog.Redaction{Offset: c.record, Splices: []eventlog.Splice{{At: anna(c.record).Splices[0].At, Len: 8, New: []byte("nobody")}}}
					if err := l.Redact(t.Context(), 0, []eventlog.Redaction{again}); err != nil {
						t.Fatalf("version %d, %d bytes, again: %v", version, k, err)
					}
					if got := readRecords(t, l); got[c.record] != fmt.Sprintf("record %d of nobody and Bert", c.record) || !slices.Equal(got[c.record+1:], want[c.record+1:]) {
						t.Fatalf("version %d, %d bytes, again: got %q", version, k, got)
					}
					if in := append(inFiles(t, torned, fmt.Sprintf("record %d of Anna", c.record)), inFiles(t, torned, fmt.Sprintf("record %d of some", c.record))...); len(in) > 0 {
						t.Fatalf("version %d, %d bytes, again: left in %q", version, k, in)
					}
					mustClose(t, l)
				}
			}
		}
	}
}
