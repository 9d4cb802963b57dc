// Package dirlock takes the lock of a directory, and names the process that holds it.
package dirlock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// HeldError reports that another process, or another part of this one, holds the lock.
type HeldError struct {
	Dir string
	// PID is the process that holds it, 0 when the system does not say.
	PID int
	// Command is how that process was started, such as "muster serve"; "" when the
	// system does not say.
	Command string
	cause   error
}

// Unwrap returns what the system said.
func (e *HeldError) Unwrap() error { return e.cause }

func (e *HeldError) Error() string {
	switch {
	case e.PID == 0:
		return e.Dir + " is held by another muster process"
	case e.Command == "":
		return fmt.Sprintf("%s is held by process %d", e.Dir, e.PID)
	}
	return fmt.Sprintf("%s is held by %s (process %d)", e.Dir, e.Command, e.PID)
}

// Lock takes the lock file, which it makes if need be. The error is a [*HeldError]
// when the lock is held, otherwise it says why the file cannot be opened.
func Lock(fs vfs.FS, name string) (io.Closer, error) {
	lock, err := fs.Lock(name)
	if err == nil {
		return lock, nil
	}
	var open *os.PathError
	if errors.As(err, &open) {
		return nil, fmt.Errorf("the lock file %s cannot be opened: %w", name, open.Err)
	}
	held := &HeldError{Dir: filepath.Dir(name), cause: err}
	var refused syscall.Errno
	// Without a number this process holds it, and would lose it by closing the file.
	if errors.As(err, &refused) {
		if held.PID = holder(name); held.PID > 0 {
			held.Command = command(held.PID)
		}
	}
	return nil, held
}

// holder returns the id of the process that holds the lock, 0 if it is not known.
func holder(name string) int {
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

// command returns the program and the first argument of a process, where there is
// /proc. More arguments may hold secrets.
func command(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil || len(b) == 0 {
		return ""
	}
	args := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	text := filepath.Base(args[0])
	if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		text += " " + args[1]
	}
	return text
}
