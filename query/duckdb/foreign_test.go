package duckdb

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestFileOfAnotherDatabase: a file that begins like one of SQLite's, which DuckDB would
// load an extension for, is damage: it is set aside, and a check says so.
func TestFileOfAnotherDatabase(t *testing.T) {
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
