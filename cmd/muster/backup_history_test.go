package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/cmd/muster/internal/backup"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// TestBackupOfADamagedHistory: where the log was trimmed, a history that is damaged is not
// backed up, by a running server or without one. A restore of a backup that has one keeps all
// and says so.
func TestBackupOfADamagedHistory(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	base, place := t.TempDir(), t.TempDir()
	store := "file://" + filepath.ToSlash(place)
	data := filepath.Join(base, "data")
	s := serve(t, base)
	for i := range 40 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d@x.io"},"properties":{"n":%d}}`, i%20, i))
	}
	// An erasure begins a new segment, so that the first one is trimmed.
	s.console("DELETE", "/profiles/"+s.event(`{"event_type":"gone","user":{"email":"gone@x.io"}}`), "", nil)
	s.until("msg=erased")
	s.stop()
	s = serve(t, base, "--trim-log", "--checkpoint-interval", "100ms")
	eventually.Succeeds(t, func() error {
		s.event(`{"event_type":"more","user":{"email":"1@x.io"}}`)
		if _, err := os.Stat(filepath.Join(data, "log/p0/start")); err != nil {
			return fmt.Errorf("the log was not trimmed\n%s", s.log())
		}
		return nil
	})
	back := func() (int, string) {
		t.Helper()
		code, _, errs := muster(t, "", "backup", "--data", data, "--to", store)
		return code, errs
	}
	if code, errs := back(); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	_, list, _ := muster(t, "", "restore", "--from", store, "--list")
	history := filepath.Join(data, "history.duckdb")
	damageBlocks(t, history)
	refused := func() {
		t.Helper()
		code, errs := back()
		if code != 1 || !strings.Contains(errs, "no backup was made") || !strings.Contains(errs, history) || !strings.Contains(errs, "orrupt") || !strings.Contains(strings.ToLower(errs), "the log was trimmed") || strings.Count(errs, "\n") != 1 {
			t.Errorf("%d %s", code, errs)
		}
		if _, now, _ := muster(t, "", "restore", "--from", store, "--list"); now != list {
			t.Errorf("the backups are %s, they were %s", now, list)
		}
	}
	refused()
	s.kill()
	refused()
	// One that was made without looking.
	o, closeBucket, err := backupOptions(t.Context(), data, "to", store)
	ok(t, err)
	defer closeBucket()
	bad, err := backup.Make(t.Context(), o)
	ok(t, err)
	restored := filepath.Join(t.TempDir(), "data")
	code, out, errs := muster(t, "", "restore", "--from", store, "--data", restored)
	if code != 1 || !strings.Contains(errs, "backup "+bad.Name+" was restored to "+restored) || !strings.Contains(errs, filepath.Join(restored, "history.duckdb")) || !strings.Contains(errs, "--list") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if size(t, filepath.Join(restored, "history.duckdb")) != size(t, history) {
		t.Error("what was restored is gone")
	}
	good := strings.Fields(list)[0]
	if code, out, errs := muster(t, "", "restore", "--from", store, "--backup", good, "--data", filepath.Join(t.TempDir(), "data"), "--log", filepath.Join(data, "log")); code != 0 {
		t.Errorf("the backup from before: %d %s %s", code, out, errs)
	}
}

// damageBlocks flips a byte in each block of a file of DuckDB, which a server may have open.
func damageBlocks(t *testing.T, path string) {
	t.Helper()
	const headers, block = 12288, 262144
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	ok(t, err)
	b := []byte{0}
	for at := int64(headers + 100); at < size(t, path); at += block {
		_, err := f.ReadAt(b, at)
		ok(t, err)
		b[0] ^= 1
		_, err = f.WriteAt(b, at)
		ok(t, err)
	}
	ok(t, f.Close())
}
