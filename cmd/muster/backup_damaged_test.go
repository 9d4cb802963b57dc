package main

import (
	"bytes"
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
