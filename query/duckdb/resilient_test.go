package duckdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/cache"
	"github.com/musterhq/muster/query/internal/historytest"
)

const resilientLog = "the log of the test"

func resilientOptions(path string) ResilientOptions {
	return ResilientOptions{Path: path, Log: resilientLog, Now: func() time.Time { return time.UnixMilli(1_000_000_000_000) },
		Logger: slog.New(slog.DiscardHandler)}
}

func openResilient(t *testing.T, path string) *Resilient {
	t.Helper()
	r := OpenResilient(resilientOptions(path))
	if err := r.Opened(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Scrub()
	return r
}

// resilientEnd is how many records the tests' files hold: enough for sealed rows, in
// groups of resilientGroup, and rows that wait.
const resilientEnd, resilientGroup = 6_000, 4_000

// feedRecords brings a history to resilientEnd from wherever it is, as a node does:
// also when it loses everything on the way.
func feedRecords(t *testing.T, r *Resilient) {
	t.Helper()
	ctx := context.Background()
	step := int64(1_000)
	eventually.Succeeds(t, func() error {
		at, err := r.Position(ctx, 0)
		if err == nil && at >= resilientEnd {
			return nil
		}
		if err == nil {
			b := new(query.Batch)
			historytest.FillRecords(b, 0, at, min(at-at%step+step, resilientEnd))
			err = r.Append(ctx, b)
		}
		if err != nil && !errors.Is(err, query.ErrUnavailable) && !errors.Is(err, query.ErrGap) {
			t.Fatal(err)
		}
		return fmt.Errorf("history stays at %d: %w", at, err)
	})
}

// contents is a digest of all that is stored.
func (s *Store) contents(ctx context.Context) (out string, err error) {
	c, done, err := s.reader(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	for _, table := range []string{"events", "aliases", "transitions", "progress"} {
		err := c.query(ctx, "SELECT count(*), CAST(coalesce(bit_xor(hash(t)), 0) AS VARCHAR) FROM "+table+" t", nil, func(ch chunk) error {
			out += fmt.Sprintln(table, column[int64](ch, 0)[0], ch.text(1)[0])
			return nil
		})
		if err != nil {
			return "", err
		}
	}
	return out, nil
}

func (r *Resilient) contents(ctx context.Context) (out string, err error) {
	err = r.with(ctx, nil, func(s *Store) error {
		out, err = s.contents(ctx)
		return err
	})
	return out, err
}

// scrubbedState waits until nothing is looked at and returns what is stored.
func scrubbedState(t *testing.T, r *Resilient) string {
	t.Helper()
	var out string
	eventually.Succeeds(t, func() (err error) {
		if out, err = r.contents(context.Background()); err != nil && !errors.Is(err, query.ErrUnavailable) {
			t.Fatal(err)
		}
		return err
	})
	return out
}

// whole brings a history to resilientEnd and returns what is stored then, once nothing
// is looked at any more.
func whole(t *testing.T, r *Resilient) string {
	t.Helper()
	feedRecords(t, r)
	<-r.scrubbed
	scrubbedState(t, r)
	feedRecords(t, r) // what was lost meanwhile
	return scrubbedState(t, r)
}

// resilientFiles writes a file with a write-ahead log beside it, as kill -9 leaves
// them, or a closed file, and returns what they hold.
func resilientFiles(t *testing.T, dir string, closed bool) (contents string) {
	t.Helper()
	path := filepath.Join(dir, "h.duckdb")
	r := openResilient(t, path)
	r.mu.current.store.groupRows = resilientGroup
	contents = whole(t, r)
	if !closed {
		// A copy, since closing moves the write-ahead log into the file.
		if err := errors.Join(copyFile(path, path+".x"), copyFile(path+".wal", path+".wal.x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if !closed {
		if err := errors.Join(os.Rename(path+".x", path), os.Rename(path+".wal.x", path+".wal")); err != nil {
			t.Fatal(err)
		}
	}
	return contents
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

// TestDamagedFile: whatever is done to the file or its write-ahead log, history opens,
// holds what it says and never something else, takes the rows that it lacks, and
// closes; then it holds what it held.
func TestDamagedFile(t *testing.T) {
	testlevel.SkipQuick(t, "damages many files")
	t.Parallel()
	for _, closed := range []bool{true, false} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) {
			from, other := t.TempDir(), t.TempDir()
			want := resilientFiles(t, from, closed)
			o := resilientOptions(filepath.Join(other, "h.duckdb"))
			o.Log = "another log"
			r := OpenResilient(o)
			if err := r.Opened(t.Context()); err != nil {
				t.Fatal(err)
			} else if err := r.Append(context.Background(), &query.Batch{To: 3}); err != nil {
				t.Fatal(err)
			} else if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			names := []string{"h.duckdb"}
			if !closed {
				names = append(names, "h.duckdb.wal")
			}
			for _, name := range names {
				b, err := os.ReadFile(filepath.Join(from, name))
				if err != nil {
					t.Fatal(err)
				}
				kinds := map[string][]byte{"removed": nil, "emptied": {}, "last byte lost": b[:len(b)-1], "half lost": b[:len(b)/2]}
				for _, at := range []int{0, 1, 8, 100, 4096, 8192, 12288, len(b) / 4, len(b) / 2, len(b) * 3 / 4, len(b) - 1} {
					if at < len(b) {
						x := bytes.Clone(b)
						x[at] ^= 0x10
						kinds[fmt.Sprintf("byte %d of %d flipped", at, len(b))] = x
					}
				}
				if foreign, err := os.ReadFile(filepath.Join(other, name)); err == nil {
					kinds["of another directory"] = foreign
				}
				for kind, content := range kinds {
					dir := t.TempDir()
					for _, n := range names {
						if err := copyFile(filepath.Join(from, n), filepath.Join(dir, n)); err != nil {
							t.Fatal(err)
						}
					}
					path := filepath.Join(dir, name)
					if content == nil {
						err = os.Remove(path)
					} else {
						err = os.WriteFile(path, content, 0o600)
					}
					if err != nil {
						t.Fatal(err)
					}
					r := openResilient(t, filepath.Join(dir, "h.duckdb"))
					if got := whole(t, r); got != want {
						t.Errorf("%s %s: history holds\n%swant\n%s", name, kind, got, want)
					}
					aside, _ := filepath.Glob(filepath.Join(dir, "*"+setAsideMark+"*"))
					t.Logf("%s %s: %d files replaced, aside: %d", name, kind, r.Replaced(), len(aside))
					if err := r.Close(); err != nil {
						t.Errorf("%s %s: close: %v", name, kind, err)
					}
				}
			}
		})
	}
}

// TestFileIsOpenedBesides: the first question about a history waits until its file is open,
// and one that is closed before leaves the file to others.
func TestFileIsOpenedBesides(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "h.duckdb")
	for range 3 {
		if err := OpenResilient(resilientOptions(path)).Close(); err != nil {
			t.Fatal(err)
		}
	}
	r := OpenResilient(resilientOptions(path))
	if at, err := r.Position(t.Context(), 0); err != nil || at != 0 {
		t.Errorf("at %d, %v", at, err)
	}
	if err := r.Append(t.Context(), &query.Batch{To: 3}); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, path+"2"); err != nil {
		t.Fatal(err)
	}
	r = OpenResilient(resilientOptions(path + "2"))
	if at, err := r.Position(t.Context(), 0); err == nil {
		t.Errorf("a file that is not opened is at %d", at)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestResilientExpectsQuestions: the store in use hears of questions that are expected.
func TestResilientExpectsQuestions(t *testing.T) {
	t.Parallel()
	o := resilientOptions(filepath.Join(t.TempDir(), "h.duckdb"))
	o.Options.Columns = true
	r := OpenResilient(o)
	defer r.Close()
	if err := r.Opened(t.Context()); err != nil {
		t.Fatal(err)
	}
	feedRecords(t, r)
	h, err := cache.New(r, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.ExpectQuestions()
	r.mu.Lock()
	set := r.mu.current.store.columns.set
	r.mu.Unlock()
	eventually.Holds(t, "columns of the events", func() bool { return set.Memory(0).Rows > 0 || len(set.Files(0)) > 0 })
}

// TestDamageWhileOpen: rows that cannot be read any more take the file out of use;
// until the rows are there again no answer may be as if there were none.
func TestDamageWhileOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "h.duckdb")
	want := resilientFiles(t, dir, true)
	r := openResilient(t, path)
	defer r.Close()
	<-r.scrubbed
	scrubbedState(t, r)
	losses := make(chan struct{}, 1)
	r.OnLoss(func() { losses <- struct{}{} })
	ctx := context.Background()
	cut := query.Cut{UpTo: resilientEnd}
	if _, err := r.Transitions(ctx, query.TransitionsQuery{Cut: cut, Account: 7, Limit: 1}); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	o := r.mu.current
	o.users++
	r.mu.Unlock()
	if err := os.Truncate(path, 12288+10_000); err != nil {
		t.Fatal(err)
	}
	if err := r.done(o, errors.New("duckdb: FATAL Error: database has been invalidated")); !errors.Is(err, query.ErrUnavailable) {
		t.Fatal(err)
	}
	var rebuilding *query.RebuildingError
	eventually.Holds(t, "an empty history does not answer as if it were whole", func() bool {
		return errors.As(errOf(r.Transitions(ctx, query.TransitionsQuery{Cut: cut, Account: 7, Limit: 1})), &rebuilding)
	})
	<-losses
	b := new(query.Batch)
	historytest.FillRecords(b, 0, resilientEnd, resilientEnd+1)
	if err := r.Append(ctx, b); !errors.Is(err, query.ErrGap) {
		t.Fatalf("rows behind those that are missing: %v", err)
	}
	feedRecords(t, r)
	if got := scrubbedState(t, r); got != want || r.Replaced() != 1 {
		t.Errorf("history holds\n%swant\n%s(replaced %d)", got, want, r.Replaced())
	}
	if aside, err := filepath.Glob(path + setAsideMark + "*"); err != nil || len(aside) != 1 || !strings.HasSuffix(aside[0], "20010909T014640.000Z") {
		t.Errorf("set aside: %v %v", aside, err)
	}
	// It may have what is erased, also where it is a directory.
	if err := os.MkdirAll(path+setAsideMark+"20000101T000000.000Z/x", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.Erase(ctx, query.EraseQuery{Cut: cut, Account: 7, Ordinals: []uint32{1}}); err != nil {
		t.Fatal(err)
	}
	if aside, err := filepath.Glob(path + setAsideMark + "*"); err != nil || len(aside) != 0 {
		t.Errorf("after an erasure: %v %v", aside, err)
	}
}

// TestDamageThatTheLogCannotMend: a damaged file stays where it is when the log was trimmed,
// and history says what to do: at a start, in use, and at a stop.
func TestDamageThatTheLogCannotMend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "h.duckdb")
	resilientFiles(t, dir, true)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o := resilientOptions(path)
	var trimming sync.Mutex
	o.Trimming = &trimming
	o.Rebuildable = func(context.Context) (bool, error) {
		if trimming.TryLock() {
			trimming.Unlock()
			t.Error("the log may be trimmed meanwhile")
		}
		return false, nil
	}
	lost := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, query.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), "restore a backup") || !strings.Contains(fmt.Sprint(err), path) {
			t.Errorf("%s: %v", what, err)
		}
		if aside, err := filepath.Glob(path + setAsideMark + "*"); err != nil || len(aside) != 0 {
			t.Errorf("%s: set aside: %v %v", what, aside, err)
		}
	}
	// At a start.
	head := bytes.Clone(whole)
	head[100] ^= 0x10
	if err := os.WriteFile(path, head, 0o600); err != nil {
		t.Fatal(err)
	}
	r := OpenResilient(o)
	lost("start", r.Opened(t.Context()))
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, head) {
		t.Errorf("a start changes the file: %v", err)
	}
	// In use.
	last := bytes.Clone(whole)
	last[len(last)-1] ^= 0x10
	if err := os.WriteFile(path, last, 0o600); err != nil {
		t.Fatal(err)
	}
	r = OpenResilient(o)
	if err := r.Opened(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Scrub()
	eventually.Holds(t, "the file is out of use", func() bool {
		_, err := r.Position(t.Context(), 0)
		return err != nil && strings.Contains(err.Error(), "restore a backup")
	})
	_, err = r.Position(t.Context(), 0)
	lost("position", err)
	lost("rows", r.Append(t.Context(), &query.Batch{From: resilientEnd, To: resilientEnd + 1}))
	if err := r.Close(); err != nil || r.Replaced() != 0 {
		t.Errorf("close: %v, replaced %d", err, r.Replaced())
	}
}

func errOf[T any](_ T, err error) error { return err }

// TestSuspicionOfAWholeFile: an error that speaks of damage makes history look at the
// file; one that can be read is kept.
func TestSuspicionOfAWholeFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := resilientFiles(t, dir, true)
	r := openResilient(t, filepath.Join(dir, "h.duckdb"))
	o, err := r.use(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.done(o, errors.New("duckdb: INTERNAL Error: a fault of DuckDB"))
	if got := scrubbedState(t, r); got != want || r.Replaced() != 0 {
		t.Errorf("history holds\n%swant\n%s(replaced %d)", got, want, r.Replaced())
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "h.duckdb.wal")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a write-ahead log is left: %v", err)
	}
}

// TestNewestSetAsideIsKept: of damaged databases, and of damaged write-ahead logs, the newest
// one is kept.
func TestNewestSetAsideIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.duckdb")
	write := func(suffix string) {
		t.Helper()
		if err := os.WriteFile(path+suffix, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	want := func(names ...string) {
		t.Helper()
		have, err := filepath.Glob(path + "*")
		for i := range have {
			have[i] = strings.TrimPrefix(have[i], path+setAsideMark+"19700101T0000")
		}
		if err != nil || !slices.Equal(have, names) {
			t.Errorf("left are %v, want %v (%v)", have, names, err)
		}
	}
	write("")
	write(".wal")
	if err := SetAside(path, at(1)); err != nil {
		t.Fatal(err)
	}
	want("01.000Z", "01.000Z.wal")
	for second := range int64(2) {
		write(".wal")
		if err := setAside(path, at(second+2), ".wal"); err != nil {
			t.Fatal(err)
		}
	}
	want("01.000Z", "03.000Z.wal")
	write("")
	if err := SetAside(path, at(4)); err != nil {
		t.Fatal(err)
	}
	want("04.000Z")
}
