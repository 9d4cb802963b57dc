package node

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
)

// requests are those of a partition that wait for their records to be applied. A waiter is
// taken out once: by the goroutine that applies, by the log when it fails, or by the request
// when it gives up. What takes it out sets its outcome.
type requests struct {
	count    atomic.Int64 // requests that wait for their record
	appended atomic.Int64 // offset behind the newest record this node appended
	mu       struct {
		sync.Mutex
		byID map[eventlog.RecordID]*waiter
		// enrolling is how many were answered but for the flows they begin.
		enrolling int
		refused   bool          // no request may begin to wait
		idle      chan struct{} // closed when no request waits any more; nil unless asked for
	}
}

func newRequests() *requests {
	r := new(requests)
	r.mu.byID = map[eventlog.RecordID]*waiter{}
	return r
}

// waiter is a request that waits for its record to be applied. It is woken by Apply, or
// by the log if the record does not become durable.
type waiter struct {
	among *requests
	id    eventlog.RecordID
	out   *resolver.Outcome
	err   error // set before done is sent to, by the log alone
	done  chan struct{}
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan struct{}, 1)} }}

// free gives a waiter back to the pool. Nothing else may use it any more.
func (w *waiter) free() { waiters.Put(w) }

// AppendFailed implements [eventlog.Failer].
func (w *waiter) AppendFailed(err error) {
	// One that has given up is not used again, so id is that of the record.
	r := w.among
	r.mu.Lock()
	waits := r.mu.byID[w.id] == w
	if waits {
		delete(r.mu.byID, w.id)
		r.checkIdle()
	}
	r.mu.Unlock()
	if waits {
		w.err = classify(err)
		w.done <- struct{}{}
	}
}

// add begins to wait for a record, whose outcome goes to out. It returns nil when no
// request may begin to wait, except for a continue record: requests that wait may need it.
func (r *requests) add(env eventlog.Envelope, out *resolver.Outcome) *waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.refused && env.Kind != eventlog.KindContinue {
		return nil
	}
	w := waiters.Get().(*waiter)
	w.among, w.id, w.out, w.err = r, env.ID, out, nil
	r.mu.byID[env.ID] = w
	return w
}

// take removes and returns the waiter of a record, nil if no request waits for it here.
// From then on the waiter's outcome is written to.
func (r *requests) take(id eventlog.RecordID) *waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.mu.byID[id]
	if w != nil {
		delete(r.mu.byID, id)
		r.checkIdle()
	}
	return w
}

// beginEnrolling says that one more waits for the flows it begins.
func (r *requests) beginEnrolling() {
	r.mu.Lock()
	r.mu.enrolling++
	r.mu.Unlock()
}

// endEnrolling ends that.
func (r *requests) endEnrolling() {
	r.mu.Lock()
	r.mu.enrolling--
	r.checkIdle()
	r.mu.Unlock()
}

// refuse refuses requests that begin to wait from now on.
func (r *requests) refuse() {
	r.mu.Lock()
	r.mu.refused = true
	r.mu.Unlock()
}

// drained returns a channel that is closed when no request waits any more.
func (r *requests) drained() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	idle := make(chan struct{})
	r.mu.idle = idle
	r.checkIdle()
	return idle
}

// checkIdle closes the channel of drained when no request waits. The lock is held.
func (r *requests) checkIdle() {
	if r.mu.idle != nil && len(r.mu.byID) == 0 && r.mu.enrolling == 0 {
		close(r.mu.idle)
		r.mu.idle = nil
	}
}

// noteAppended notes that the log has got a record of this node's.
func (r *requests) noteAppended(offset int64) {
	for {
		have := r.appended.Load()
		if have > offset || r.appended.CompareAndSwap(have, offset+1) {
			return
		}
	}
}

// backlog is how many records of this node are not applied yet, where those below applied
// are. Of its own records the node knows when they are applied, not when they are stored.
func (r *requests) backlog(applied int64) int64 {
	return max(0, r.appended.Load()-applied, r.count.Load())
}

// classify turns the log's errors into those of Submit.
func classify(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrQueueFull), errors.Is(err, eventlog.ErrNoSpace):
		return fmt.Errorf("%w: %w", resolver.ErrOverloaded, err)
	case errors.Is(err, eventlog.ErrTooLarge):
		return err
	}
	return fmt.Errorf("%w: %w", resolver.ErrUnavailable, err)
}
