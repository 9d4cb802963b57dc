package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestDamagePageAsWritten runs each command of the page "When something is damaged" in
// its order, and expects the exit status that the page says: on a directory whose state,
// history and meta file of the log are damaged, and whose log loses a record then.
func TestDamagePageAsWritten(t *testing.T) {
	testlevel.SkipQuick(t, "carries out a page of docs")
	t.Parallel()
	_, page, found := strings.Cut(readFile(t, "../../docs/operations/failures.md"), "\n## When something is damaged\n")
	page, _, _ = strings.Cut(page, "\n## ")
	var commands []string
	for _, m := range regexp.MustCompile(`(?m)^    muster (.*)$`).FindAllStringSubmatch(page, -1) {
		commands = append(commands, m[1])
	}
	want := []struct {
		begins string
		code   int
	}{{"check", exitDamaged}, {"check", exitDamaged}, {"repair", exitDamaged}, {"repair", exitOK}, {"restore", exitOK}, {"restore", exitOK}, {"repair", exitOK}, {"check", exitOK}}
	if !found || len(commands) != len(want) {
		t.Fatalf("the page has the commands %q", commands)
	}
	dir, backups := t.TempDir(), t.TempDir()
	data, restoredTo := filepath.Join(dir, "data"), filepath.Join(dir, "new", "data")
	ok(t, os.Mkdir(filepath.Dir(restoredTo), 0o700))
	filled(t, dir, func(s *server) {
		if code, _, errs := muster(t, "", "backup", "--data", data, "--to", "file://"+backups); code != 0 {
			t.Fatalf("%d %s", code, errs)
		}
		s.event(`{"event_type":"seen","user":{"email":"later@x.io"}}`)
		s.stop()
	})
	flip(t, one(t, data+"/state/p0/checkpoints/0*/MANIFEST"))
	flip(t, data+"/log/meta")
	ok(t, os.Remove(data+"/history.duckdb"))
	// A word of the page may begin with that of another: the longer ones first.
	place := strings.NewReplacer("NEW-DIR", restoredTo, "file:///mnt/backups", "file://"+backups, "DIR", data)
	for i, c := range commands {
		if !strings.HasPrefix(c, want[i].begins+" ") {
			t.Fatalf("command %d of the page is %q", i, c)
		}
		switch i {
		case 4: // the log is damaged from here on, where the backup has it
			damageByte(t, one(t, data+"/log/p0/*.log"), 2000)
			ok(t, os.RemoveAll(data+"/state"))
		case 5:
			if code, _, errs := muster(t, "", "repair", "--data", restoredTo); code != 0 {
				t.Fatalf("%d %s", code, errs)
			}
			s := serveRestored(t, dir)
			if n := s.events("seen"); n != 61 {
				t.Errorf("with the log there are %d events", n)
			}
			s.stop()
			ok(t, os.RemoveAll(restoredTo))
		}
		if code, out, errs := muster(t, "", strings.Fields(place.Replace(c))...); code != want[i].code {
			t.Fatalf("muster %s: %d instead of %d\n%s%s", c, code, want[i].code, out, errs)
		}
	}
	s := serveRestored(t, dir)
	if n := s.events("seen"); n != 60 {
		t.Errorf("without the log there are %d events", n)
	}
	s.stop()
}

// serveRestored serves the directory that was restored to dir/new.
func serveRestored(t *testing.T, dir string) *server {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "credentials.json"))
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(dir, "new", "credentials.json"), b, 0o600))
	return serve(t, filepath.Join(dir, "new"))
}
