package kafka

import (
	"context"
	"time"
)

const (
	// followFor is how long after a batch from memory the follower waits for the
	// next before it asks the broker whether others have written.
	followFor = 200 * time.Millisecond
	// gapFor is how long after a batch from memory the follower waits for a record
	// that is in the log and not in memory while produce requests are under way:
	// their answers may bring it.
	gapFor = 5 * time.Millisecond
	// nearEnd is how many records a reader may be from the end to become the
	// follower.
	nearEnd = 10_000
	// staleAfter is how long a connection may rest before a new one is made. Brokers
	// end those that rest for longer (connections.max.idle.ms, 10 minutes).
	staleAfter = 5 * time.Minute
)

// fromMemory takes the next batch from memory, or waits for it while that is
// worthwhile. It reports whether Next should look again; otherwise the broker is to
// be asked.
func (r *Reader) fromMemory(ctx context.Context) (again bool, err error) {
	known := r.p.known.Load()
	if !r.follows {
		// Memory begins with what is acknowledged from now on.
		if r.raw || r.next < known-nearEnd || !r.p.own.follow(r.woken) {
			return false, nil
		}
		r.follows = true
	}
	if r.takeOwn(nil) {
		return true, nil
	}
	patience := r.patience(known)
	if patience <= 0 {
		return false, nil
	}
	if r.timer == nil {
		r.timer = time.NewTimer(patience)
	} else {
		r.timer.Reset(patience)
	}
	defer r.timer.Stop()
	select {
	case <-r.woken:
	case <-r.timer.C:
	case <-r.p.log.closing:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return true, nil
}

// patience is how long a batch from memory is worth waiting for.
func (r *Reader) patience(known int64) time.Duration {
	now := time.Now()
	if r.next >= known {
		return followFor - now.Sub(r.ownAt)
	}
	if r.fetching || !r.p.sending() {
		return 0 // others have written, or a batch of ours was not kept
	}
	if r.gapSince.IsZero() {
		r.gapSince = now
	}
	return gapFor - now.Sub(r.gapSince)
}

// takeOwn makes the batch with the next record the one at hand, if memory has it;
// otherwise interrupt is called once it comes, unless it is nil.
func (r *Reader) takeOwn(interrupt func()) bool {
	b, found, passed := r.p.own.take(r.next, interrupt)
	for _, x := range passed {
		r.p.recycle(x)
	}
	if !found {
		return false
	}
	r.scan.own(b)
	r.hand, r.ownAt = b, time.Now()
	r.fetching, r.gapSince = false, time.Time{}
	// The broker is not at fault for an answer that no caller waited for.
	r.deadline = time.Time{}
	r.p.counters.ownBatches.Add(1)
	r.p.counters.ownRecords.Add(uint64(b.end - max(b.base, r.next)))
	r.p.log.trouble.over(r.p.id, onFetch)
	return true
}

// putBack lets go of the batch at hand.
func (r *Reader) putBack() {
	if r.hand.buf != nil {
		r.p.recycle(r.hand)
		r.hand = ownBatch{}
	}
}

// sending reports whether produce requests are under way.
func (p *partition) sending() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.inFlight > 0
}

// recycle takes back the buffer of a batch that was read.
func (p *partition) recycle(b ownBatch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reuse(b.buf, b.reuse)
}
