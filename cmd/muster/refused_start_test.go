package main

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// snapshot is the name and content of everything in a directory, but for lock files.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	ok(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == "LOCK" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			out[name] = "directory"
			return nil
		}
		b, err := os.ReadFile(path)
		out[name] = string(b)
		return err
	}))
	return out
}

func compareSnapshots(t *testing.T, what string, before, after map[string]string) {
	t.Helper()
	for name, b := range before {
		if a, is := after[name]; !is {
			t.Errorf("%s: %s is gone", what, name)
		} else if a != b {
			t.Errorf("%s: %s was changed (%d bytes, %d before)", what, name, len(a), len(b))
		}
	}
	for name := range after {
		if _, is := before[name]; !is {
			t.Errorf("%s: %s is new", what, name)
		}
	}
}

// copyData makes a directory with a copy of data and of its credentials.
func copyData(t *testing.T, data string) string {
	t.Helper()
	dir := t.TempDir()
	ok(t, os.CopyFS(filepath.Join(dir, "data"), os.DirFS(data)))
	creds, err := os.ReadFile(filepath.Join(filepath.Dir(data), "credentials.json"))
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(dir, "credentials.json"), creds, 0o600))
	return dir
}

// TestRefusedStart: a start that is refused changes nothing in the directory, not even
// the torn tail of the log.
func TestRefusedStart(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	// A directory as kill -9 leaves it: with checkpoints, a log that continues behind
	// them, and here also the beginning of a batch, which a start cuts off.
	base := t.TempDir()
	s := serve(t, base, "--checkpoint-interval", "200ms")
	data := filepath.Join(base, "data")
	segment := filepath.Join("log", "p0", fmt.Sprintf("%020d.log", 0))
	begin, err := os.ReadFile(filepath.Join(data, segment))
	ok(t, err)
	short := int64(len(bytes.TrimRight(begin, "\x00"))) // of the log before the events; zeros are space it took in advance
	for i := range 20 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"p%d@x.io"}}`, i))
	}
	eventually.Holds(t, "a checkpoint", func() bool { return s.metric(`muster_checkpoint_offset{partition="0"}`) >= 20 })
	s.kill()
	ok(t, os.Remove(filepath.Join(data, "control.sock"))) // a socket cannot be copied
	tear(t, filepath.Join(data, segment))
	ok(t, os.MkdirAll(filepath.Join(data, "state", "p0", "checkpoints", "tmp-1"), 0o755))

	manifest := func(dir string, change func(string) string) {
		t.Helper()
		paths, err := filepath.Glob(filepath.Join(dir, "data", "state", "p0", "checkpoints", "0*", "MANIFEST"))
		ok(t, err)
		if len(paths) == 0 {
			t.Fatal("no checkpoint")
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			ok(t, err)
			body := change(string(b[:bytes.LastIndex(b, []byte("\ncrc32c "))]))
			sum := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
			ok(t, os.WriteFile(path, fmt.Appendf(nil, "%s\ncrc32c %08x\n", body, sum), 0o644))
		}
	}
	blocked, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer blocked.Close()
	other := t.TempDir()
	{ // another log, with more records
		s := serve(t, other)
		for i := range 60 {
			s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"o%d@x.io"}}`, i))
		}
		s.stop()
	}
	replace := func(dir, what string) {
		t.Helper()
		at := filepath.Join(dir, "data", what)
		ok(t, os.RemoveAll(at))
		from := filepath.Join(other, "data", what)
		if info, err := os.Stat(from); err == nil && info.IsDir() {
			ok(t, os.CopyFS(at, os.DirFS(from)))
			return
		}
		b, err := os.ReadFile(from)
		ok(t, err)
		ok(t, os.WriteFile(at, b, 0o600))
	}
	for _, x := range []struct {
		name    string
		prepare func(dir string)
		args    []string
		says    string
	}{
		{"state of a newer build", func(dir string) {
			manifest(dir, func(m string) string {
				return regexp.MustCompile(`"apply_version":\d+`).ReplaceAllString(m, `"apply_version":9999`)
			})
		}, nil, "Install that version"},
		{"log that lost records", func(dir string) {
			ok(t, os.Truncate(filepath.Join(dir, "data", segment), short))
		}, nil, "records are missing"},
		{"log that ends before the checkpoint", func(dir string) {
			ok(t, os.Truncate(filepath.Join(dir, "data", segment), short))
			forgetEnds(t, filepath.Join(dir, "data"))
		}, nil, "before the checkpoint"},
		{"log without the note of how far it goes", func(dir string) {
			ok(t, os.Remove(filepath.Join(dir, "data", "log", "p0", "end")))
		}, nil, "muster repair"},
		{"no log", func(dir string) { ok(t, os.RemoveAll(filepath.Join(dir, "data", "log"))) }, nil, "the log is missing"},
		{"state of another log", func(dir string) { replace(dir, "state") }, nil, "Put the log back that belongs to the state"},
		{"damaged log", func(dir string) {
			path := filepath.Join(dir, "data", segment)
			b, err := os.ReadFile(path)
			ok(t, err)
			b[200] ^= 1
			ok(t, os.WriteFile(path, b, 0o644))
		}, nil, "is damaged"},
		{"moved directory", func(dir string) {
			ok(t, os.WriteFile(filepath.Join(dir, "data", "moved.json"), []byte(`{"done":true,"cluster":"c","topic":"t","partitions":1}`), 0o600))
		}, nil, "was moved"},
		{"directory of a topic", func(dir string) {
			ok(t, os.WriteFile(filepath.Join(dir, "data", "log.json"), []byte(`{"kind":"kafka","cluster":"c","topic":"t","node":"n"}`), 0o600))
		}, nil, "--kafka"},
		{"kafka", nil, []string{"--kafka", "127.0.0.1:1", "--kafka-topic", "t", "--clickhouse", "clickhouse://127.0.0.1:1/x", "--cluster-secret", strings.Repeat("s", 40), "--advertise", "127.0.0.1:1"}, ""},
		{"port taken", nil, []string{"--listen", blocked.Addr().String(), "--start-timeout", "100ms"}, "--listen"},
		{"wrong TLS mode", nil, []string{"--smtp", "127.0.0.1:25", "--smtp-tls", "perhaps"}, "--smtp-tls"},
		{"negative interval", nil, []string{"--checkpoint-interval", "-1s"}, "of --checkpoint-interval: use at least 10ms"},
		{"too little memory", nil, []string{"--history-memory", "32MiB"}, "of --history-memory: use at least 64MiB"},
		{"no such storage", nil, []string{"--checkpoints", "file:///no/such/directory"}, "--checkpoints"},
		{"ClickHouse is not there", nil, []string{"--clickhouse", "clickhouse://127.0.0.1:1/x"}, "--clickhouse"},
		{"backups in the data directory", nil, []string{"--backup-to", "file://DIR/data/state"}, "is in the data directory"},
		{"unknown flag", nil, []string{"--no-such-flag"}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := copyData(t, data)
			if x.prepare != nil {
				x.prepare(dir)
			}
			before := snapshot(t, dir)
			args := slices.Clone(x.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "DIR", dir)
			}
			line := refusedStart(t, dir, args...)
			if !strings.Contains(line, x.says) {
				t.Errorf("it says %s", line)
			}
			compareSnapshots(t, x.name, before, snapshot(t, dir))
		})
	}
	t.Run("import of a file that is not there", func(t *testing.T) {
		dir := copyData(t, data)
		before := snapshot(t, dir)
		code, _, errs := muster(t, "", "import", "--data", filepath.Join(dir, "data"), filepath.Join(dir, "none.jsonl"))
		if code != exitFailed || !strings.Contains(errs, "none.jsonl") {
			t.Errorf("%d: it says %s", code, errs)
		}
		compareSnapshots(t, "import", before, snapshot(t, dir))
	})
	t.Run("wrong credentials for a new directory", func(t *testing.T) {
		dir := t.TempDir()
		ok(t, os.WriteFile(filepath.Join(dir, "credentials.json"), []byte("nothing"), 0o600))
		before := snapshot(t, dir)
		if line := refusedStart(t, dir); !strings.Contains(line, "--credentials") {
			t.Errorf("it says %s", line)
		}
		compareSnapshots(t, "credentials", before, snapshot(t, dir))
	})
	// What the refused ones did not do, this one does.
	dir := copyData(t, data)
	s = serve(t, dir)
	if n := s.events("seen"); n != 20 {
		t.Errorf("%d events, want 20", n)
	}
	if !strings.Contains(s.log(), "cutting a torn batch") {
		t.Errorf("nothing was to be cut:\n%s", s.log())
	}
	s.stop()
}

// tear writes the beginning of a batch behind the last byte of a segment.
func tear(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	ok(t, err)
	end := len(bytes.TrimRight(b, "\x00"))
	if end+1000 > len(b) {
		t.Fatal("no space ahead")
	}
	copy(b[end+100:], bytes.Repeat([]byte("torn"), 50))
	ok(t, os.WriteFile(path, b, 0o644))
}
