//go:build !unix

package idlememory

import "time"

// cpuTime knows no CPU time here.
func cpuTime() (time.Duration, bool) { return 0, false }
