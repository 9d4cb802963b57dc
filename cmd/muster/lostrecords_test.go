package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// TestL1LogThatLostRecords: a log whose newest segment lost records that were there at
// the last checkpoint, or when the company was founded, never makes a new company or an
// older one: the start, after kill -9 too, is refused and changes nothing, whatever else
// of the directory is gone. Nor does repair mend it. At the quick level each length is
// tried without one or the other.
func TestL1LogThatLostRecords(t *testing.T) {
	t.Parallel()
	founded, filled := t.TempDir(), t.TempDir()
	segment := filepath.Join("data", "log", "p0", fmt.Sprintf("%020d.log", 0))
	s := serve(t, founded, "--checkpoint-interval", "1h")
	s.kill()
	s = serve(t, filled, "--checkpoint-interval", "100ms")
	begin, err := os.ReadFile(filepath.Join(filled, segment))
	ok(t, err)
	company := len(bytes.TrimRight(begin, "\x00")) // zeros are space the log took in advance
	for i := range 20 {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"email":"p%d@x.io"}}`, i))
	}
	eventually.Holds(t, "a checkpoint", func() bool { return s.metric(`muster_checkpoint_offset{partition="0"}`) >= 20 })
	s.kill()
	for _, d := range []struct {
		name, dir string
		left      []int // bytes of the segment
	}{{"founded", founded, []int{64, 64 + 100, company / 2}}, {"filled", filled, []int{64, company / 2, company, company + 300}}} {
		for i, left := range d.left {
			for j, gone := range [][]string{{"state"}, {"state", "history.duckdb", "history.duckdb.wal"}} {
				zeros := (i+j)%2 == 0
				if testlevel.Quick() && j != i/2 {
					continue // two lengths with each, and with and without zeros
				}
				t.Run(fmt.Sprintf("%s, %d bytes left, zeros %v, without %v", d.name, left, zeros, gone), func(t *testing.T) {
					t.Parallel()
					_ = os.Remove(filepath.Join(d.dir, "data", "control.sock")) // a socket cannot be copied
					dir := copyData(t, filepath.Join(d.dir, "data"))
					for _, g := range gone {
						ok(t, os.RemoveAll(filepath.Join(dir, "data", g)))
					}
					path := filepath.Join(dir, segment)
					info, err := os.Stat(path)
					ok(t, err)
					ok(t, os.Truncate(path, int64(left)))
					if zeros {
						ok(t, os.Truncate(path, info.Size()))
					}
					before := snapshot(t, dir)
					for _, command := range []string{"check", "repair"} {
						if code, out, errs := muster(t, "", command, "--data", filepath.Join(dir, "data")); code != 4 || !strings.Contains(out, path+" is damaged") || !strings.Contains(out, "records are missing") {
							t.Errorf("%s: %d\n%s%s", command, code, out, errs)
						}
					}
					line := refusedStart(t, dir)
					for _, part := range []string{path, "records are missing", "Put the files of the log back as they were, or restore a backup"} {
						if !strings.Contains(line, part) {
							t.Errorf("it does not say %q: %s", part, line)
						}
					}
					compareSnapshots(t, d.name, before, snapshot(t, dir))
				})
			}
		}
	}
}

// forgetEnds makes a log what older builds made of it: nothing says how far it goes.
func forgetEnds(t *testing.T, data string) {
	t.Helper()
	path := filepath.Join(data, "log", "meta")
	b, err := os.ReadFile(path)
	ok(t, err)
	clear(b[24:28])
	binary.LittleEndian.PutUint32(b[28:], crc32.Checksum(b[:28], crc32.MakeTable(crc32.Castagnoli)))
	ok(t, os.WriteFile(path, b, 0o600))
	ok(t, os.Remove(filepath.Join(data, "log", "p0", "end")))
}
