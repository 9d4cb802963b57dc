package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// flipUnder flips a byte of a file that a server may have open, where a text stands.
func flipUnder(t *testing.T, path, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	ok(t, err)
	at := bytes.Index(b, []byte(text))
	if at < 0 {
		t.Fatalf("%s does not have %s", path, text)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	ok(t, err)
	_, err = f.WriteAt([]byte{b[at] ^ 1}, int64(at))
	ok(t, err)
	ok(t, f.Close())
}

// TestBackupOfADamagedLog: a log that is damaged is not backed up, by a running server or
// without one; the error names the file, and the backup from before stays the newest.
func TestBackupOfADamagedLog(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	base, store := t.TempDir(), "file://"+filepath.ToSlash(t.TempDir())
	data := filepath.Join(base, "data")
	s := serve(t, base)
	for i := range 40 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d@x.io"}}`, i))
	}
	if code, out, errs := muster(t, "", "backup", "--data", data, "--to", store); code != 0 {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	_, list, _ := muster(t, "", "restore", "--from", store, "--list")
	segment := one(t, filepath.Join(data, "log/p0/*.log"))
	flipUnder(t, segment, "20@x.io")
	refused := func() {
		t.Helper()
		code, out, errs := muster(t, "", "backup", "--data", data, "--to", store)
		if code != 1 || !strings.Contains(errs, "no backup was made") || !strings.Contains(errs, segment+" is damaged at byte") {
			t.Errorf("%d %s %s", code, out, errs)
		}
		if _, now, _ := muster(t, "", "restore", "--from", store, "--list"); now != list {
			t.Errorf("the backups are %s, they were %s", now, list)
		}
	}
	refused()
	if made, failed := s.metric(`muster_backups_total{result="made"}`), s.metric(`muster_backups_total{result="failed"}`); made != 1 || failed != 1 {
		t.Errorf("%v made, %v failed", made, failed)
	}
	s.stop()
	refused()
	r := restored(t, filepath.Join(base, "credentials.json"), store, "--log", filepath.Join(data, "log"))
	if n := r.events("seen"); n != 40 {
		t.Errorf("%d events", n)
	}
	r.stop()
}

// TestDamagedObjectOfABackup: the server finds a byte that has changed at the place of its
// backups, says so, and sends the object again.
func TestDamagedObjectOfABackup(t *testing.T) {
	testlevel.SkipQuick(t, "starts a server")
	t.Parallel()
	base, place := t.TempDir(), t.TempDir()
	data, store := filepath.Join(base, "data"), "file://"+filepath.ToSlash(place)
	s := serve(t, base)
	s.event(`{"event_type":"seen","user":{"email":"1@x.io"}}`)
	back := func() string {
		t.Helper()
		code, out, errs := muster(t, "", "backup", "--data", data, "--to", store)
		if code != 0 {
			t.Fatalf("%d %s %s", code, out, errs)
		}
		return errs
	}
	back()
	objects, err := filepath.Glob(filepath.Join(place, "backup/files/*"))
	ok(t, err)
	for _, path := range objects {
		damageByte(t, path, 0)
	}
	errs := back()
	var damaged string
	for _, path := range objects {
		if strings.Contains(errs, filepath.Base(path)) {
			damaged = path
		}
	}
	if damaged == "" || !strings.Contains(errs, "sent again") {
		t.Fatalf("of %q: %s", objects, errs)
	}
	if log := s.log(); !strings.Contains(log, filepath.Base(damaged)) || !strings.Contains(log, "level=ERROR") {
		t.Error(log)
	}
	if n, m := s.metric("muster_backup_damaged_objects_total"), s.metric("muster_backup_reread_objects_total"); n < 1 || m < 2 {
		t.Errorf("%v damaged of %v", n, m)
	}
	b, err := os.ReadFile(damaged)
	ok(t, err)
	sum, _, _ := strings.Cut(filepath.Base(damaged), "-")
	if got := fmt.Sprintf("%x", sha256.Sum256(b)); got != sum {
		t.Errorf("%s is now %s", damaged, got)
	}
}
