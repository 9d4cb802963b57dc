package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
	base := t.TempDir()
	filled(t, base, (*server).stop)
	data := filepath.Join(base, "data")
	for _, x := range []struct {
		name   string
		damage func(data string)
		code   int
		says   string
	}{
		{"nothing", func(string) {}, 0, "ok"},
		{"a file of the newest checkpoint", func(d string) { flip(t, one(t, d+"/state/p0/checkpoints/0*/pebble/*.sst")) }, 3, "its checksum is"},
		{"the manifest of the newest checkpoint", func(d string) { flip(t, one(t, d+"/state/p0/checkpoints/0*/MANIFEST")) }, 3, "MANIFEST"},
		{"all of the state", func(d string) { ok(t, os.RemoveAll(d+"/state")) }, 0, "history.duckdb"},
		{"history cut short", func(d string) { ok(t, os.Truncate(d+"/history.duckdb", 20_000)) }, 3, "history.duckdb"},
		{"history missing", func(d string) { ok(t, os.Remove(d+"/history.duckdb")) }, 3, "is missing"},
		{"the log's meta file missing", func(d string) { ok(t, os.Remove(d+"/log/meta")) }, 3, "makes it anew from the segment files"},
		{"the log's meta file damaged", func(d string) { flip(t, d+"/log/meta") }, 3, "log/meta is damaged"},
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
			if dry != x.code || (x.code == 3) != strings.Contains(told, "will make anew") {
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

// TestCheckAfterKill: a directory as kill -9 leaves it is whole.
func TestCheckAfterKill(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir, (*server).kill)
	if code, out, errs := muster(t, "", "check", "--data", filepath.Join(dir, "data")); code != 0 || !strings.Contains(out, "history.duckdb") {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

// TestKilledDuringRepair: a repair that is killed anywhere loses nothing, and the next
// one, or a start, ends it.
func TestKilledDuringRepair(t *testing.T) {
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
