package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestBackupIntoItsOwnDirectory is refused, also by another name of the directory, by the
// command and by the flag of the server.
func TestBackupIntoItsOwnDirectory(t *testing.T) {
	testlevel.SkipQuick(t, "starts many servers")
	t.Parallel()
	base := t.TempDir()
	data, link := filepath.Join(base, "data"), filepath.Join(base, "link")
	filled(t, base, (*server).stop)
	ok(t, os.Mkdir(filepath.Join(data, "outbox", "backups"), 0o700))
	ok(t, os.Symlink(data, link))
	before := contents(t, data)
	for _, place := range []string{data, filepath.Join(data, "outbox", "backups"), link} {
		to := "file://" + filepath.ToSlash(place)
		for _, args := range [][]string{{"backup", "--data", data, "--to", to}, {"serve", "--data", data, "--listen", "127.0.0.1:0", "--backup-to", to}} {
			code, out, errs := muster(t, "", args...)
			if code != 2 || !strings.Contains(errs, "is in the data directory "+data) {
				t.Errorf("%q: %d %s %s", args, code, out, errs)
			}
		}
		after := contents(t, data)
		if args := len(after); args < len(before) {
			t.Errorf("%d files, there were %d", args, len(before))
		}
		for name := range after {
			if strings.Contains(name, "manifests") {
				t.Errorf("a backup was made: %s", name)
			}
		}
	}
	outside := "file://" + filepath.ToSlash(t.TempDir())
	if code, out, errs := muster(t, "", "backup", "--data", data, "--to", outside); code != 0 {
		t.Errorf("%d %s %s", code, out, errs)
	}
}
