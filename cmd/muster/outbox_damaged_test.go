package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/messaging/capture"
)

// TestDamagedOutbox: damage to captured messages is named by check and by the next start,
// which shows all others and cuts nothing off; repair mends other damage beside it.
func TestDamagedOutbox(t *testing.T) {
	testlevel.SkipQuick(t, "damages many directories")
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	filled(t, dir, (*server).stop)
	store, err := capture.Open(capture.Options{Dir: filepath.Join(data, "outbox")})
	ok(t, err)
	for _, id := range []string{"first", "second", "third"} {
		_, err := store.Add(capture.Message{ID: id, Channel: "email", To: id + "@x.io", Subject: "subject " + id})
		ok(t, err)
	}
	ok(t, store.Close())
	path := one(t, filepath.Join(data, "outbox", "*.seg"))
	if code, out, errs := muster(t, "", "check", "--data", data); code != 0 || !strings.Contains(out, "captured messages: 1 files are whole") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	flipUnder(t, path, "subject second")
	before, err := os.ReadFile(path)
	ok(t, err)
	if code, out, errs := muster(t, "", "check", "--data", data); code != 4 || !strings.Contains(out, path+" is damaged at byte") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	ok(t, os.Remove(filepath.Join(data, "history.duckdb")))
	if code, out, errs := muster(t, "", "repair", "--data", data); code != 4 || !strings.Contains(out, "will rebuild: "+filepath.Join(data, "history.duckdb")) {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(data, "history.duckdb")); err != nil {
		t.Error("damaged messages kept repair from making history:", err)
	}
	s := serve(t, dir)
	if log := s.log(); !strings.Contains(log, path+" is damaged at byte") {
		t.Error(log)
	}
	s.stop()
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file has %d bytes, it had %d: %v", len(after), len(before), err)
	}
	store, err = capture.Open(capture.Options{Dir: filepath.Join(data, "outbox")})
	ok(t, err)
	defer store.Close()
	page, _, err := store.List(capture.Filter{}, 0, 0)
	if err != nil || len(page) != 2 || page[0].ID != "third" || page[1].ID != "first" {
		t.Errorf("%+v %v", page, err)
	}
}
