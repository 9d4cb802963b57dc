package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// TestHistoryMovesToClickHouse: a directory whose history moved to ClickHouse has no file of
// history left that erasures do not reach, and knows where its history is: check and
// repair make no file again, and migrate and a start without --clickhouse do what they say.
func TestHistoryMovesToClickHouse(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	remote := clickHouseArgs(t)
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	file, mark := filepath.Join(data, "history.duckdb"), filepath.Join(data, "history.json")
	there := func(path string) bool {
		found, err := filepath.Glob(path + "*")
		ok(t, err)
		return len(found) > 0
	}
	told := func(code int, says string, args ...string) {
		t.Helper()
		have, out, errs := muster(t, "", args...)
		if have != code || !strings.Contains(out+errs, says) {
			t.Errorf("%q: %d\n%s%s", args, have, out, errs)
		}
		if there(file) {
			t.Errorf("%q made a file of history", args)
		}
	}
	const tag = "zqerasedzq"
	s := serve(t, dir)
	s.batch("seen", 0, 100)
	id := ""
	for i := range 10 {
		id = s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%s@people.example"},"properties":{"text":"%[1]s","n":%d}}`, tag, 100+i))
	}
	s.stop()
	ok(t, os.WriteFile(file+".damaged-20260102T030405.000Z", []byte(tag), 0o600))
	if !there(file) || there(mark) {
		t.Fatal("there is no file of history, or it is noted as elsewhere")
	}

	s = serve(t, dir, remote...)
	whole := func(want int) {
		t.Helper()
		eventually.Holds(t, "history is whole", func() bool { n, ok := s.exported(); return ok && n == want })
	}
	whole(110)
	eventually.Holds(t, "the file of history is removed", func() bool { return !there(file) })
	eventually.Holds(t, "the log says so", func() bool { return strings.Contains(s.log(), "history in the data directory was removed") })
	s.console("DELETE", "/profiles/"+id, "", nil)
	eventually.Succeeds(t, func() error {
		if in := holds(t, data, tag); len(in) > 0 {
			return fmt.Errorf("%v have something of the erased\n%s", in, s.log())
		}
		return nil
	})
	whole(100)
	s.stop()
	told(exitOK, "history is in ClickHouse", "check", "--data", data)
	told(exitOK, "is whole", "repair", "--data", data)
	told(exitFailed, "history is in ClickHouse already", append([]string{"migrate"}, migrateArgs(dir, t.TempDir(), kafkaArgs(t))...)...)

	// Only a start of the service takes it back.
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	ok(t, os.WriteFile(rows, nil, 0o600))
	told(exitFailed, "Name the database with --clickhouse", "import", "--data", data, rows)
	told(exitFailed, "Name the database with --clickhouse", "export", "--data", data, "events")
	if !there(mark) {
		t.Error("the directory no longer knows where its history is")
	}
	told(exitOK, "0 rows", append([]string{"import", "--data", data, rows}, remote...)...)

	// What needs no history is repaired.
	ok(t, os.Remove(filepath.Join(data, "log/meta")))
	told(exitDamaged, "muster repair mends it", "check", "--data", data)
	told(exitOK, "is whole", "repair", "--data", data)

	// A backup knows it, too.
	store, again := "file://"+filepath.ToSlash(t.TempDir()), filepath.Join(t.TempDir(), "data")
	told(exitOK, "", "backup", "--data", data, "--to", store)
	told(exitOK, "", "restore", "--from", store, "--data", again)
	told(exitOK, "history is in ClickHouse", "check", "--data", again)

	// What is damaged beside it is for a start to mend.
	flip(t, one(t, data+"/state/p0/checkpoints/0*/pebble/*.sst"))
	told(exitDamaged, "a start with --clickhouse mends it", "check", "--data", data)
	told(exitFailed, "a start with --clickhouse mends it", "repair", "--data", data)
	s = serve(t, dir, remote...)
	whole(100)
	hot, restored := "file://"+filepath.ToSlash(t.TempDir()), filepath.Join(t.TempDir(), "data")
	told(exitOK, "", "backup", "--data", data, "--to", hot)
	s.stop()
	told(exitOK, "", "restore", "--from", hot, "--data", restored)
	told(exitOK, "history is in ClickHouse", "check", "--data", restored)
	ok(t, os.RemoveAll(filepath.Join(data, "state/p0/checkpoints"))) // also those that were set aside

	// Back in the directory.
	s = serve(t, dir)
	whole(100)
	s.stop()
	if there(mark) || !there(file) {
		t.Error("the directory does not know that its history is there again")
	}
	if code, out, errs := muster(t, "", "check", "--data", data); code != exitOK || !strings.Contains(out, "history.duckdb") {
		t.Errorf("check: %d\n%s%s", code, out, errs)
	}
}
