package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// TestBackupDiskThatIsNotMounted: a server whose backups went to a directory that is missing
// at its start serves, says what to do, and goes on with them once the directory is there. A
// bare directory in its place gets none. The rest of muster passes over the notes of backups.
func TestBackupDiskThatIsNotMounted(t *testing.T) {
	testlevel.SkipQuick(t, "waits for the schedule")
	t.Parallel()
	base, disks := t.TempDir(), t.TempDir()
	data, mount, away := filepath.Join(base, "data"), filepath.Join(disks, "mount"), filepath.Join(disks, "away")
	to := "file://" + filepath.ToSlash(mount)
	flags := []string{"--backup-to", to, "--backup-interval", "1s"}
	ok(t, os.Mkdir(mount, 0o700))
	s := serve(t, base, flags...)
	made := func(s *server) {
		t.Helper()
		n := strings.Count(s.log(), "made a backup")
		eventually.Holds(t, "a backup", func() bool { return strings.Count(s.log(), "made a backup") > n })
	}
	made(s)
	s.stop()
	check := func() {
		t.Helper()
		if code, out, errs := muster(t, "", "check", "--data", data); code != 0 || strings.Contains(out, "backups.json") {
			t.Errorf("%d %s %s", code, out, errs)
		}
	}
	check()
	ok(t, os.Rename(mount, away))

	s = serve(t, base, flags...)
	s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	s.until("the backups that were made at " + to + " before, the newest 2")
	s.until("mount the disk that has them")
	eventually.Holds(t, "a failed backup", func() bool { return s.metric(`muster_backups_total{result="failed"}`) > 0 })
	if at := s.metric("muster_backup_newest_timestamp_seconds"); at < 1e9 {
		t.Errorf("the newest backup is of %v", at)
	}
	ok(t, os.Mkdir(mount, 0o700))
	s.until("the backups that were made in " + mount + " before, the newest 2")
	if code, out, errs := muster(t, "", "backup", "--data", data, "--to", to); code != 1 || !strings.Contains(errs, "are not there: mount the disk that has them") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if left, err := os.ReadDir(mount); err != nil || len(left) > 0 {
		t.Errorf("a backup went to the disk below: %v %v", left, err)
	}
	ok(t, os.Remove(mount))
	ok(t, os.Rename(away, mount))
	made(s)
	s.stop()
	check()

	// By the command, without a server.
	ok(t, os.Rename(mount, away))
	ok(t, os.Mkdir(mount, 0o700))
	if code, out, errs := muster(t, "", "backup", "--data", data, "--to", to); code != 1 || !strings.Contains(errs, "are not there: mount the disk that has them") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	ok(t, os.MkdirAll(filepath.Join(mount, "backup", "manifests"), 0o700))
	if code, out, errs := muster(t, "", "backup", "--data", data, "--to", to); code != 0 {
		t.Errorf("%d %s %s", code, out, errs)
	}
}
