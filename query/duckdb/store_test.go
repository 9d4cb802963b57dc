package duckdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

func TestReopen(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	appendRecords(t, s, 1, 0, 100)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.path + ".wal"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the write-ahead log is left after Close: %v", err)
	}
	again, err := Open(s.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if p := checkRecords(t, again, 1); p != 100 {
		t.Fatalf("position %d", p)
	}
	appendRecords(t, again, 1, 100, 120)
	checkRecords(t, again, 1)
}

// TestOtherVersionIsRefused: a file of a newer or an older version is neither used nor set
// aside as damaged.
func TestOtherVersionIsRefused(t *testing.T) {
	t.Parallel()
	for version, remedy := range map[int]string{schemaVersion + 1: "run the version that wrote it", schemaVersion - 1: "older than release 0.1.0"} {
		s := openTest(t)
		if err := s.writer.exec(fmt.Sprintf("UPDATE schema_version SET version = %d", version)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_, opened := Open(s.path, Options{})
		resilient := OpenResilient(ResilientOptions{Path: s.path, Log: "log", Now: time.Now, Logger: slog.New(slog.DiscardHandler)}).Opened(context.Background())
		_, _, looked := Look(context.Background(), s.path, "log", Options{}, 0)
		for _, err := range []error{opened, resilient, looked} {
			if !errors.Is(err, ErrOtherVersion) || !strings.Contains(err.Error(), fmt.Sprintf("table version %d", version)) || !strings.Contains(err.Error(), remedy) {
				t.Errorf("version %d: %v", version, err)
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("not a database", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		opts Options
		want string
	}{
		{"", Options{}, "path is empty"},
		{garbage, Options{}, "garbage"},
		{filepath.Join(dir, "no", "such", "dir"), Options{}, "no/such/dir"},
		{filepath.Join(dir, "a"), Options{MemoryLimitBytes: 5}, "MemoryLimitBytes is 5, must be at least 67108864"},
		{filepath.Join(dir, "b"), Options{Threads: -1, Readers: -1}, "Readers is -1"},
	} {
		if s, err := Open(c.path, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.path, err, c.want)
			if s != nil {
				s.Close()
			}
		}
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	_, positionErr := s.Position(ctx, 0)
	_, usageErr := s.Usage(ctx)
	_, timelineErr := s.Timeline(ctx, query.TimelineQuery{Ordinals: []uint32{1}, Limit: 1})
	_, activityErr := s.Activity(ctx, query.ActivityQuery{Leaf: historytest.CountLeaf("x", 1)})
	replayErr := s.Replay(ctx, query.ReplayQuery{EventType: "x"}, nil)
	_, transitionsErr := s.Transitions(ctx, query.TransitionsQuery{Limit: 1})
	for i, err := range []error{s.Close(), positionErr, usageErr, timelineErr, activityErr, replayErr, transitionsErr, s.Append(ctx, &query.Batch{})} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	appendRecords(t, s, 0, 0, 1000)
	u, err := s.Usage(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if want := scalar(t, s, "SELECT count(*) FROM events"); u.Rows != want || u.Rows == 0 {
		t.Fatalf("%d rows, want %d", u.Rows, want)
	}
	wal, err := os.Stat(s.path + ".wal")
	if err != nil {
		t.Fatal(err)
	}
	if u.Bytes <= wal.Size() || wal.Size() == 0 {
		t.Fatalf("%d bytes, the write-ahead log alone has %d", u.Bytes, wal.Size())
	}
}

// TestSettings: no SQL reaches the network or other files, and the bounds hold.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	for _, sql := range []string{
		"SELECT * FROM read_text('/etc/hostname')", "ATTACH '/tmp/x.db'", "INSTALL httpfs", "COPY events TO '/tmp/x.csv'",
	} {
		if err := s.writer.exec(sql); err == nil {
			t.Errorf("%s worked", sql)
		}
	}
	if n := scalar(t, s, "SELECT current_setting('threads')"); n > 2 || n < 1 {
		t.Errorf("%d threads", n)
	}
	if n := scalar(t, s, "SELECT count(*) FROM duckdb_settings() WHERE name IN ('memory_limit', 'max_temp_directory_size') AND value IN ('1.8 GiB', '9.3 GiB')"); n != 2 {
		t.Error("memory_limit and max_temp_directory_size are not the defaults of 2 GB and 10 GB")
	}
}

// TestCancelledQuery: a query ends soon after its context, and its connection
// serves the next.
func TestCancelledQuery(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "h.duckdb"), Options{Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, done, err := s.reader(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// The only connection is taken: waiting for it ends too.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if _, err := s.Usage(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	for range 20 {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Millisecond)
		start := time.Now()
		err := c.query(ctx, "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b", nil, nil)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if d := time.Since(start); d > 30*time.Second {
			t.Fatalf("ended after %v", d)
		}
	}
	done()
	if _, err := s.Usage(context.Background()); err != nil {
		t.Fatal(err)
	}
}
