package clickhouse

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// semaphore bounds the connections of one kind. It is taken before a connection
// is, so that the driver never waits for one.
type semaphore chan struct{}

func (s semaphore) take(ctx context.Context) (done func(), err error) {
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	default:
	}
	select {
	case s <- struct{}{}:
		return func() { <-s }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// watch ends a context when the server says nothing for too long.
type watch struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
	quiet  time.Duration
	// last is when the server was heard of, in Unix nanoseconds; 0 while the client
	// does not listen to it.
	last atomic.Int64
	end  context.CancelFunc
}

// watched is a context for one statement; stop ends it.
func (s *Store) watched(ctx context.Context, limit time.Duration, opts ...clickhouse.QueryOption) (context.Context, *watch) {
	w := &watch{quiet: s.opts.QuietTimeout}
	ctx, w.end = context.WithTimeout(ctx, limit)
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.heard()
	w.timer = time.AfterFunc(w.quiet, w.look)
	opts = append(opts, clickhouse.WithProgress(func(*clickhouse.Progress) { w.heard() }))
	return clickhouse.Context(ctx, opts...), w
}

func (w *watch) heard() { w.last.Store(time.Now().UnixNano()) }

// deaf notes that the client does not listen to the server until heard is called.
func (w *watch) deaf() { w.last.Store(0) }

func (w *watch) look() {
	last := w.last.Load()
	wait := w.quiet
	if last != 0 {
		wait -= time.Since(time.Unix(0, last))
	}
	if wait <= 0 {
		w.cancel(errQuiet)
		return
	}
	w.timer.Reset(wait)
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
	w.end()
}

// query runs a statement and calls row for each row of its answer. An error of
// row ends it and is returned as it is. A connection that turns out to be lost
// before there was a row is no error: a server, or something on the way to it, may
// have dropped all that were not in use.
func (s *Store) query(ctx context.Context, limit time.Duration, sql string, row func(driver.Rows) error) error {
	ctx, end := context.WithTimeout(ctx, limit)
	defer end()
	for tries := s.conn.Stats().MaxOpenConns; ; tries-- {
		begun, err := s.queryOnce(ctx, limit, sql, row)
		if err == nil || begun || tries == 0 || ctx.Err() != nil || !lost(err) {
			return err
		}
	}
}

// queryOnce is query on one connection; begun reports whether row was called.
func (s *Store) queryOnce(ctx context.Context, limit time.Duration, sql string, row func(driver.Rows) error) (begun bool, err error) {
	if s.closed.Load() {
		return false, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	ctx, w := s.watched(ctx, limit)
	defer w.stop()
	rows, err := s.conn.Query(ctx, sql)
	if err != nil {
		return false, s.classify(ctx, err)
	}
	for rows.Next() {
		w.deaf()
		begun = true
		if err := row(rows); err != nil {
			// Else closing would read the rest of the answer.
			w.cancel(nil)
			_ = rows.Close()
			return true, err
		}
		w.heard()
	}
	if err := rows.Close(); err != nil {
		return begun, s.classify(ctx, err)
	}
	return begun, s.classify(ctx, rows.Err())
}

// ask is query on one of the connections for questions.
func (s *Store) ask(ctx context.Context, sql string, row func(driver.Rows) error) error {
	done, err := s.readers.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.query(ctx, s.opts.QueryTimeout, sql, row)
}

// alter runs a statement that a server may work on for long without a word: one
// that changes rows.
func (s *Store) alter(ctx context.Context, sql string) error {
	if s.closed.Load() {
		return ErrClosed
	}
	ctx, end := context.WithTimeout(ctx, pieceTimeout)
	defer end()
	return s.classify(ctx, s.conn.Exec(ctx, sql))
}

// exec runs a statement without an answer.
func (s *Store) exec(ctx context.Context, limit time.Duration, sql string, opts ...clickhouse.QueryOption) error {
	if s.closed.Load() {
		return ErrClosed
	}
	ctx, w := s.watched(ctx, limit, opts...)
	defer w.stop()
	return s.classify(ctx, s.conn.Exec(ctx, sql))
}
