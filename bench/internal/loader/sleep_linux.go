package loader

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// fineSleep is the last part of a wait: the runtime's timers wake up to a
// millisecond late on an idle machine, the kernel's some 50 µs.
const fineSleep = 1500 * time.Microsecond

// sleepUntil waits for the instant or the end of ctx.
func sleepUntil(ctx context.Context, t time.Time) {
	if d := time.Until(t) - fineSleep; d > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(d):
		}
	}
	// A signal ends the sleep early; time only grows, so this ends.
	for d := time.Until(t); d > 0; d = time.Until(t) {
		ts := unix.NsecToTimespec(d.Nanoseconds())
		_ = unix.Nanosleep(&ts, nil)
	}
}
