package idlememory

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"
)

const (
	// period is the time between two looks at the CPU time.
	period = time.Minute
	// idleCPU is the CPU time within a period from which on the process is busy. Timers,
	// health checks and metrics take a tenth of it.
	idleCPU = time.Second
	// share is how much more CPU time the process takes between two releases than a release
	// takes.
	share = 10
)

// Run releases memory whenever the process is idle, until ctx ends. It does nothing
// on systems that do not tell the CPU time of a process. log may be nil.
func Run(ctx context.Context, log *slog.Logger) {
	used, known := cpuTime()
	if !known {
		return
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w := watch{last: used}
	look := time.NewTicker(period)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		begun, _ := cpuTime()
		if !w.due(begun) {
			continue
		}
		unmapped, err := Release()
		if err != nil {
			log.Warn("cannot unmap unused pages of files; the server keeps more memory than it needs", "error", err)
		}
		ended, _ := cpuTime()
		w.released(begun, ended)
		log.Debug("idle: memory was given back to the system", "file_bytes", unmapped, "cpu", ended-begun)
	}
}

// watch decides when memory is released. Times are CPU times of the process.
type watch struct {
	last time.Duration // at the last look
	next time.Duration // from which on a release is worth its CPU time
}

// due reports whether memory is to be released now, a period after the last look: the
// process has been idle since, and has worked since the last release.
func (w *watch) due(used time.Duration) bool {
	idle := used-w.last < idleCPU
	w.last = used
	return idle && used >= w.next
}

// released notes a release, which is no work of the process itself.
func (w *watch) released(begun, ended time.Duration) {
	w.last = ended
	w.next = ended + share*(ended-begun)
}

// Release collects garbage, returns free pages of Go's heap and of the C library's, and unmaps
// pages of files that can be mapped again. It returns the bytes of files that it has unmapped.
func Release() (unmapped int64, err error) {
	debug.FreeOSMemory()
	trimC()
	return unmapFiles()
}
