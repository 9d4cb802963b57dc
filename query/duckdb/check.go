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
// moves the write-ahead log into the file.
func (s *Store) check(ctx context.Context) error {
	for _, table := range checkedTables {
		if err := s.checkTable(ctx, table); err != nil {
			return fmt.Errorf("history: check %s: %w", table, err)
		}
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	if s.writer.closed {
		return ErrClosed
	}
	if err := s.writer.exec("CHECKPOINT"); err != nil && !strings.Contains(err.Error(), "Cannot CHECKPOINT") {
		return fmt.Errorf("history: check the file: %w", err)
	}
	return nil
}

func (s *Store) checkTable(ctx context.Context, table string) error {
	c, done, err := s.reader(ctx)
	if err != nil {
		return err
	}
	defer done()
	return checkRowsOf(ctx, c, table)
}

// checkRowsOf reads all columns of all rows of a table.
func checkRowsOf(ctx context.Context, c *conn, table string) error {
	last := int64(-1)
	one := func(ch chunk) error {
		last = column[int64](ch, 0)[0]
		return nil
	}
	if err := c.query(ctx, "SELECT coalesce(max(rowid), -1) FROM "+table, nil, one); err != nil {
		return err
	}
	for from := int64(0); from <= last; from += checkRows {
		// The hash of a row looks at each of its columns.
		sql := "SELECT bit_xor(hash(t)) FROM " + table + " t WHERE rowid >= ? AND rowid < ?"
		if err := c.query(ctx, sql, []any{from, from + checkRows}, nil); err != nil {
			return err
		}
	}
	return nil
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
