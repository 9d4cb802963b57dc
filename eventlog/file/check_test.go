package file

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
)

// TestCheckIsWhatAStartSays: whatever byte is damaged or file is missing, Check calls
// the log whole exactly when a start opens it and reads all of it, and changes nothing.
func TestCheckIsWhatAStartSays(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, how := range []stage{closed, killed, unmarked} {
		files, _, want, _ := damageLog(t, how)
		for path, b := range files {
			if len(b) == 0 {
				delete(files, path) // the lock
			}
		}
		compare := func(what string, files map[string][]byte) {
			t.Helper()
			fsys := restore(t, files)
			got, err := Check(fsys, "log")
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if after := snapshot(t, fsys, "log"); len(after) != len(files) {
				t.Fatalf("%s: files were made or removed", what)
			} else {
				for path, b := range after {
					if !slices.Equal(b, files[path]) {
						t.Fatalf("%s: %s was changed", what, path)
					}
				}
			}
			start, have, err := inspect(fsys)
			switch {
			case got.Whole() != (err == nil):
				t.Fatalf("%s: whole %v, a start says %v\n%+v", what, got.Whole(), err, got.Findings)
			case err == nil && (got.Starts[0] != start || got.Ends[0] != start+int64(len(have))):
				t.Fatalf("%s: records %d to %d, a start has %d to %d", what, got.Starts[0], got.Ends[0], start, start+int64(len(have)))
			}
		}
		compare(string(how), files)
		if got, err := Check(restore(t, files), "log"); err != nil || got.Ends[0]-got.Starts[0] != int64(len(want)) {
			t.Errorf("%s: %+v %v", how, got, err)
		}
		for path, b := range files {
			for range 150 {
				at := r.IntN(len(b))
				torn := mapsWith(files, path, slices.Clone(b))
				torn[path][at] ^= 1 << r.IntN(8)
				compare(string(how)+": flip in "+path, torn)
			}
			for range 30 {
				compare(string(how)+": cut "+path, mapsWith(files, path, slices.Clone(b[:r.IntN(len(b))])))
			}
			without := maps.Clone(files)
			delete(without, path)
			compare(string(how)+": without "+path, without)
		}
	}
}

// logID is the identity of the log with these files.
func logID(t *testing.T, files map[string][]byte) uint64 {
	t.Helper()
	meta, _, err := readSmall(restore(t, files), metaPath, metaMagic)
	if err != nil {
		t.Fatal(err)
	}
	return meta.value
}

func mapsWith(files map[string][]byte, path string, b []byte) map[string][]byte {
	out := map[string][]byte{}
	for k, v := range files {
		out[k] = v
	}
	out[path] = b
	return out
}

// TestRepairMeta: the meta file follows from the segments, and from nothing else.
func TestRepairMeta(t *testing.T) {
	t.Parallel()
	files, start, want, _ := damageLog(t, killed)
	for _, meta := range [][]byte{nil, []byte("damaged")} {
		torn := mapsWith(files, "log/meta", meta)
		if _, there := files["log/meta"]; !there {
			t.Fatal("no meta file")
		}
		if meta == nil {
			delete(torn, "log/meta")
		}
		fsys := restore(t, torn)
		got, err := Check(fsys, "log")
		if err != nil || got.Whole() || !got.Findings[0].Repairable {
			t.Fatalf("%+v %v", got, err)
		}
		if err := Repair(fsys, "log"); err != nil {
			t.Fatal(err)
		}
		if b := readFile(t, fsys, "log/meta"); !slices.Equal(b, files["log/meta"]) {
			t.Errorf("another file: %x, was %x", b, files["log/meta"])
		}
		if at, have, err := inspect(fsys); err != nil || at != start || len(have) != len(want) {
			t.Errorf("%d %d %v", at, len(have), err)
		}
	}
	fsys := vfs.NewMem()
	if err := fsys.MkdirAll("log", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Repair(fsys, "log"); err == nil {
		t.Error("made from nothing")
	}
}

// TestRepairStart: where the records of a trimmed log begin follows from its segments, if
// these are all there. A start names the file, also when it was removed or is an older one.
func TestRepairStart(t *testing.T) {
	t.Parallel()
	files, start, want, _ := damageLog(t, killed)
	const path = "log/p0/start"
	older := small{magic: startMagic, value: uint64(start - 1)}
	for _, b := range [][]byte{nil, {}, []byte("damaged"), slices.Concat(files[path][:20], []byte{1, 2, 3, 4}, files[path][24:]), older.encode()} {
		damaged := mapsWith(files, path, b)
		if b == nil {
			delete(damaged, path)
		}
		fsys := restore(t, damaged)
		got, err := Check(fsys, "log")
		if err != nil || got.Whole() || got.Starts[0] != start || got.Ends[0] != start+int64(len(want)) {
			t.Fatalf("%+v %v", got, err)
		}
		for _, f := range got.Findings {
			if (f.Path == path) != (f.Err != nil) || f.Err != nil && (!f.Repairable || !strings.Contains(f.Err.Error(), "muster repair")) {
				t.Errorf("%+v", f)
			}
		}
		if _, _, err := inspect(fsys); asCorrupt(err) == nil || asCorrupt(err).File != path || !strings.Contains(err.Error(), "muster repair") {
			t.Errorf("opened: %v", err)
		}
		if err := Repair(fsys, "log"); err != nil {
			t.Fatal(err)
		}
		if b := readFile(t, fsys, path); !slices.Equal(b, files[path]) {
			t.Errorf("another file: %x, was %x", b, files[path])
		}
		if at, have, err := inspect(fsys); err != nil || at != start || len(have) != len(want) {
			t.Errorf("%d %d %v", at, len(have), err)
		}
	}
	// A trim that was cut off behind start and end has left the segments before them.
	fsys := vfs.NewMem()
	l := mustOpen(t, "log", smallOptions(fsys))
	for i := range int64(100) {
		mustAppend(t, l, 0, payload(i, 150))
	}
	all := snapshot(t, fsys, "log")
	if err := l.Trim(0, 60); err != nil {
		t.Fatal(err)
	}
	trimmedTo, _ := l.partitions[0].bounds()
	mustClose(t, l)
	cut := snapshot(t, fsys, "log")
	for name, b := range all {
		if _, there := cut[name]; !there {
			cut[name] = b
		}
	}
	delete(cut, path)
	fsys = restore(t, cut)
	if err := Repair(fsys, "log"); err != nil {
		t.Fatal(err)
	}
	if got, err := Check(fsys, "log"); err != nil || !got.Whole() || got.Starts[0] != trimmedTo {
		t.Errorf("after a trim that was cut off: %+v %v, want it to begin at %d", got, err, trimmedTo)
	}
	// A file end of an older build does not say that there was a trim.
	said, ok := decodeEnd(files[endPath], 0, logID(t, files))
	if !ok || said.start != start {
		t.Fatalf("the end says %+v %v, the records begin with %d", said, ok, start)
	}
	said.start = 0
	old := mapsWith(files, endPath, encodeEnd(0, logID(t, files), said))
	mustClose(t, mustOpen(t, "log", smallOptions(restore(t, old))))
	delete(old, path)
	if _, _, err := inspect(restore(t, old)); err == nil || !strings.Contains(err.Error(), "the file start beside it is what is missing") {
		t.Errorf("opened: %v", err)
	}
	// Without one of the segments in between it is not known.
	fsys = vfs.NewMem()
	l = mustOpen(t, "log", smallOptions(fsys))
	for i := range int64(200) {
		mustAppend(t, l, 0, payload(i, 150))
	}
	if err := l.Trim(0, 60); err != nil {
		t.Fatal(err)
	}
	var segments []string
	for _, s := range l.partitions[0].mu.segments {
		segments = append(segments, s.path)
	}
	if err := fsys.Remove(path); err != nil {
		t.Fatal(err)
	}
	if gone, err := l.Missing(); err != nil || len(gone) != 1 || asCorrupt(gone[0]).File != path {
		t.Errorf("removed while in use: %v %v", gone, err)
	}
	mustClose(t, l)
	if len(segments) < 3 {
		t.Fatalf("%d segments are too few for this test", len(segments))
	}
	torn := mapsWith(snapshot(t, fsys, "log"), path, nil)
	delete(torn, segments[1])
	fsys = restore(t, torn)
	got, err := Check(fsys, "log")
	if err != nil || len(got.Findings) < 2 || slices.ContainsFunc(got.Findings, func(f Finding) bool { return f.Repairable }) {
		t.Errorf("%+v %v", got, err)
	}
	if err := Repair(fsys, "log"); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("repaired: %v", err)
	}
}

// TestReplay: a stopped log is read from any of its records on, with what was redacted
// left out, and stays as it is.
func TestReplay(t *testing.T) {
	t.Parallel()
	for _, how := range []stage{unmarked, killed} {
		files, start, want, _ := damageLog(t, how)
		fsys := restore(t, files)
		c, err := Check(fsys, "log")
		if err != nil || !c.Whole() {
			t.Fatalf("%+v %v", c, err)
		}
		for from := start; from <= c.Ends[0]; from++ {
			next := from
			err := Replay(t.Context(), fsys, "log", c.ID, 0, from, c.Ends[0], func(offset int64, data []byte) error {
				if offset != next || !slices.Equal(data, want[offset-start]) {
					t.Fatalf("record %d at %d", offset, next)
				}
				next++
				return nil
			})
			if err != nil || next != c.Ends[0] {
				t.Fatalf("from %d: %d of %d, %v", from, next, c.Ends[0], err)
			}
		}
		if err := Replay(t.Context(), fsys, "log", c.ID, 0, start, c.Ends[0]+1, func(int64, []byte) error { return nil }); err == nil {
			t.Error("a record that is not there")
		}
		if after := snapshot(t, fsys, "log"); fmt.Sprint(after) != fmt.Sprint(files) {
			t.Error("files were changed")
		}
	}
}

// TestLinkIsTheLog: what Link made, with its files cut to their sizes, is a log with all
// that was durable, whatever is appended and trimmed meanwhile.
func TestLinkIsTheLog(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	l := mustOpen(t, "log", smallOptions(fsys))
	var want [][]byte
	put := func(n int) {
		for range n {
			data := payload(int64(len(want)), 150)
			mustAppend(t, l, 0, data)
			want = append(want, data)
		}
	}
	for round := range 6 {
		put(20)
		before := len(want)
		links, err := l.Link("linked")
		if err != nil {
			t.Fatal(err)
		}
		put(30)
		if round == 3 {
			if err := l.Trim(0, int64(before)); err != nil {
				t.Fatal(err)
			}
		}
		last, err := l.LinkSidecars("linked", links)
		if err != nil {
			t.Fatal(err)
		}
		copied := map[string][]byte{}
		for _, f := range append(links.Files, last...) {
			b := readFile(t, fsys, "linked/"+f.Path)
			if f.Size >= 0 {
				b = b[:f.Size]
			}
			copied["log/"+f.Path] = b
		}
		start, got, err := inspect(restore(t, copied))
		if err != nil || start != links.Starts[0] || start+int64(len(got)) != int64(before) || links.Ends[0] != int64(before) {
			t.Fatalf("round %d: %d to %d instead of %d: %v", round, start, start+int64(len(got)), before, err)
		}
		for i, b := range got {
			if !slices.Equal(b, want[start+int64(i)]) {
				t.Fatalf("round %d: record %d differs", round, start+int64(i))
			}
		}
		if err := fsys.RemoveAll("linked"); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, l)
}

// TestLinkWhileRedacted: what is redacted between the linking and the end of the copy,
// in segments that were copied before or after it, also in the one that was written at
// the linking, is redacted in the copy.
func TestLinkWhileRedacted(t *testing.T) {
	t.Parallel()
	for _, copyFirst := range []bool{false, true} {
		fsys := vfs.NewMem()
		l := redactLog(t, fsys)
		if err := l.Redact(t.Context(), 0, []eventlog.Redaction{anna(0)}); err != nil {
			t.Fatal(err)
		}
		links, err := l.Link("linked")
		if err != nil {
			t.Fatal(err)
		}
		copied := map[string][]byte{}
		take := func(files []Linked) {
			for _, f := range files {
				b := readFile(t, fsys, "linked/"+f.Path)
				if f.Size >= 0 {
					b = b[:f.Size]
				}
				copied["log/"+f.Path] = b
			}
		}
		if copyFirst {
			take(links.Files)
		}
		mustAppend(t, l, 0, []byte("record 7 of Anna and Bert")) // behind the link, in its last segment
		if err := l.Roll(0); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, 0, []byte("record 8 of Anna and Bert"))
		if err := l.Redact(t.Context(), 0, []eventlog.Redaction{anna(1), anna(4), anna(6), anna(7)}); err != nil {
			t.Fatal(err)
		}
		if !copyFirst {
			take(links.Files)
		}
		last, err := l.LinkSidecars("linked", links)
		if err != nil {
			t.Fatal(err)
		}
		take(last)
		mustClose(t, l)
		fsys = restore(t, copied)
		if c, err := Check(fsys, "log"); err != nil || !c.Whole() || c.Ends[0] != 7 {
			t.Fatalf("%+v %v", c, err)
		}
		l = mustOpen(t, "log", Options{FS: fsys})
		for i, text := range readRecords(t, l) {
			want := fmt.Sprintf("record %d of Anna and Bert", i)
			if slices.Contains([]int{0, 1, 4, 6}, i) {
				want = fmt.Sprintf("record %d of somebody and Bert", i)
			}
			if text != want {
				t.Errorf("copied first %v: %q", copyFirst, text)
			}
		}
		mustClose(t, l)
		// Records 2, 3 and 5 have it, and nothing else.
		if in := inFiles(t, fsys, "Anna"); len(in) != 2 || !strings.HasSuffix(in[0], ": 1") || !strings.HasSuffix(in[1], ": 2") {
			t.Errorf("copied first %v: in %q", copyFirst, in)
		}
	}
}
