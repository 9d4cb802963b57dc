package node

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/resolver/internal/wake"
)

// position is how far a partition has applied its log. The goroutine that applies moves
// it on, everybody may ask.
type position struct {
	applied atomic.Int64 // offset of the next record to apply
	// progress is signalled after each record, so a goroutine that waits for something takes the
	// channel first and looks then.
	progress *wake.Broadcast
	ended    chan struct{} // closed when nothing is applied any more
	applyNs  atomic.Int64  // time spent applying, for metrics
	// currentMs is when the newest barrier began that was passed (Unix ms): everything
	// that was acknowledged before is applied.
	currentMs atomic.Int64
}

func newPosition() position {
	return position{progress: wake.NewBroadcast(), ended: make(chan struct{})}
}

// advance says that all records below next are applied.
func (at *position) advance(next int64) {
	at.applied.Store(next)
	at.progress.Signal()
}

// errEnded means that nothing is applied any more.
var errEnded = errors.New("nothing is applied any more")

// reach waits until all records below the offset are applied. It returns the error of ctx,
// errEnded, or why the partition is unavailable.
func (at *position) reach(ctx context.Context, offset int64, failed *fatal) error {
	for at.applied.Load() < offset {
		changed := at.progress.Wait()
		if at.applied.Load() >= offset {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-at.ended:
			if at.applied.Load() >= offset {
				return nil
			}
			if err := failed.unavailable(); err != nil { // before it ended
				return err
			}
			return errEnded
		case <-failed.Done():
			return failed.unavailable()
		}
	}
	return nil
}

// noteBarrier notes that a barrier which began at beganMs was passed.
func (at *position) noteBarrier(beganMs int64) { at.currentMs.Store(beganMs) }

// isRecent reports whether the state is no older than the duration. A clock that was put
// back says nothing.
func (at *position) isRecent(nowMs int64, within time.Duration) bool {
	age := nowMs - at.currentMs.Load()
	return age >= 0 && age < within.Milliseconds()
}
