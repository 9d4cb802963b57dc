package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
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
	for told := false; ; {
		lock, err := fs.Lock(name)
		if err == nil {
			return lock, nil
		}
		left := time.Until(o.LockUntil)
		if left <= 0 {
			return nil, fmt.Errorf("%w: %s is held by another muster process%s; stop it, or name another directory with --data (%w)", ErrInUse, o.Dir, holder(name, err), err)
		}
		if !told {
			told = true
			o.Logger.Warn("another process has the data directory; waiting for it to end", "data", o.Dir, "process", lockHolder(name, err), "for", left.Round(time.Second))
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// holder names the process that holds the lock, in brackets, if that is known.
func holder(name string, err error) string {
	if pid := lockHolder(name, err); pid > 0 {
		return fmt.Sprintf(" (%d)", pid)
	}
	return ""
}

// lockHolder is the id of the process that holds the lock after it was refused with
// err, 0 when the system does not say.
func lockHolder(name string, err error) int {
	var refused syscall.Errno
	if !errors.As(err, &refused) {
		return 0 // this process holds it, and would lose it by closing the file
	}
	f, err := os.Open(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil || lock.Type == syscall.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}
