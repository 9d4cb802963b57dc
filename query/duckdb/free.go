package duckdb

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/musterhq/muster/query"
)

const (
	// leastKeptBytes is what DuckDB may keep at least when blocks are freed.
	leastKeptBytes = 16 << 20
	// freeStep is how much is freed at a time, which takes some 7 ms.
	freeStep = 64 << 20
	// freeWait is how long freeing blocks waits for each connection to be given back.
	freeWait = time.Millisecond
)

// usedBytes is the memory that DuckDB uses: blocks of the file that it keeps in case they are
// read again, and what statements need.
func (c *conn) usedBytes(ctx context.Context) (int64, error) {
	return c.integer(ctx, "SELECT coalesce(sum(memory_usage_bytes), 0)::BIGINT FROM duckdb_memory()")
}

// freeBlocks frees blocks until DuckDB uses no more than so many bytes, or as few as it can, and
// reports whether it did. DuckDB keeps what was read up to its limit of memory, which is large,
// however long nobody asks for it, and frees it for a lower limit alone. It may also write rows
// to its temporary file then that are not in the database file yet. A statement could fail under
// the lower limit, so nothing is freed while one is under way. Freeing a gigabyte takes 0.1 s,
// so it is done in steps, between which statements have their turn.
func (s *Store) freeBlocks(ctx context.Context, down int64) (freed bool, err error) {
	down = max(down, leastKeptBytes)
	for last := int64(math.MaxInt64); ; {
		used, alone, err := s.freeSome(ctx, down)
		if err != nil || !alone {
			return false, err
		}
		if used <= down || used >= last {
			return true, nil
		}
		last = used
	}
}

// freeSome is a step of freeBlocks. It returns what is used afterwards, and whether no statement
// was under way.
func (s *Store) freeSome(ctx context.Context, down int64) (used int64, alone bool, err error) {
	if !s.writer.TryLock() {
		return 0, false, nil
	}
	defer s.writer.Unlock()
	if s.writer.closed {
		return 0, false, ErrClosed
	}
	conns, err := s.gather(freeWait)
	defer giveBack(conns)
	if err != nil {
		return 0, false, nil
	}
	if used, err = s.writer.usedBytes(ctx); err != nil || used <= down {
		return used, true, err
	}
	limit := func(bytes int64) error {
		return s.writer.exec(fmt.Sprintf("SET memory_limit = '%dB'", bytes))
	}
	// One that cannot be reached is refused when all that can be freed is.
	_ = limit(max(down, used-freeStep))
	if err := limit(s.opts.MemoryLimitBytes); err != nil {
		return 0, false, fmt.Errorf("%w: set DuckDB's limit of memory: %w", query.ErrUnavailable, err)
	}
	used, err = s.writer.usedBytes(ctx)
	return used, true, err
}
