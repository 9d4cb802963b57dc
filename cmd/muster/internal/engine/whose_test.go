package engine

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhoseDirectory: a log begins only in a directory that is empty, and never in one
// that has what follows from another log.
func TestWhoseDirectory(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  error
		says  string
	}{
		{name: "empty"},
		{name: "a mount point, and a start that was cut off", files: []string{"lost+found/", "LOCK", "log/LOCK", "log/p0/"}},
		{name: "the credentials file", files: []string{"credentials.json"}},
		{name: "captured messages", files: []string{"outbox/"}},
		{name: "another program's files", files: []string{"thesis.txt"}, want: ErrNotOurs, says: "thesis.txt"},
		{name: "another program's directory", files: []string{"src/main.go"}, want: ErrNotOurs, says: "has src"},
		{name: "another program's directory log", files: []string{"log/app.log"}, want: ErrNotOurs, says: "has log"},
		{name: "another program's log that looks like ours", files: []string{"log/php/error.log", "photo.jpg"}, want: ErrNotOurs, says: "is not empty"},
		{name: "a directory of ours below", files: []string{"old.tmp/log/meta"}, want: ErrNotOurs, says: "has old.tmp"},
		{name: "what was set aside", files: []string{"history.duckdb.damaged-20260102T030405.000Z"}, want: ErrNoLog, says: "damaged-2026"},
		{name: "messages without a log", files: []string{"outbox/000001"}, want: ErrNoLog, says: "has outbox"},
		{name: "after a kill", files: []string{"control.sock", "history.duckdb", "state/p0/x", "a-file"}, want: ErrNoLog, says: "has state, but no records"},
		{name: "state without a log", files: []string{"state/p0/checkpoints/x"}, want: ErrNoLog, says: "Put the log back"},
		{name: "history without a log", files: []string{"history.duckdb"}, want: ErrNoLog, says: "has history.duckdb"},
		{name: "state beside an empty log directory", files: []string{"log/LOCK", "state/p0/MANIFEST"}, want: ErrNoLog, says: "no records in"},
		{name: "a log whose meta file is lost", files: []string{"log/p0/00000000000000000000.log", "state/p0/x", "notes.txt"}},
	} {
		dir := t.TempDir()
		for _, f := range c.files {
			path := filepath.Join(dir, f)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(f, "/") {
				if err := os.MkdirAll(path, 0o700); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := checkWhose(dir, []string{"", filepath.Join(dir, "credentials.json")})
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want == nil {
			continue
		}
		before := list(t, dir)
		if e, err := Open(t.Context(), Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, c.want) || e != nil {
			t.Errorf("%s: open: %v", c.name, err)
		}
		if after := slices.DeleteFunc(list(t, dir), func(p string) bool { return p == "LOCK" && c.want == ErrNoLog }); !slices.Equal(before, after) {
			t.Errorf("%s: the refused start changed %q to %q", c.name, before, after)
		}
	}
}

func list(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); rel != "." {
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
