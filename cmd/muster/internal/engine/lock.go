package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/dirlock"
)

// lockAgain is the pause between attempts to lock a directory that is taken.
const lockAgain = 100 * time.Millisecond

// lockDir takes the directory's lock. A process that was killed may hold it until the
// system is done with it, and one that is being stopped until its last checkpoint is
// written: so until o.LockUntil it tries again. The error wraps [ErrInUse], or is
// that of ctx.
func lockDir(ctx context.Context, fs vfs.FS, o Options) (io.Closer, error) {
	name := filepath.Join(o.Dir, "LOCK")
	again := time.NewTicker(lockAgain)
	defer again.Stop()
	for logged := false; ; {
		lock, err := dirlock.Lock(fs, name)
		var held *dirlock.HeldError
		switch {
		case err == nil:
			return lock, nil
		case !errors.As(err, &held):
			return nil, fmt.Errorf("data directory: %w", err)
		}
		left := time.Until(o.LockUntil)
		if left <= 0 {
			return nil, fmt.Errorf("%w: %w; stop it, or name another directory with --data", ErrInUse, err)
		}
		if !logged {
			logged = true
			o.Logger.Warn("another process has the data directory; waiting for it to end", "data", o.Dir, "process", held.PID, "for", left.Round(time.Second))
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
