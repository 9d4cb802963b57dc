package duckdb

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFileOfAnotherDatabase: a file that begins like one of SQLite's, which DuckDB would
// load an extension for, is damage: it is set aside, and a check says so.
func TestFileOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h.duckdb")
	content := make([]byte, 8192)
	copy(content, "SQLite format 3\x00")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	o := resilientOptions(path)
	if _, found, err := Look(context.Background(), path, o.Log, o.Options, 0); found || err != nil {
		t.Errorf("the start would be refused: %v %v", found, err)
	}
	if _, err := Inspect(context.Background(), path, o.Log, Options{}); !Damaged(err) {
		t.Errorf("no damage: %v", err)
	}
	r := openResilient(t, path)
	if r.Replaced() != 1 {
		t.Errorf("%d files were replaced", r.Replaced())
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestPipe: what would wait for another process when it is opened is refused.
func TestPipe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h.duckdb")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r := OpenResilient(resilientOptions(path))
	opened := r.Opened(t.Context())
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	_, inspected := Inspect(t.Context(), path, resilientLog, Options{})
	_, _, looked := Look(t.Context(), path, resilientLog, Options{}, 0)
	for _, err := range []error{opened, inspected, looked} {
		if err == nil || !strings.Contains(err.Error(), path+" is a pipe, a socket or a device") {
			t.Error(err)
		}
	}
}

// TestSymbolicLink: a symbolic link in the place of the file is refused with what to do, and
// neither it nor what it leads to is changed.
func TestSymbolicLink(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h.duckdb")
	elsewhere := filepath.Join(t.TempDir(), "x")
	r := openResilient(t, elsewhere)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Fatal(err)
	}
	o := resilientOptions(path)
	refused := OpenResilient(o)
	err := refused.Opened(t.Context())
	if e := refused.Close(); e != nil {
		t.Error(e)
	}
	_, looked := Inspect(t.Context(), path, o.Log, Options{})
	for _, err := range []error{err, looked} {
		if err == nil || !strings.Contains(err.Error(), path+" is a symbolic link. Put the file itself there") {
			t.Error(err)
		}
	}
	if to, err := os.Readlink(path); err != nil || to != elsewhere {
		t.Error(to, err)
	}
}
