//go:build unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// openFiles lists what others than the owner may use below a directory.
func openFiles(t *testing.T, dir string) (list []string) {
	t.Helper()
	ok(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			list = append(list, info.Mode().String()+" "+path)
		}
		return err
	}))
	return list
}

// TestDataIsPrivate: no other user may read the data directory, whatever the umask
// is, also one that was made open, or filled by a version that left it so.
func TestDataIsPrivate(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	ok(t, os.Mkdir(data, 0o755))
	s := serve(t, dir)
	syscall.Umask(old) // of the tests that run beside this one
	s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	s.preview(`{"kind":"activity","event":"seen"}`)
	if list := openFiles(t, data); len(list) > 0 {
		t.Errorf("while it runs: %s", list)
	}
	s.stop()
	if list := openFiles(t, data); len(list) > 0 {
		t.Errorf("after the stop: %s", list)
	}
	ok(t, filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	}))
	s = serve(t, dir)
	if list := openFiles(t, data); len(list) > 0 {
		t.Errorf("a directory that was open: %s", list)
	}
	if n := strings.Count(s.log(), "made_private="); n != 1 {
		t.Errorf("%d lines say how many were open:\n%s", n, s.log())
	}
	if s.events("seen") != 1 {
		t.Error("the event is gone")
	}
	s.stop()

	backups := filepath.Join(dir, "backups")
	ok(t, os.Mkdir(backups, 0o700))
	if code, _, errs := muster(t, "", "backup", "--data", data, "--to", "file://"+backups); code != exitOK {
		t.Fatalf("%d %s", code, errs)
	}
	restored := filepath.Join(dir, "restored")
	ok(t, os.Mkdir(restored, 0o755))
	if code, _, errs := muster(t, "", "restore", "--data", restored, "--from", "file://"+backups); code != exitOK {
		t.Fatalf("%d %s", code, errs)
	}
	for _, list := range [][]string{openFiles(t, backups), openFiles(t, restored)} {
		if len(list) > 0 {
			t.Errorf("a backup, and what was restored from it: %s", list)
		}
	}
}
