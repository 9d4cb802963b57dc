package duckdb

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// TestFullDisk: history whose disk was full takes rows again when there is space, also
// after DuckDB has given up the file, and has each record once, also after a crash.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("cannot mount a small file system: %v", err)
		}
		t.Skipf("cannot mount a small file system (run as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	opts := Options{MemoryLimitBytes: 256 * mb, Threads: 1, CheckpointBytes: mb}
	s, err := Open(filepath.Join(dir, "history.duckdb"), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	weight := filepath.Join(dir, "weight")
	fill := func() {
		f, err := os.OpenFile(weight, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for n := 1 << 20; n > 0; {
			if _, err := f.Write(make([]byte, n)); errors.Is(err, syscall.ENOSPC) {
				n /= 2
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	at := int64(0)
	invalidated := 0
	for round := range 4 {
		appendRecords(t, s, 1, at, at+500)
		at += 500
		fill()
		refused := s.Append(t.Context(), records(1, at, at+2000))
		if !errors.Is(refused, query.ErrUnavailable) {
			t.Fatalf("round %d: an append on a full disk: %v", round, refused)
		}
		if round%2 == 0 {
			s.writer.Lock()
			err := s.writer.exec("CHECKPOINT")
			s.writer.Unlock()
			if err == nil {
				t.Fatal("moved the write-ahead log without space")
			}
			if _, err := s.Usage(t.Context()); errors.Is(err, errInvalidated) && errors.Is(err, query.ErrUnavailable) {
				invalidated++
			}
		}
		if err := os.Remove(weight); err != nil {
			t.Fatal(err)
		}
		eventually.Succeeds(t, func() error {
			if err := s.Append(t.Context(), records(1, at, at+200)); err != nil {
				return fmt.Errorf("round %d: with space again: %w", round, err)
			}
			return nil
		})
		at += 200
		if p := checkRecords(t, s, 1); p != at {
			t.Fatalf("round %d: stored up to %d, want %d", round, p, at)
		}
	}
	if invalidated != 2 {
		t.Errorf("DuckDB gave the file up %d times, the test wants 2", invalidated)
	}
	// What a kill would leave.
	crashed := t.TempDir()
	for _, name := range []string{"history.duckdb", "history.duckdb.wal"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(crashed, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A look changes nothing.
	path := filepath.Join(crashed, "history.duckdb")
	before := contents(t, crashed)
	if p, found, err := Look(t.Context(), path, "any", opts, 1); p != at || !found || err != nil {
		t.Fatalf("a look finds %d %v %v, want %d", p, found, err, at)
	}
	if after := contents(t, crashed); after != before {
		t.Error("a look changed the files")
	}
	again, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if p := checkRecords(t, again, 1); p != at {
		t.Fatalf("after a crash stored up to %d, want %d", p, at)
	}
}

func records(partition int, from, to int64) *query.Batch {
	b := new(query.Batch)
	historytest.FillRecords(b, partition, from, to)
	return b
}

// contents are all files of a directory and their bytes.
func contents(t *testing.T, dir string) string {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(dir, n.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out += fmt.Sprintf("%s %d %x\n", n.Name(), len(b), b)
	}
	return out
}
