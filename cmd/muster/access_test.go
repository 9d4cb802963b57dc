package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestExplainAccess: what a process ends with because of lost permissions, or of a file
// in the place of a directory, names the file once and says what to do, in one line.
func TestExplainAccess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	segment := filepath.Join(dir, "log", "p0", "00000000000000000000.log")
	outbox := filepath.Join(dir, "outbox")
	ok(t, os.WriteFile(outbox, nil, 0o600))
	denied := &fs.PathError{Op: "open", Path: segment, Err: syscall.EACCES}
	for _, x := range []struct {
		err  error
		file string
		says string
	}{
		{fmt.Errorf("open the log: open log in %s: open %s: %w", dir, segment, denied), segment, "chown -R"},
		{errors.Join(fmt.Errorf("open the state: %w", denied), denied), segment, "run muster as the user who owns it"},
		{fmt.Errorf("--backup-to: %w", denied), segment, "--backup-to: " + segment},
		{fmt.Errorf("history: open %s/h.duckdb: duckdb: IO Error: Cannot open file \"%s/h.duckdb\": Permission denied", dir, dir), dir + "/h.duckdb", "chown -R"},
		{fmt.Errorf("data directory: the lock file %s cannot be opened: %w", segment, syscall.EACCES), segment, "chown -R"},
		{fmt.Errorf("capture: %w", &fs.PathError{Op: "mkdir", Path: filepath.Join(outbox, "x"), Err: syscall.ENOTDIR}), outbox, "must be a directory. Move it away"},
		{fmt.Errorf("read %s: %w", segment, &fs.PathError{Op: "read", Path: segment, Err: syscall.EISDIR}), segment, "must be a file. Move it away"},
	} {
		text := explain(x.err)
		if strings.Count(text, dir) != 1 || !strings.Contains(text, x.file) || !strings.Contains(text, x.says) || strings.Contains(text, "\n") {
			t.Errorf("%v\nis explained by\n%s", x.err, text)
		}
	}
	for _, err := range []error{
		errors.New("listen tcp :80: bind: permission denied"),
		fmt.Errorf("--credentials: %w. It is left as it is; name another file", denied),
	} {
		if text := explain(err); text != err.Error() {
			t.Errorf("%v\nbecame\n%s", err, text)
		}
	}
}
