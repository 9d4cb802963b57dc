package file

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	endPath  = "log/p0/" + endName
	metaPath = "log/" + metaName
)

var firstSegment = "log/p0/" + segmentName(0)

// killedLog is a log whose ends were noted at 4 records and that was killed at 10. It
// returns its files, and the bytes of its segment that hold the noted records.
func killedLog(t *testing.T) (files map[string][]byte, noted int) {
	t.Helper()
	fsys := vfs.NewMem()
	l, err := open("log", smallOptions(fsys))
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(10) {
		if _, _, err := l.partitions[0].enqueue(payload(i, 20), nil); err != nil {
			t.Fatal(err)
		}
		l.partitions[0].step()
		if i == 3 {
			if err := l.NoteEnds(); err != nil {
				t.Fatal(err)
			}
			noted = int(l.partitions[0].w.pos)
		}
	}
	l.partitions[0].idle()
	if err := l.release((*partition).abandon); err != nil {
		t.Fatal(err)
	}
	return snapshot(t, fsys, "log"), noted
}

// TestL1LogThatLostRecords: a log that was killed, and whose segment lost records that
// were there when its end was noted, is refused, and nothing mends it. What was stored
// behind the note looks like a torn batch.
func TestL1LogThatLostRecords(t *testing.T) {
	t.Parallel()
	files, noted := killedLog(t)
	whole := len(bytes.TrimRight(files[firstSegment], "\x00"))
	for cut := segmentHeaderSize; cut < whole; cut += 7 {
		for name, content := range map[string][]byte{
			"cut":   files[firstSegment][:cut],
			"zeros": append(bytes.Clone(files[firstSegment][:cut]), make([]byte, len(files[firstSegment])-cut)...),
		} {
			damaged := mapsWith(files, firstSegment, content)
			if cut >= noted {
				mustClose(t, mustOpen(t, "log", smallOptions(restore(t, damaged))))
				continue
			}
			refusedForGood(t, damaged, firstSegment)
			// Not even the loss of what tells makes a new log of it, nor one that has
			// only its first records.
			delete(damaged, endPath)
			if cut < segmentHeaderSize+batchHeaderSize {
				refusedForGood(t, damaged, endPath)
			} else if _, err := Open("log", smallOptions(restore(t, damaged))); asCorrupt(err) == nil || asCorrupt(err).File != endPath {
				t.Errorf("%s at byte %d, without the file end: %v", name, cut, err)
			}
		}
	}
	// Without a meta file a log that holds nothing is begun again, but not this one.
	damaged := mapsWith(files, firstSegment, files[firstSegment][:segmentHeaderSize])
	delete(damaged, metaPath)
	if _, err := Open("log", smallOptions(restore(t, damaged))); asCorrupt(err) == nil || asCorrupt(err).File != metaPath {
		t.Errorf("without a meta file: %v", err)
	}
}

// refusedForGood checks that a log is refused because of a file, in one line that says
// what to do, before and after a repair.
func refusedForGood(t *testing.T, files map[string][]byte, because string) {
	t.Helper()
	fsys := restore(t, files)
	for range 2 {
		_, err := Open("log", smallOptions(fsys))
		if c := asCorrupt(err); c == nil || c.File != because || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "Put the files of the log back as they were, or restore a backup") {
			t.Fatalf("%v", err)
		}
		got, err := Check(fsys, "log")
		if err != nil || !slices.ContainsFunc(got.Findings, func(f Finding) bool { return f.Path == because && f.Err != nil && !f.Repairable }) {
			t.Fatalf("%+v %v", got, err)
		}
		if err := Repair(fsys, "log"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRepairEnd: the note of how far a log goes follows from its segments, if these are
// whole. A start without it is refused.
func TestRepairEnd(t *testing.T) {
	t.Parallel()
	if n, ok := decodeEnd(encodeEnd(0, 1, noted{next: 9, start: 10}), 0, 1); ok || n != (noted{}) {
		t.Errorf("an end before the start says %+v, %v", n, ok)
	}
	files, _ := killedLog(t)
	meta, found, err := readSmall(restore(t, files), metaPath, metaMagic)
	if err != nil || !found || meta.flags != metaEnds {
		t.Fatalf("%+v %v %v", meta, found, err)
	}
	for i, content := range [][]byte{nil, {}, files[endPath][:20], append(bytes.Clone(files[endPath]), 0), flip(files[endPath], 25),
		encodeEnd(0, 1, noted{next: 99}), encodeEnd(1, meta.value, noted{next: 99}), encodeEnd(0, meta.value, noted{next: 9, start: 10})} {
		damaged := mapsWith(files, endPath, content)
		if content == nil {
			delete(damaged, endPath)
		}
		fsys := restore(t, damaged)
		if _, err := Open("log", smallOptions(fsys)); asCorrupt(err) == nil || asCorrupt(err).File != endPath || !strings.Contains(err.Error(), "muster repair") {
			t.Errorf("case %d: %v", i, err)
		}
		if got, err := Check(fsys, "log"); err != nil || got.Whole() || !slices.ContainsFunc(got.Findings, func(f Finding) bool { return f.Path == endPath && f.Repairable }) {
			t.Errorf("case %d: %+v %v", i, got, err)
		}
		if err := Repair(fsys, "log"); err != nil {
			t.Fatal(err)
		}
		if n, ok := decodeEnd(readFile(t, fsys, endPath), 0, meta.value); !ok || n.next != 10 || n.start != 0 {
			t.Errorf("case %d: it says %+v, %v", i, n, ok)
		}
		mustClose(t, mustOpen(t, "log", smallOptions(fsys)))

		// Not where records are damaged.
		damaged[firstSegment] = flip(files[firstSegment], segmentHeaderSize+batchHeaderSize+20)
		fsys = restore(t, damaged)
		if err := Repair(fsys, "log"); err != nil {
			t.Fatal(err)
		}
		if now := snapshot(t, fsys, "log"); !bytes.Equal(now[endPath], content) {
			t.Errorf("case %d: written beside damage", i)
		}
	}
}

// TestStartNotesTheEnd: a log that was killed before its end was noted, or that an older
// build made, is opened, and noted then; so is a stop's.
func TestStartNotesTheEnd(t *testing.T) {
	t.Parallel()
	files, _ := killedLog(t)
	meta, _, err := readSmall(restore(t, files), metaPath, metaMagic)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(fsys vfs.FS, want int64) {
		t.Helper()
		m, _, err := readSmall(fsys, metaPath, metaMagic)
		n, ok := decodeEnd(readFile(t, fsys, endPath), 0, meta.value)
		if err != nil || m.flags != metaEnds || !ok || n.next != want {
			t.Errorf("flags %d, noted %+v %v, want %d; %v", m.flags, n, ok, want, err)
		}
	}
	meta.flags = 0
	old := mapsWith(files, metaPath, meta.encode())
	for i, end := range [][]byte{files[endPath], flip(files[endPath], 25), nil} {
		damaged := maps.Clone(old)
		damaged[endPath] = end
		if end == nil {
			delete(damaged, endPath)
		}
		fsys := restore(t, damaged)
		if got, err := Check(fsys, "log"); err != nil || !got.Whole() {
			t.Errorf("case %d: %+v %v", i, got, err)
		}
		l := mustOpen(t, "log", smallOptions(fsys))
		compare(fsys, 10)
		mustAppend(t, l, 0, payload(10, 20))
		if err := fsys.Remove(endPath); err != nil {
			t.Fatal(err)
		}
		if gone, err := l.Missing(); err != nil || len(gone) != 1 || asCorrupt(gone[0]).File != endPath {
			t.Errorf("case %d: removed while in use: %v %v", i, gone, err)
		}
		mustClose(t, l)
		compare(fsys, 11)
	}
	// A log that never had a record says nothing, and is opened again and again.
	fsys := vfs.NewMem()
	for range 2 {
		mustClose(t, mustOpen(t, "log", smallOptions(fsys)))
	}
	if m, _, err := readSmall(fsys, metaPath, metaMagic); err != nil || m.flags != 0 {
		t.Errorf("%+v %v", m, err)
	}
}
