package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/pause"
)

const (
	// copyRetry is the pause between tries to move the write-ahead log into the file,
	// copyTries how often: statements that are under way are in the way of it.
	copyRetry = 100 * time.Millisecond
	copyTries = 300
)

// CopyTo writes the database as it is at one instant to a new file. Appends wait
// meanwhile.
func (s *Store) CopyTo(ctx context.Context, path string) error {
	for try := 0; ; try++ {
		busy, err := s.copyOnce(ctx, path)
		if err == nil || !busy || try == copyTries {
			if err != nil {
				err = fmt.Errorf("history: copy to %s: %w", path, err)
			}
			return err
		}
		if err := pause.For(ctx, copyRetry); err != nil {
			return err
		}
	}
}

func (s *Store) copyOnce(ctx context.Context, path string) (busy bool, err error) {
	s.writer.Lock()
	defer s.writer.Unlock()
	if s.writer.closed {
		return false, ErrClosed
	}
	if err := s.writer.exec("CHECKPOINT"); err != nil {
		return strings.Contains(err.Error(), "Cannot CHECKPOINT"), err
	}
	// All is in the file now, and only who holds the lock writes to it. Closing it here
	// gives up the lock of the operating system that DuckDB has on it: that of the data
	// directory keeps other processes away.
	from, err := os.Open(s.path)
	if err != nil {
		return false, err
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(to, ctxReader{ctx, from})
	return false, errors.Join(err, to.Close())
}

// ctxReader ends when its context does.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r ctxReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// CopyTo is [Store.CopyTo] of the file in use.
func (r *Resilient) CopyTo(ctx context.Context, path string) error {
	return r.with(ctx, nil, func(s *Store) error { return s.CopyTo(ctx, path) })
}
