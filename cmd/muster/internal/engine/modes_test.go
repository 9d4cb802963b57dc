package engine

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMakePrivate(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(path string, mode fs.FileMode) {
		t.Helper()
		must(os.MkdirAll(filepath.Dir(path), 0o755))
		must(os.WriteFile(path, []byte("x"), 0o600))
		must(os.Chmod(path, mode))
	}
	must(os.Chmod(dir, 0o755))
	write(filepath.Join(outside, "victim"), 0o644)
	must(os.Chmod(outside, 0o755))
	for path, mode := range map[string]fs.FileMode{
		"LOCK": 0o644, "log/0/a.log": 0o664, "state/live/000001.sst": 0o666, "state/live/read-only": 0o444, "history.duckdb": 0o644, "history.duckdb.wal": 0o644,
		"history.duckdb.tmp/x": 0o644, "outbox/m": 0o600, "moved.json.tmp": 0o644, "tls/cert.pem": 0o644, "notes.txt": 0o644,
	} {
		write(filepath.Join(dir, path), mode)
	}
	must(os.Chmod(filepath.Join(dir, "log"), 0o777))
	must(os.Symlink(outside, filepath.Join(dir, "log", "link")))
	must(os.Symlink(filepath.Join(outside, "victim"), filepath.Join(dir, "state", "link")))
	must(os.Symlink(outside, filepath.Join(dir, "outbox", "link")))
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	must(makePrivate(dir, log))
	for path, want := range map[string]fs.FileMode{
		".": 0o700, "LOCK": 0o600, "log": 0o700, "log/0": 0o700, "log/0/a.log": 0o600, "state": 0o700, "state/live": 0o700, "state/live/000001.sst": 0o600,
		"state/live/read-only": 0o400, "history.duckdb": 0o600, "history.duckdb.wal": 0o600, "history.duckdb.tmp": 0o700, "history.duckdb.tmp/x": 0o600,
		"outbox": 0o700, "outbox/m": 0o600, "moved.json.tmp": 0o600,
		// What is not muster's stays as it is.
		"tls": 0o755, "tls/cert.pem": 0o644, "notes.txt": 0o644,
	} {
		info, err := os.Stat(filepath.Join(dir, path))
		must(err)
		if have := info.Mode().Perm(); have != want {
			t.Errorf("%s has mode %o, want %o", path, have, want)
		}
	}
	for path, want := range map[string]fs.FileMode{"": 0o755, "victim": 0o644} {
		info, err := os.Stat(filepath.Join(outside, path))
		must(err)
		if have := info.Mode().Perm(); have != want {
			t.Errorf("a link was followed: %s outside has mode %o", path, have)
		}
	}
	// 7 directories (with the data directory) and 8 files were open.
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "made_private=15") {
		t.Errorf("the log has %s", text)
	}
	out.Reset()
	must(makePrivate(dir, log))
	if out.Len() > 0 {
		t.Errorf("nothing was left to do, and the log has %s", &out)
	}
}
