package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestL1FileInPlaceOfDirectory: a file where a directory of the state must be is reported
// by check, set aside by a start or by repair, and costs nothing; in the place of a
// directory of the log it refuses the start, in one line, and nothing is changed.
func TestL1FileInPlaceOfDirectory(t *testing.T) {
	testlevel.SkipQuick(t, "starts many servers")
	t.Parallel()
	d := newDamaged(t, false)
	place := func(path string) string {
		t.Helper()
		at := filepath.Join(d.copy(t), path)
		ok(t, os.RemoveAll(at))
		ok(t, os.WriteFile(at, []byte("a file"), 0o600))
		return strings.TrimSuffix(at, "/"+path)
	}
	newest := one(t, d.dir+"/state/p0/checkpoints/0*")
	for _, path := range []string{"state", "state/p0", "state/p0/checkpoints", "state/p0/live", "state/p0/keys", "state/p0/segments", "state/p0/spool",
		"state/p0/checkpoints/" + filepath.Base(newest), "state/p0/checkpoints/" + filepath.Base(newest) + "/pebble", "state/p0/checkpoints/" + filepath.Base(newest) + "/keys"} {
		if d.check(t, place(path), path) {
			t.Errorf("%s: refused", path)
		}
		dir := place(path)
		want := 3
		if path == "state/p0/live" { // each start rebuilds it
			want = 0
		}
		if code, out, errs := muster(t, "", "check", "--data", dir); code != want {
			t.Errorf("%s: check: %d\n%s%s", path, code, out, errs)
		}
		if code, out, errs := muster(t, "", "repair", "--data", dir); code != 0 {
			t.Errorf("%s: repair: %d\n%s%s", path, code, out, errs)
		}
		if d.check(t, dir, path+", repaired") {
			t.Errorf("%s: refused behind a repair", path)
		}
	}
	for _, path := range []string{"log", "log/p0"} {
		dir := place(path)
		before := contents(t, dir)
		if code, out, _ := muster(t, "", "check", "--data", dir); code != 4 || !strings.Contains(out, filepath.Join(dir, path)) {
			t.Errorf("%s: check: %d\n%s", path, code, out)
		}
		if !d.check(t, dir, path) {
			t.Errorf("%s: not refused", path)
		}
		delete(before, filepath.Join(dir, "LOCK"))
		after := contents(t, dir)
		for name, b := range before {
			if after[name] != b {
				t.Errorf("%s: %s was changed", path, name)
			}
		}
	}
}
