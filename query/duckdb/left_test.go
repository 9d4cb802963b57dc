package duckdb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRemoveLeft: a file of the log goes with all that belongs to it, and so does a damaged one;
// one of another log, or that goes beyond this one, stays whole, and so do copies.
func TestRemoveLeft(t *testing.T) {
	t.Parallel()
	const set = "h.duckdb.damaged-20260102T030405.000Z"
	for _, x := range []struct {
		name   string
		log    string
		end    int64
		damage bool
		stays  bool
	}{
		{"of the log", resilientLog, resilientEnd, false, false},
		{"damaged", resilientLog, resilientEnd, true, false},
		{"of another log", "another log", resilientEnd, false, true},
		{"beyond the log", resilientLog, resilientEnd - 1, false, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "h.duckdb")
			r := openResilient(t, path)
			feedRecords(t, r)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if x.damage {
				if err := os.Truncate(path, 20_000); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{set, "h.duckdb.bak", "h.duckdb.rewrite"} {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(path+ColumnsSuffix, 0o700); err != nil {
				t.Fatal(err)
			}
			before := names(t, dir)
			err := RemoveLeft(context.Background(), path, x.log, Options{}, []int64{x.end})
			if errors.Is(err, ErrNotOurs) != x.stays || err != nil && !x.stays {
				t.Errorf("%v", err)
			}
			after, want := names(t, dir), []string{"h.duckdb.bak"}
			if x.stays {
				want = before
			}
			if !slices.Equal(after, want) {
				t.Errorf("there are %q, not %q", after, want)
			}
			left, err := Left(path)
			if err != nil || len(left) > 0 != x.stays {
				t.Errorf("left: %q %v", left, err)
			}
		})
	}
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
