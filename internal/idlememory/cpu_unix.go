//go:build unix

package idlememory

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time that the process has taken so far.
func cpuTime() (time.Duration, bool) {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
