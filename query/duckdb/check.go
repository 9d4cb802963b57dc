package duckdb

import (
	"context"
	"fmt"
	"strings"
)

// checkRows is how many rows of a table are read at a time: a statement keeps DuckDB
// from moving its write-ahead log into the file while it runs.
const checkRows = 1_000_000

// checkedTables are all with rows of events.
var checkedTables = []string{"events_sealed", "events_recent", "aliases", "transitions", "progress"}

// check reads all tables, whose blocks DuckDB compares with their checksums, and
// moves the write-ahead log into the file. It frees what it has read down to the memory that
// was used before, unless statements are under way all the time; then freed is false, and
// [Store.freeBlocks] is to be called again.
func (s *Store) check(ctx context.Context) (used int64, freed bool, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		used, err = c.usedBytes(ctx)
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("history: check the file: %w", err)
	}
	for _, table := range checkedTables {
		err := checkTable(ctx, table, func(piece func(*conn) error) (err error) {
			if err = s.read(ctx, piece); err == nil {
				freed, err = s.freeBlocks(ctx, used)
			}
			return err
		})
		if err != nil {
			return 0, false, fmt.Errorf("history: check %s: %w", table, err)
		}
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	if s.writer.closed {
		return 0, false, ErrClosed
	}
	if err := s.writer.exec("CHECKPOINT"); err != nil && !strings.Contains(err.Error(), "Cannot CHECKPOINT") {
		return 0, false, fmt.Errorf("history: check the file: %w", err)
	}
	return used, freed, nil
}

// read calls fn with a connection of the readers.
func (s *Store) read(ctx context.Context, fn func(*conn) error) error {
	c, done, err := s.reader(ctx)
	if err != nil {
		return err
	}
	defer done()
	return fn(c)
}

// checkTable reads all columns of all rows of a table. It hands each piece of the work to on,
// which calls it with a connection.
func checkTable(ctx context.Context, table string, on func(piece func(*conn) error) error) error {
	last := int64(-1)
	err := on(func(c *conn) (err error) {
		last, err = c.integer(ctx, "SELECT coalesce(max(rowid), -1) FROM "+table)
		return err
	})
	for from := int64(0); err == nil && from <= last; from += checkRows {
		err = on(func(c *conn) error {
			// The hash of a row looks at each of its columns.
			sql := "SELECT bit_xor(hash(t)) FROM " + table + " t WHERE rowid >= ? AND rowid < ?"
			return c.query(ctx, sql, []any{from, from + checkRows}, nil)
		})
	}
	return err
}

// claim makes a log the owner of a file without one, and returns the owner.
func (s *Store) claim(ctx context.Context, log string) (owner string, err error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	read := func(ch chunk) error {
		owner = ch.text(0)[0]
		return nil
	}
	if err := s.writer.query(ctx, "SELECT log FROM log_name", nil, read); err != nil || owner != "" {
		return owner, err
	}
	if err := s.writer.query(ctx, "INSERT INTO log_name VALUES (?)", []any{log}, nil); err != nil {
		return "", err
	}
	return log, nil
}

// abandon closes the file without writing to it.
func (s *Store) abandon() {
	s.writer.Lock()
	s.writer.closed = true
	_ = s.writer.exec("PRAGMA disable_checkpoint_on_shutdown") // fails where the file is at fault
	s.writer.Unlock()
	s.closeColumns()
	for _, idle := range []chan *conn{s.replays, s.readers} {
		for range cap(idle) {
			(<-idle).close()
		}
		close(idle)
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	s.release()
}
