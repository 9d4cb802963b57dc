package backup

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/blobtree"
)

// TestLogThatWentApart: a backup of a directory that was restored and served since does not
// continue with the log of the directory from before, though both are of one identity. One
// from before they went apart does.
func TestLogThatWentApart(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.o.logs = nil
	put := func(dir, text string) {
		t.Helper()
		l, err := file.Open(dir, file.Options{FS: w.fs})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(context.Background(), 0, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	back := func(dir string) string {
		t.Helper()
		o := w.o
		o.Dir = dir
		done, err := Make(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		return done.Name
	}
	if err := w.fs.MkdirAll("old", 0o755); err != nil {
		t.Fatal(err)
	}
	put("old/log", "both")
	before := back("old")
	put("old/log", "old")
	if err := w.restore("spare", ""); err != nil {
		t.Fatal(err)
	}
	put("spare/log", "new")
	back("spare")

	o := w.o
	o.Dir, o.Log = "new", "old/log"
	_, err := Restore(context.Background(), o, "")
	if err == nil || !strings.Contains(err.Error(), "old/log/p0/00000000000000000000.log has another record at offset 1") || !strings.Contains(err.Error(), "--list") || strings.Contains(err.Error(), "\n") {
		t.Errorf("joined: %v", err)
	}
	if done, err := Restore(context.Background(), o, before); err != nil || done.Records != 1 {
		t.Errorf("%+v %v", done, err)
	}
	if got := read(t, w.fs, "new")["log/p0/00000000000000000000.log"]; !strings.Contains(got, "old") || strings.Contains(got, "new") {
		t.Error("the log is not that which is left")
	}
}

// incompressible is a record that takes as many bytes in the log.
func incompressible(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b) // it never fails
	return b
}

// TestLogThatWasTrimmedBehindTheBackup: nothing is damaged, so the refusal says which records
// are missing and which backups continue with what is left of the log. A backup that says
// where its log ends is not fetched for that.
func TestLogThatWasTrimmedBehindTheBackup(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.o.logs, w.o.Dir = nil, "old"
	if err := w.fs.MkdirAll("old", 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := file.Open("old/log", file.Options{FS: w.fs, SegmentBytes: 4096}) // each record has its segment
	if err != nil {
		t.Fatal(err)
	}
	put := func(n int) {
		t.Helper()
		for range n {
			if _, err := l.Append(context.Background(), 0, incompressible(0, 4096)); err != nil {
				t.Fatal(err)
			}
		}
	}
	place, err := OpenPlace(w.o)
	if err != nil {
		t.Fatal(err)
	}
	running := func() string {
		t.Helper()
		links, err := l.Link("links")
		if err != nil {
			t.Fatal(err)
		}
		r := Running{Dir: "old", Log: l.ID(), Ends: links.Ends, Last: func() ([]blobtree.Source, error) { return nil, nil },
			Check: func(context.Context, func(context.Context, int) error, func(string) bool) error { return nil }}
		for _, f := range links.Files {
			r.Sources = append(r.Sources, blobtree.Source{Path: "log/" + f.Path, From: w.fs.PathJoin("links", f.Path), Size: f.Size})
		}
		done, err := place.Make(context.Background(), r)
		if err := errors.Join(err, w.fs.RemoveAll("links")); err != nil {
			t.Fatal(err)
		}
		return done.Name
	}
	put(3)
	early := running()
	put(1)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	stopped, err := Make(context.Background(), w.o)
	if err != nil {
		t.Fatal(err)
	}
	if l, err = file.Open("old/log", file.Options{FS: w.fs, SegmentBytes: 4096}); err != nil {
		t.Fatal(err)
	}
	put(4)
	late := running()
	put(2)
	if err := l.Trim(0, 6); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o := w.o
	o.Dir, o.Log = "new", "old/log"
	for name, missing := range map[string]string{early: "the records 3 to 5 are", stopped.Name: "the records 4 to 5 are"} {
		_, err := Restore(context.Background(), o, name)
		if err == nil || !strings.Contains(err.Error(), "old/log/p0 was trimmed below record 6") || !strings.Contains(err.Error(), missing) ||
			!strings.Contains(err.Error(), "--list") || strings.Contains(err.Error(), "damaged") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
		_, err = w.fs.Stat("new/log/p0")
		if fetched := err == nil; fetched != (name == stopped.Name) {
			t.Errorf("%s: fetched: %v", name, fetched)
		}
	}
	if done, err := Restore(context.Background(), o, late); err != nil || done.Records != 2 {
		t.Errorf("%+v %v", done, err)
	}
}

// TestLogDamagedBeforeTheBackup: a byte is damaged that the backup of a stopped server has
// whole, in the segment file that grew since. What stands there behind the backup's records,
// a mark or a write that was cut off, is no record: all records behind the backup come back.
func TestLogDamagedBeforeTheBackup(t *testing.T) {
	const segment = "log/p0/00000000000000000000.log"
	for name, x := range map[string]struct {
		more int // appends since the backup
		// tail is what stands behind the records when the backup is made, after a crash; nil
		// after a stop.
		tail []byte
	}{
		"stopped":            {more: 3},
		"stopped, one batch": {more: 1},
		"nothing behind":     {},
		"crashed":            {more: 3, tail: bytes.Repeat([]byte{0xA5}, 5000)},
		"crashed, one batch": {more: 1, tail: bytes.Repeat([]byte{0xA5}, 5000)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, vfs.NewMem())
			w.o.logs, w.o.Dir = nil, "old"
			if err := w.fs.MkdirAll("old", 0o755); err != nil {
				t.Fatal(err)
			}
			put := func(n int) {
				t.Helper()
				l, err := file.Open("old/log", file.Options{FS: w.fs})
				if err != nil {
					t.Fatal(err)
				}
				for i := range n {
					if _, err := l.Append(context.Background(), 0, incompressible(byte(i), 1000)); err != nil {
						t.Fatal(err)
					}
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
			}
			overwrite := func(at int64, b []byte) {
				t.Helper()
				f, err := w.fs.OpenReadWrite("old/"+segment, vfs.WriteCategoryUnspecified)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := f.WriteAt(b, at); err != nil {
					t.Fatal(err)
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
			}
			put(2)
			if x.tail != nil {
				c, err := file.Check(w.fs, "old/log")
				if err != nil {
					t.Fatal(err)
				}
				overwrite(c.Growing["old/"+segment], x.tail)
			}
			if _, err := Make(context.Background(), w.o); err != nil {
				t.Fatal(err)
			}
			put(x.more)
			want := read(t, w.fs, "old")[segment]
			overwrite(500, []byte("damage"))

			o := w.o
			o.Dir, o.Log = "new", "old/log"
			done, err := Restore(context.Background(), o, "")
			if err != nil || done.Records != int64(x.more) {
				t.Fatalf("%+v %v", done, err)
			}
			got := read(t, w.fs, "new")[segment]
			if strings.TrimRight(got, "\x00") != strings.TrimRight(want, "\x00") {
				t.Error("the segment is not what it was before the damage")
			}
		})
	}
}
