package duckdb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/eventually"
)

// rowsToFree is how many rows of a kilobyte the tests of freeing have: more bytes than DuckDB may
// keep.
const rowsToFree = 6 * leastKeptBytes >> 10

// openLarge opens a file of which a reading of all rows takes more memory than DuckDB may keep.
func openLarge(t *testing.T) *Store {
	t.Helper()
	s := openTest(t)
	texts := make([]string, 32)
	for i := range texts {
		texts[i] = "md5(concat(i, random()))"
	}
	sql := fmt.Sprintf(`INSERT INTO events_sealed SELECT 7, 0, i, 0, i, i, 'view', concat(%s), '' FROM range(%d) r(i); CHECKPOINT`,
		strings.Join(texts, ", "), rowsToFree)
	if err := s.writer.exec(sql); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(s.path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.Close() })
	return again
}

func used(t *testing.T, s *Store) (n int64) {
	t.Helper()
	err := s.read(t.Context(), func(c *conn) (err error) {
		n, err = c.usedBytes(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCheckKeepsNothing: what a check has read is not in memory afterwards, and DuckDB has all of
// its memory for what comes.
func TestCheckKeepsNothing(t *testing.T) {
	t.Parallel()
	s := openLarge(t)
	setting := func() (v string) {
		t.Helper()
		err := s.writer.query(t.Context(), "SELECT current_setting('memory_limit')", nil, func(ch chunk) error {
			v = ch.text(0)[0]
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	limit := setting()
	if _, freed, err := s.check(t.Context()); err != nil || !freed {
		t.Fatal(freed, err)
	}
	if n := used(t, s); n > leastKeptBytes {
		t.Errorf("%d bytes are used after a check", n)
	}
	if got := setting(); got != limit {
		t.Errorf("the limit is %s, and was %s", got, limit)
	}
}

// TestScrubFreesLater: what the check after a start has read is freed once the statements that were
// under way are done.
func TestScrubFreesLater(t *testing.T) {
	t.Parallel()
	s := openLarge(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r := OpenResilient(resilientOptions(s.path))
	defer r.Close()
	if err := r.Opened(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := r.mu.current.store
	c := <-again.replays
	r.Scrub()
	if err := r.Scrubbed(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := used(t, again); n < 2*leastKeptBytes {
		t.Errorf("%d bytes are used beside a replay", n)
	}
	again.replays <- c
	eventually.Succeeds(t, func() error {
		if n := used(t, again); n > leastKeptBytes {
			return fmt.Errorf("%d bytes are used", n)
		}
		return nil
	})
}

// TestFreeBlocksGivesWay: nothing is freed beside a statement, which the lower limit could fail.
func TestFreeBlocksGivesWay(t *testing.T) {
	t.Parallel()
	s := openLarge(t)
	if err := s.writer.exec("SELECT bit_xor(hash(t)) FROM events_sealed t"); err != nil {
		t.Fatal(err)
	}
	full := used(t, s)
	if full < 2*leastKeptBytes {
		t.Fatalf("%d bytes are used: the file is too small for this test", full)
	}
	busy := map[string]func() func(){
		"a question": func() func() { c := <-s.readers; return func() { s.readers <- c } },
		"a replay":   func() func() { c := <-s.replays; return func() { s.replays <- c } },
		"an append":  func() func() { s.writer.Lock(); return s.writer.Unlock },
	}
	for name, begin := range busy {
		done := begin()
		freed, err := s.freeBlocks(t.Context(), 0)
		done()
		if n := used(t, s); freed || err != nil || n < full {
			t.Errorf("beside %s: %d bytes are used, %d were; freed %v, %v", name, n, full, freed, err)
		}
	}
	if freed, err := s.freeBlocks(t.Context(), 0); err != nil || !freed {
		t.Fatal(freed, err)
	}
	if n := used(t, s); n > leastKeptBytes {
		t.Errorf("%d bytes are used after freeing", n)
	}
	if len(s.readers) != s.opts.Readers || len(s.replays) != s.opts.Replays {
		t.Errorf("%d readers and %d replays are idle", len(s.readers), len(s.replays))
	}
}
