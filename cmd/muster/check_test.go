package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/duckdb"
)

// filled serves a directory, fills it with events and ends it.
func filled(t *testing.T, dir string, end func(*server)) {
	t.Helper()
	s := serve(t, dir, "--checkpoint-interval", "100ms")
	for i := range 60 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"%d@x.io"},"properties":{"n":%d}}`, i%20, i))
	}
	s.untilMetric("muster_history_rows 60")
	end(s)
}

// files are the files below a directory and their content.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	ok(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	}))
	return out
}

// flip damages a byte in the middle of a file.
func flip(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	ok(t, err)
	b[len(b)/2] ^= 0x55
	// A file of a checkpoint may be a hard link to that of another.
	ok(t, os.Remove(path))
	ok(t, os.WriteFile(path, b, 0o600))
}

func one(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	ok(t, err)
	if len(found) == 0 {
		t.Fatalf("no %s", pattern)
	}
	return found[len(found)-1]
}

// TestCheckAndRepair: check says of each damage what it is, where, and what mends it,
// and changes nothing; repair does that, after having said it, and is refused where
// only a backup helps.
func TestCheckAndRepair(t *testing.T) {
	testlevel.SkipQuick(t, "damages many directories")
	t.Parallel()
	base := t.TempDir()
	filled(t, base, (*server).stop)
	data := filepath.Join(base, "data")
	other := t.TempDir()
	s := serve(t, other)
	s.event(`{"event_type":"seen","user":{"email":"other@x.io"}}`)
	s.stop()
	for _, x := range []struct {
		name   string
		damage func(data string)
		code   int
		says   string
	}{
		{"nothing", func(string) {}, 0, "ok"},
		{"a file of the newest checkpoint", func(d string) { flip(t, one(t, d+"/state/p0/checkpoints/0*/pebble/*.sst")) }, 3, "its checksum is"},
		{"the manifest of the newest checkpoint", func(d string) { flip(t, one(t, d+"/state/p0/checkpoints/0*/MANIFEST")) }, 3, "MANIFEST"},
		{"all of the state", func(d string) { ok(t, os.RemoveAll(d+"/state")) }, 3, "the directory is missing"},
		{"history cut short", func(d string) { ok(t, os.Truncate(d+"/history.duckdb", 20_000)) }, 3, "history.duckdb"},
		{"a write-ahead log of history that is none", func(d string) {
			ok(t, os.WriteFile(d+"/history.duckdb.wal", []byte(strings.Repeat("garbage ", 100)), 0o600))
		}, 3, "does not begin as a write-ahead log"},
		{"the state of another log", func(d string) {
			ok(t, os.RemoveAll(d+"/state"))
			ok(t, os.CopyFS(d+"/state", os.DirFS(filepath.Join(other, "data/state"))))
		}, 3, "muster repair sets the checkpoint aside"},
		{"one checkpoint of another log", func(d string) {
			from := one(t, filepath.Join(other, "data/state/p0/checkpoints/0*"))
			to := filepath.Join(d, "state/p0/checkpoints", filepath.Base(from))
			ok(t, os.RemoveAll(to)) // how many checkpoints were taken is a matter of time
			ok(t, os.CopyFS(to, os.DirFS(from)))
		}, 3, "muster repair sets the checkpoint aside"},
		{"history missing", func(d string) { ok(t, os.Remove(d+"/history.duckdb")) }, 3, "is missing"},
		{"the log's meta file missing", func(d string) { ok(t, os.Remove(d+"/log/meta")) }, 3, "rebuilds it from the segment files"},
		{"the log's meta file damaged", func(d string) { flip(t, d+"/log/meta") }, 3, "log/meta is damaged"},
		{"the note of how far the log goes missing", func(d string) { ok(t, os.Remove(d+"/log/p0/end")) }, 3, "rebuilds it from the segment files"},
		{"the note of how far the log goes damaged", func(d string) { flip(t, d+"/log/p0/end") }, 3, "it is not the file that was written"},
		{"the note of how far the log goes, and all records", func(d string) {
			ok(t, os.Remove(d+"/log/p0/end"))
			ok(t, os.Truncate(one(t, d+"/log/p0/*.log"), 64))
		}, 4, "there is not one record"},
		{"all of these", func(d string) {
			flip(t, d+"/log/meta")
			ok(t, os.Remove(d+"/history.duckdb"))
			flip(t, one(t, d+"/state/p0/checkpoints/0*/MANIFEST"))
		}, 3, "MANIFEST"},
		{"a record", func(d string) {
			path := one(t, d+"/log/p0/*.log")
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			ok(t, err)
			_, err = f.WriteAt([]byte("damage"), 3000)
			ok(t, err)
			ok(t, f.Close())
		}, 4, "is damaged at byte"},
		{"the log", func(d string) { ok(t, os.RemoveAll(d+"/log")) }, 4, "the log is missing"},
		{"the log's segment", func(d string) { ok(t, os.Remove(one(t, d+"/log/p0/*.log"))) }, 4, "missing"},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			ok(t, os.CopyFS(dir, os.DirFS(base)))
			data := filepath.Join(dir, "data")
			x.damage(data)
			before := contents(t, data)
			code, out, errs := muster(t, "", "check", "--data", data)
			if code != x.code || !strings.Contains(out+errs, strings.TrimSpace(x.says)) {
				t.Errorf("check: %d\n%s%s", code, out, errs)
			}
			dry, told, _ := muster(t, "", "repair", "--data", data, "--dry-run")
			if dry != x.code || (x.code == 3) != strings.Contains(told, "rebuild: ") {
				t.Errorf("dry run: %d %s", dry, told)
			}
			if after := contents(t, data); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Error("files were changed")
			}
			code, out, errs = muster(t, "", "repair", "--data", data)
			want := 0
			if x.code == 4 {
				want = 4
			}
			if code != want || x.code == 3 && !strings.HasPrefix(out, told) {
				t.Fatalf("repair: %d\n%s%s", code, out, errs)
			}
			if code == 4 {
				if after := contents(t, data); fmt.Sprint(after) != fmt.Sprint(before) {
					t.Error("files were changed")
				}
				return
			}
			if code, out, errs := muster(t, "", "check", "--data", data); code != 0 {
				t.Errorf("after the repair: %d\n%s%s", code, out, errs)
			}
			s := serve(t, dir)
			if n := s.events("seen"); n != 60 {
				t.Errorf("%d events", n)
			}
			if x.code == 3 {
				s.untilMetric("muster_history_rows 60") // at once: repair waited for it
			}
			if code, _, errs := muster(t, "", "check", "--data", data); code != 1 || !strings.Contains(errs, "stop it first") {
				t.Errorf("a directory that is served: %d %s", code, errs)
			}
			s.stop()
		})
	}
	code, out, errs := muster(t, "", "check", "--data", data, "--json")
	var r struct {
		Findings []struct{ Verdict, Path string }
	}
	if code != 0 || json.Unmarshal([]byte(out), &r) != nil || len(r.Findings) < 4 {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if code, _, _ := muster(t, "", "check", "--data", filepath.Join(base, "nowhere")); code != 1 {
		t.Errorf("no directory: %d", code)
	}
}

// TestCheckOfADamagedLog: of a log that is damaged check says what is damaged, and does not
// call state and history lost because they are beyond the damage.
func TestCheckOfADamagedLog(t *testing.T) {
	testlevel.SkipQuick(t, "damages many directories")
	t.Parallel()
	base := t.TempDir()
	filled(t, base, (*server).stop)
	other := t.TempDir()
	serve(t, other).stop()
	for _, x := range []struct {
		name   string
		damage func(data string)
		names  string
	}{
		{"a record", func(d string) {
			f, err := os.OpenFile(one(t, d+"/log/p0/*.log"), os.O_RDWR, 0)
			ok(t, err)
			_, err = f.WriteAt([]byte("damage"), 3000)
			ok(t, err)
			ok(t, f.Close())
		}, ".log is damaged at byte"},
		{"the meta file of another directory", func(d string) {
			b, err := os.ReadFile(filepath.Join(other, "data/log/meta"))
			ok(t, err)
			ok(t, os.WriteFile(d+"/log/meta", b, 0o600))
		}, "log/meta is of the log "},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			ok(t, os.CopyFS(dir, os.DirFS(base)))
			data := filepath.Join(dir, "data")
			x.damage(data)
			code, out, errs := muster(t, "", "check", "--data", data)
			if code != 4 || !strings.Contains(out, x.names) {
				t.Errorf("%d\n%s%s", code, out, errs)
			}
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "lost") && !strings.Contains(line, "/log/") || strings.Contains(line, "the log ends at") {
					t.Error(line)
				}
			}
		})
	}
}

// TestCheckOfMisplacedFiles: where a start is refused because something else is in a place of
// the directory, muster check does not say that the directory is whole, and both say what to
// do. What a start removes or sets aside does not stop it.
func TestCheckOfMisplacedFiles(t *testing.T) {
	testlevel.SkipQuick(t, "starts many servers")
	t.Parallel()
	base := t.TempDir()
	filled(t, base, (*server).stop)
	directory := func(name string) func(string) {
		return func(data string) {
			path := filepath.Join(data, name)
			ok(t, os.RemoveAll(path))
			ok(t, os.MkdirAll(path, 0o700))
			ok(t, os.WriteFile(filepath.Join(path, "x"), []byte("junk"), 0o600))
		}
	}
	junk := func(name string) func(string) {
		return func(data string) {
			path := filepath.Join(data, name)
			ok(t, os.RemoveAll(path))
			ok(t, os.WriteFile(path, []byte("junk"), 0o600))
		}
	}
	for _, x := range []struct {
		name   string
		damage func(data string)
		code   int
		says   string // by check, and by a start that is refused
		starts bool
	}{
		{"uploads", junk("uploads"), 1, "must be a directory. Move it away", false},
		{"control.sock", directory("control.sock"), 1, "must be a file. Move it away", false},
		{"log/LOCK", directory("log/LOCK"), 1, "must be a file. Move it away", false},
		{"moved.json is a directory", directory("moved.json"), 1, "must be a file. Move it away", false},
		{"moved.json is junk", junk("moved.json"), 4, "moved.json cannot be read: put it back as it was", false},
		{"a pipe", func(data string) {
			ok(t, os.Remove(data+"/history.duckdb"))
			ok(t, syscall.Mkfifo(data+"/history.duckdb", 0o600))
		}, 1, "is a pipe, a socket or a device", false},
		{"what an erasure left", directory("history.duckdb.rewrite"), 0, "", true},
		{"rows for history", directory("state/p0/spool/00000000000000000000-00000000000000000099.part"), 0, "", true},
		{"a link that leads nowhere", func(data string) {
			ok(t, os.RemoveAll(data+"/state/p0/spool"))
			ok(t, os.Symlink("/no/such/directory", data+"/state/p0/spool"))
		}, 3, "state/p0/spool", true},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := copyData(t, filepath.Join(base, "data"))
			data := filepath.Join(dir, "data")
			x.damage(data)
			code, out, errs := muster(t, "", "check", "--data", data)
			if code != x.code || !strings.Contains(out+errs, x.says) {
				t.Errorf("check: %d\n%s%s", code, out, errs)
			}
			if x.starts {
				s := serve(t, dir)
				if n := s.events("seen"); n == 0 {
					t.Error("no events")
				}
				s.stop()
				if code, out, errs := muster(t, "", "check", "--data", data); code != 0 {
					t.Errorf("check after a start: %d\n%s%s", code, out, errs)
				}
			} else if line := refusedStart(t, dir); !strings.Contains(line, x.says) {
				t.Errorf("a start says %s", line)
			}
		})
	}
}

// TestDeepCheck: check --deep finds state and history that are not what the log makes,
// though their checksums are right; repair --deep rebuilds them.
func TestDeepCheck(t *testing.T) {
	testlevel.SkipQuick(t, "checks many directories")
	t.Parallel()
	base := t.TempDir()
	filled(t, base, (*server).stop)
	// The same log, continued in two ways.
	other := t.TempDir()
	ok(t, os.CopyFS(other, os.DirFS(base)))
	more := func(dir, kind string, n int) {
		t.Helper()
		s := serve(t, dir)
		for i := range n {
			s.event(fmt.Sprintf(`{"event_type":%q,"user":{"email":"%d@x.io"}}`, kind, i))
		}
		id := s.event(`{"event_type":"last","user":{"email":"erased@x.io"}}`)
		var erased struct{ Status string }
		s.console("DELETE", "/profiles/"+id, "", &erased)
		s.event(`{"event_type":"last","user":{"email":"1@x.io"}}`)
		s.stop()
	}
	more(other, "other", 5)
	more(base, "more", 60)
	deep := func(data string, want int, says ...string) {
		t.Helper()
		before := contents(t, data)
		code, out, errs := muster(t, "", "check", "--data", data, "--deep", "--temp", t.TempDir())
		if code != want {
			t.Errorf("%d instead of %d\n%s%s", code, want, out, errs)
		}
		for _, text := range says {
			if !strings.Contains(out, text) {
				t.Errorf("no %q in\n%s", text, out)
			}
		}
		if after := contents(t, data); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Error("files were changed")
		}
	}
	deep(filepath.Join(base, "data"), 0, "it is what the records from 0 on make", "are what the log makes")
	// The state of the other way shows without --deep.
	forked := t.TempDir()
	ok(t, os.CopyFS(forked, os.DirFS(base)))
	ok(t, os.RemoveAll(forked+"/data/state"))
	ok(t, os.CopyFS(forked+"/data/state", os.DirFS(filepath.Join(other, "data/state"))))
	if code, out, errs := muster(t, "", "check", "--data", forked+"/data"); code != 3 || !strings.Contains(out, "has not applied the log's record") {
		t.Errorf("a state of other records: %d\n%s%s", code, out, errs)
	}
	if line := refusedStart(t, forked); !strings.Contains(line, "has not applied the log's record") {
		t.Errorf("a start with it says %s", line)
	}
	if code, out, errs := muster(t, "", "repair", "--data", forked+"/data"); code != 0 {
		t.Errorf("repair: %d\n%s%s", code, out, errs)
	}
	s := serve(t, forked)
	if n := s.events("more"); n != 60 {
		t.Errorf("after a repair %d events, want 60", n)
	}
	s.stop()
	for _, x := range []struct {
		name   string
		damage func(data string)
		says   string
	}{
		{"a state that lacks a record", func(d string) {
			c, err := file.Check(vfs.Default, d+"/log")
			ok(t, err)
			ok(t, os.RemoveAll(d+"/state"))
			serve(t, filepath.Dir(d), "--skip-record", fmt.Sprintf("0:%d", c.Ends[0]-20)).stop()
		}, "it is not the state that the records from 0 on make"},
		{"history lacks rows", func(d string) {
			c, err := file.Check(vfs.Default, d+"/log")
			ok(t, err)
			s, err := duckdb.Open(d+"/history.duckdb", duckdb.Options{})
			ok(t, err)
			creds, err := api.LoadCredentials(filepath.Join(base, "credentials.json"))
			ok(t, err)
			account, err := strconv.ParseUint(strings.TrimPrefix(creds.AccountID, "acc_"), 16, 64)
			ok(t, err)
			var of []uint32
			cut := query.Cut{UpTo: c.Ends[0]}
			ok(t, s.Replay(t.Context(), query.ReplayQuery{Cut: cut, Account: account, EventType: "seen"}, func(b *query.ReplayBlock) error {
				of = append(of, b.Ordinal...)
				return nil
			}))
			ok(t, s.Erase(t.Context(), query.EraseQuery{Cut: cut, Account: account, Ordinals: of[:1]}))
			ok(t, s.Close())
		}, "it is not what the log makes: it has"},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			ok(t, os.CopyFS(dir, os.DirFS(base)))
			data := filepath.Join(dir, "data")
			x.damage(data)
			if code, out, errs := muster(t, "", "check", "--data", data); code != 0 {
				t.Fatalf("found without --deep: %d\n%s%s", code, out, errs)
			}
			deep(data, 3, x.says, "muster repair --deep")
			if code, out, errs := muster(t, "", "repair", "--data", data, "--deep", "--dry-run"); code != 3 || !strings.Contains(out, "will set aside and rebuild") {
				t.Errorf("dry run: %d %s%s", code, out, errs)
			}
			if code, out, errs := muster(t, "", "repair", "--data", data, "--deep"); code != 0 {
				t.Fatalf("repair: %d %s%s", code, out, errs)
			}
			deep(data, 0)
			s := serve(t, dir)
			if seen, more := s.events("seen"), s.events("more"); seen != 60 || more != 60 {
				t.Errorf("%d and %d events", seen, more)
			}
			s.untilMembers("seen", 20)
			s.stop()
		})
	}
}

// TestCheckAfterKill: a directory as kill -9 leaves it is whole.
func TestCheckAfterKill(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	dir := t.TempDir()
	filled(t, dir, (*server).kill)
	if code, out, errs := muster(t, "", "check", "--data", filepath.Join(dir, "data")); code != 0 || !strings.Contains(out, "history.duckdb") {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

// TestKilledDuringRepair: a repair that is killed anywhere loses nothing, and the next
// one, or a start, ends it.
func TestKilledDuringRepair(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	dir := t.TempDir()
	filled(t, dir, (*server).stop)
	data := filepath.Join(dir, "data")
	r := rand.New(rand.NewPCG(5, 6))
	for range rounds(3, 20) {
		for _, c := range slices.Backward([]string{"/state", "/history.duckdb"}) {
			ok(t, os.RemoveAll(data+c))
		}
		if r.IntN(2) == 0 {
			ok(t, os.Remove(data+"/log/meta"))
		}
		cmd := command("repair", "--data", data)
		ok(t, cmd.Start())
		time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond) // the moment of a kill is random
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if code, out, errs := muster(t, "", "repair", "--data", data); code != 0 {
			t.Fatalf("%d %s %s", code, out, errs)
		}
	}
	s := serve(t, dir)
	if n := s.events("seen"); n != 60 {
		t.Errorf("%d events", n)
	}
	s.untilMetric("muster_history_rows 60")
	s.stop()
}
