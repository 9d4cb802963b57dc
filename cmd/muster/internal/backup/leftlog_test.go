package backup

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog/file"
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
