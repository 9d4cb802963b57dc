package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestMigrateRefusesDamage (L1): a directory that serve would refuse or mend is not moved, with
// what mends it, before anything is written there or elsewhere. What is wrong with history
// is not in the numbers that are compared after it was copied.
func TestMigrateRefusesDamage(t *testing.T) {
	testlevel.SkipQuick(t, "damages many directories")
	t.Parallel()
	base, other := t.TempDir(), t.TempDir()
	filled(t, base, (*server).stop)
	filled(t, other, (*server).stop)
	nowhere := []string{"--kafka", "127.0.0.1:1", "--kafka-topic", "t", "--clickhouse", "clickhouse://127.0.0.1:1/d"}
	for _, x := range []struct {
		name   string
		damage func(data string)
		says   []string
	}{
		{"history of another directory", func(d string) {
			b, err := os.ReadFile(filepath.Join(other, "data/history.duckdb"))
			ok(t, err)
			ok(t, os.WriteFile(d+"/history.duckdb", b, 0o600))
		}, []string{"history belongs to another log", "muster repair"}},
		{"history damaged", func(d string) { ok(t, os.Truncate(d+"/history.duckdb", 20_000)) }, []string{"history.duckdb", "muster repair"}},
		{"history missing", func(d string) { ok(t, os.Remove(d+"/history.duckdb")) }, []string{"history.duckdb", "muster repair"}},
		{"the newest checkpoint damaged", func(d string) { flip(t, one(t, d+"/state/p0/checkpoints/0*/pebble/*.sst")) }, []string{"its checksum is", "muster repair"}},
		{"a restore that was cut off", func(d string) { ok(t, os.WriteFile(d+"/RESTORING", nil, 0o600)) }, []string{"Run muster restore again"}},
		{"the log's segment missing", func(d string) { ok(t, os.Remove(one(t, d+"/log/p0/*.log"))) }, []string{"missing"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir, to := t.TempDir(), t.TempDir()
			ok(t, os.CopyFS(dir, os.DirFS(base)))
			x.damage(filepath.Join(dir, "data"))
			before := contents(t, filepath.Join(dir, "data"))
			code, out, errs := muster(t, "", append([]string{"migrate"}, migrateArgs(dir, to, nowhere)...)...)
			if code != exitFailed || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "is not moved: ") {
				t.Errorf("%d\n%s%s", code, out, errs)
			}
			for _, says := range x.says {
				if !strings.Contains(errs, says) {
					t.Errorf("no word of %q: %s", says, errs)
				}
			}
			if after := contents(t, filepath.Join(dir, "data")); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Error("files were changed")
			}
			if _, err := os.Stat(filepath.Join(to, "data")); err == nil {
				t.Error("a directory was made")
			}
		})
	}
}
