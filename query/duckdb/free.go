package duckdb

import (
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/query"
)

const (
	// leastKeptBytes is what DuckDB may keep at least when blocks are freed.
	leastKeptBytes = 16 << 20
	// freeWait is how long freeing blocks waits for each connection to be given back.
	freeWait = time.Millisecond
)

// usedBytes is the memory that DuckDB uses: blocks of the file that it keeps in case they are
// read again, and what statements need.
func (c *conn) usedBytes(ctx context.Context) (n int64, err error) {
	err = c.query(ctx, "SELECT coalesce(sum(memory_usage_bytes), 0)::BIGINT FROM duckdb_memory()", nil, func(ch chunk) error {
		n = column[int64](ch, 0)[0]
		return nil
	})
	return n, err
}

// freeBlocks frees blocks until DuckDB uses no more than so many bytes, or as few as it can. It
// keeps what was read up to its limit of memory, which is large, however long nobody asks for
// it, and frees blocks for a lower limit alone. Under such a limit a statement could fail, so
// nothing is freed while one is under way.
func (s *Store) freeBlocks(down int64) error {
	if !s.writer.TryLock() {
		return nil
	}
	defer s.writer.Unlock()
	if s.writer.closed {
		return ErrClosed
	}
	conns, err := s.gather(freeWait)
	defer giveBack(conns)
	if err != nil {
		return nil
	}
	limit := func(bytes int64) error {
		return s.writer.exec(fmt.Sprintf("SET memory_limit = '%dB'", bytes))
	}
	// One that cannot be reached is refused when all that can be freed is.
	_ = limit(max(down, leastKeptBytes))
	if err := limit(s.opts.MemoryLimitBytes); err != nil {
		return fmt.Errorf("%w: set DuckDB's limit of memory: %w", query.ErrUnavailable, err)
	}
	return nil
}
