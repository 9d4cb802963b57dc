package kafka

import (
	"slices"
	"sync"
)

// ownBatch is a batch of this log's own that Kafka has acknowledged.
type ownBatch struct {
	// base and end are Kafka's offsets of its first record and behind its last.
	base, end int64
	// buf has the records framed as they were sent, from prefixSize on.
	buf []byte
	// reuse says that buf has no other users any more.
	reuse bool
}

// own keeps batches that were acknowledged until the partition's follower reads
// them, so that they need not be fetched. The follower is the one reader that
// came to the end first; without one nothing is kept. See the package
// documentation for what must hold.
type own struct {
	// limit bounds the bytes that are kept, the batch in the follower's hand
	// aside. What finds no room is fetched.
	limit int64
	mu    struct {
		sync.Mutex
		follower chan struct{} // what wakes it, nil without one
		batches  []ownBatch    // by offset
		bytes    int64
		// interrupt ends the follower's wait for the broker when a batch with the
		// record at awaited comes. It is nil while the follower does not wait there.
		interrupt func()
		awaited   int64
	}
}

// follow makes a reader the follower unless there is one; it reports whether the
// reader is it. woken is what wakes the reader.
func (o *own) follow(woken chan struct{}) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.follower == nil {
		o.mu.follower = woken
	}
	return o.mu.follower == woken
}

// leave drops what is kept for the reader that woken wakes.
func (o *own) leave(woken chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.follower == woken {
		o.mu.follower, o.mu.interrupt = nil, nil
		o.mu.batches, o.mu.bytes = nil, 0
	}
}

// add keeps a batch that Kafka has acknowledged. It reports whether the buffer is
// kept.
func (o *own) add(b ownBatch) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	size := int64(cap(b.buf))
	if o.mu.follower == nil || o.mu.bytes+size > o.limit {
		return false
	}
	at, _ := slices.BinarySearchFunc(o.mu.batches, b.base, func(x ownBatch, base int64) int { return int(x.base - base) })
	o.mu.batches = slices.Insert(o.mu.batches, at, b)
	o.mu.bytes += size
	if o.mu.interrupt != nil && b.base <= o.mu.awaited && o.mu.awaited < b.end {
		o.mu.interrupt()
		o.mu.interrupt = nil
	}
	return true
}

// news wakes the follower: something was added, or others are known to have
// written.
func (o *own) news() {
	o.mu.Lock()
	woken := o.mu.follower
	o.mu.Unlock()
	if woken == nil {
		return
	}
	select {
	case woken <- struct{}{}:
	default:
	}
}

// take removes the batch with the record at next, and what is before it: that was
// fetched meanwhile. Without one, interrupt is called when it comes, unless it is
// nil.
func (o *own) take(next int64, interrupt func()) (b ownBatch, found bool, passed []ownBatch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for n < len(o.mu.batches) && o.mu.batches[n].end <= next {
		n++
	}
	passed = slices.Clone(o.mu.batches[:n])
	if n < len(o.mu.batches) && o.mu.batches[n].base <= next {
		b, found = o.mu.batches[n], true
		n++
	}
	for _, x := range o.mu.batches[:n] {
		o.mu.bytes -= int64(cap(x.buf))
	}
	o.mu.batches = slices.Delete(o.mu.batches, 0, n)
	o.mu.interrupt, o.mu.awaited = nil, next
	if !found {
		o.mu.interrupt = interrupt
	}
	return b, found, passed
}

// calm drops the function that take was given.
func (o *own) calm() {
	o.mu.Lock()
	o.mu.interrupt = nil
	o.mu.Unlock()
}
