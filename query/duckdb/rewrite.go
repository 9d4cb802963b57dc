package duckdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// rewriteSuffix is that of the file that the tables are rewritten to.
const rewriteSuffix = ".rewrite"

// rewriteShare bounds the part of the time that rewriting takes: after one that took a
// while the next begins so many times as much later.
const rewriteShare = 9

// rewrite writes all tables to a new file, which takes the place of this one.
//
// DuckDB leaves what was deleted or overwritten where it stands: in row groups that
// are not rewritten, in blocks that are shared with others, in blocks that are
// free. Only a new file is certain to be without it. Appends wait meanwhile, and what
// reads while the files are exchanged.
func (s *Store) rewrite(ctx context.Context) error {
	begun := time.Now() // for the pace only
	defer func() {
		now := time.Now()
		s.nextRewrite = now.Add(rewriteShare * now.Sub(begun))
	}()
	fresh := s.path + rewriteSuffix
	if err := removeDatabase(fresh); err != nil {
		return err
	}
	defer func() { _ = removeDatabase(fresh) }()
	if err := s.copyTo(ctx, fresh); err != nil {
		return err
	}
	if err := syncFile(fresh); err != nil {
		return err
	}
	return s.exchange(fresh)
}

// copyTo writes all tables to a file that is not there yet. It is a database of its
// own, so that a fault in it, such as a disk that is full, is none of this one.
func (s *Store) copyTo(ctx context.Context, path string) (err error) {
	opts := s.opts
	opts.MemoryLimitBytes = max(opts.MemoryLimitBytes/4, 128<<20)
	opts.TempDir += rewriteSuffix
	var db bindings.Database
	if err := openDatabase(path, opts, &db); err != nil {
		return err
	}
	defer bindings.Close(&db)
	to, err := connect(db)
	if err != nil {
		return err
	}
	defer to.close()
	s.writer.Lock()
	defer s.writer.Unlock()
	if s.writer.closed {
		return ErrClosed
	}
	// An older version may have left it: it wrote over free blocks with it.
	if err := s.writer.exec("DROP TABLE IF EXISTS scrub"); err != nil {
		return err
	}
	var tables []string
	err = s.writer.query(ctx, "SELECT table_name FROM duckdb_tables() ORDER BY 1", nil, func(ch chunk) error {
		tables = append(tables, ch.text(0)...)
		return nil
	})
	if err != nil {
		return err
	}
	if err := to.exec("BEGIN; " + schema); err != nil {
		return err
	}
	for _, t := range tables {
		if err := s.copyTable(ctx, to, t); err != nil {
			return fmt.Errorf("table %s: %w", t, err)
		}
	}
	return to.exec("COMMIT; CHECKPOINT")
}

// copyTable writes a table's rows, in their order, to the table of the same name. The
// writer's lock is held.
func (s *Store) copyTable(ctx context.Context, to *conn, table string) error {
	var app bindings.Appender
	if bindings.AppenderCreate(to.c, "", table, &app) != bindings.StateSuccess {
		err := failure(bindings.AppenderError(app))
		bindings.AppenderDestroy(&app)
		return err
	}
	defer bindings.AppenderDestroy(&app)
	err := s.writer.query(ctx, `SELECT * FROM "`+table+`"`, nil, func(ch chunk) error {
		if bindings.AppendDataChunk(app, ch.dc) != bindings.StateSuccess {
			return failure(bindings.AppenderError(app))
		}
		return nil
	})
	if err == nil && bindings.AppenderFlush(app) != bindings.StateSuccess {
		err = failure(bindings.AppenderError(app))
	}
	return err
}

// exchange puts the file in the place of this one. It is refused while statements are
// under way for long, and tried again later.
func (s *Store) exchange(fresh string) (err error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	w := &s.writer
	if w.closed {
		return ErrClosed
	}
	conns, err := s.gather(reviveWait)
	defer giveBack(conns)
	if err != nil {
		return err
	}
	// It is left as it is, whole, until the rename.
	if err := w.exec("CHECKPOINT"); err != nil {
		return err
	}
	w.stored = nil
	var failed error
	err = s.reopen(conns, func() {
		// Nothing is left in it: what were there would be taken for the new file's.
		if failed = os.Remove(s.path + ".wal"); errors.Is(failed, os.ErrNotExist) {
			failed = nil
		}
		if failed == nil {
			failed = os.Rename(fresh, s.path)
		}
		if failed == nil {
			failed = syncFile(filepath.Dir(s.path))
		}
	})
	return errors.Join(failed, err)
}

// removeDatabase removes a database file and its write-ahead log, if there are any.
func removeDatabase(path string) error {
	for _, name := range []string{path, path + ".wal"} {
		if err := os.RemoveAll(name); err != nil { // whatever it is
			return err
		}
	}
	return nil
}

// syncFile makes a file, or a directory's entries, durable.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
