package backup

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/blobtree"
)

// TestDamagedStateOfATrimmedLog: where the log lacks its beginning, a checkpoint that is not
// what its manifest says is not backed up, with a server or without; the backup from before
// stays the newest. Elsewhere it is, since the log has everything.
func TestDamagedStateOfATrimmedLog(t *testing.T) {
	const dir = "state/p0/checkpoints/00000000000000000005"
	sst, manifest := dir+"/pebble/000004.sst", dir+"/MANIFEST"
	good := content("firstlog")
	body := fmt.Sprintf(`{"files":[{"path":"pebble/000004.sst","size":%d,"crc32":%d}]}`, len(good[sst]), crc32.ChecksumIEEE([]byte(good[sst])))
	good[manifest] = withChecksum(body)
	for _, x := range []struct{ path, text, want string }{
		{sst, strings.Repeat("dox", 1000), "data/" + sst + " is damaged: its checksum is"},
		{sst, "doc", "data/" + sst + " is damaged: it has 3 bytes instead of 3000"},
		{sst, "", "data/" + sst + " is damaged: the file is missing"},
		{manifest, "{}", "data/" + manifest + " is damaged"},
	} {
		for _, trimmed := range []bool{true, false} {
			for _, running := range []bool{true, false} {
				w := newWorld(t, vfs.NewMem())
				w.o.logs = func(vfs.FS, string) (file.Checked, error) {
					if trimmed {
						return file.Checked{Starts: []int64{5}}, nil
					}
					return file.Checked{}, nil
				}
				w.write("data", good)
				place, err := OpenPlace(w.o)
				if err != nil {
					t.Fatal(err)
				}
				back := func(trimmed bool) error {
					if !running {
						_, err := Make(context.Background(), w.o)
						return err
					}
					r := Running{Dir: "data", Trimmed: trimmed, Log: binary.LittleEndian.Uint64([]byte("firstlog")),
						Check: func(context.Context, func(context.Context, int) error, func(string) bool) error { return nil },
						Last:  func() ([]blobtree.Source, error) { return nil, nil }}
					files, err := w.o.files()
					if err != nil {
						return err
					}
					for _, path := range files {
						r.Sources = append(r.Sources, blobtree.Source{Path: path, From: "data/" + path, Size: -1})
					}
					_, err = place.Make(context.Background(), r)
					return err
				}
				if err := back(trimmed); err != nil {
					t.Fatal(err)
				}
				if x.text == "" {
					err = w.fs.Remove("data/" + x.path)
				} else {
					w.write("data", map[string]string{x.path: x.text})
				}
				if err != nil {
					t.Fatal(err)
				}
				made := 1
				err = back(trimmed)
				if !trimmed {
					made++
				}
				if (err == nil) == trimmed || trimmed && (!strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "muster check") || strings.Contains(err.Error(), "\n")) {
					t.Errorf("%s, trimmed %v, running %v: %v", x.want, trimmed, running, err)
				}
				// Also when it was backed up while the log had its beginning.
				if !trimmed && running {
					if err := back(true); err == nil || !strings.Contains(err.Error(), x.want) {
						t.Errorf("%s, trimmed later: %v", x.want, err)
					}
				}
				if list, err := List(context.Background(), w.o); err != nil || len(list) != made {
					t.Errorf("%d backups, want %d: %v", len(list), made, err)
				}
			}
		}
	}
}

// withChecksum is a file with its checksum, as a manifest has it (docs/formats.md).
func withChecksum(body string) string {
	return fmt.Sprintf("%s\ncrc32c %08x\n", body, crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)))
}
