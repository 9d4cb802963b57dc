package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/eventlog"
)

const (
	// maxBatchBytes ends a batch; what waits beyond it is the next one.
	maxBatchBytes = 1 << 20
	// minBatchBytes keeps a topic whose max.message.bytes was lowered usable.
	minBatchBytes = 64 << 10
	// pipelineBytes is what must wait before a second request is sent while
	// one is under way. Less is gathered until that one ends: more requests
	// would only cost the broker more.
	pipelineBytes = 128 << 10
	// linger is how long a batch waits for those who were in the batches before
	// and come again when they have their answers: one request with all of them
	// costs the broker hardly more than one with the first.
	linger = time.Millisecond
	// keepBuffer is the largest buffer that is used again.
	keepBuffer = 2 * maxBatchBytes
)

// partition is one partition of the topic: its queue, its leader and its end.
type partition struct {
	log *Log
	id  int

	mu struct {
		sync.Mutex
		closed bool
		// queue are the batches that wait, oldest first; the last is open.
		queue []*batch
		// last are the records of the last batch, and of the one before.
		last [2]int
		// inFlight counts batches that were taken and are not finished.
		inFlight int
		// queuedBytes and queuedRecords count what is not acknowledged, the
		// batches in flight included.
		queuedBytes   int64
		queuedRecords int
		free          [][]byte
	}
	// ready signals senders that a batch may be taken, or that the partition is
	// closed. Its lock is mu.
	ready *sync.Cond
	// batchLimit is the size at which a batch ends.
	batchLimit atomic.Int64

	leader  leader
	barrier barrier
	own     own
	// origin is nil until it was found out, see originNow.
	origin atomic.Pointer[origin]
	// known is one of Kafka's offsets that the end of the partition cannot be
	// below: what was acknowledged to us, what we read, what other nodes or a
	// barrier gave us.
	known atomic.Int64
	// lost says which records Kafka has lost, nil while none are known to be.
	lost atomic.Pointer[eventlog.CorruptError]

	counters counters
}

// batch is what one produce request takes. Guarded by partition.mu while it is
// queued; then it belongs to a sender.
type batch struct {
	// buf has room for the head, then the framed records.
	buf     []byte
	records int
	payload int
	// keyed says that the first record has the partition's base for its key.
	keyed bool
	// since is when its first record came.
	since time.Time
	// due says that it waits for no further records.
	due     bool
	waiters []*waiter
}

// waiter is an Append that waits for its batch.
type waiter struct {
	// done has room, so that the sender never waits for an appender that is gone.
	done chan result
}

type result struct {
	offset int64
	err    error
}

func (l *Log) newPartition(id int) *partition {
	p := &partition{log: l, id: id}
	p.ready = sync.NewCond(&p.mu.Mutex)
	p.batchLimit.Store(int64(min(maxBatchBytes, l.batchBytes)))
	p.leader.init(l.ctx)
	p.barrier.ask = p.askBounds
	p.own.limit = l.opts.OwnBytes
	return p
}

// enqueue puts the record into the queue.
func (p *partition) enqueue(data []byte) (*waiter, error) {
	opts := &p.log.opts
	size := len(data) + maxFraming
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, eventlog.ErrClosed
	}
	if p.mu.queuedBytes+int64(size) > opts.QueueBytes || p.mu.queuedRecords >= opts.QueueRecords {
		p.counters.refusedFull.Add(1)
		return nil, fmt.Errorf("%w: %d bytes in %d records wait on partition %d", eventlog.ErrQueueFull, p.mu.queuedBytes, p.mu.queuedRecords, p.id)
	}
	var b *batch
	if n := len(p.mu.queue); n > 0 {
		b = p.mu.queue[n-1]
	}
	if b == nil || int64(len(b.buf)-sizePrefix+size) > p.batchLimit.Load() {
		b = &batch{buf: p.buffer(), since: opts.Now()}
		p.mu.queue = append(p.mu.queue, b)
		p.await(b)
	}
	var key []byte
	if o := p.origin.Load(); o != nil && b.records == 0 {
		key = o.key
		b.keyed = key != nil
	}
	b.buf = appendRecord(b.buf, b.records, key, data)
	b.records++
	b.payload += len(data)
	p.mu.queuedBytes += int64(size)
	p.mu.queuedRecords++
	w := &waiter{done: make(chan result, 1)}
	b.waiters = append(b.waiters, w)
	if p.mayTake() {
		p.ready.Signal()
	}
	return w, nil
}

// buffer returns one with room for a head. mu is held.
func (p *partition) buffer() []byte {
	if n := len(p.mu.free); n > 0 {
		b := p.mu.free[n-1]
		p.mu.free = p.mu.free[:n-1]
		return b
	}
	return make([]byte, prefixSize, 4<<10)
}

// reuse keeps a buffer for a later batch, if it may. mu is held.
func (p *partition) reuse(buf []byte, may bool) {
	if may && cap(buf) <= keepBuffer && len(p.mu.free) <= p.log.opts.MaxInFlight {
		p.mu.free = append(p.mu.free, buf[:prefixSize])
	}
}

// await lets a new batch wait for others, unless the last batches say that there
// are none. mu is held.
func (p *partition) await(b *batch) {
	if max(p.mu.last[0], p.mu.last[1]) <= 1 {
		b.due = true
		return
	}
	time.AfterFunc(linger, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		b.due = true
		if p.mayTake() {
			p.ready.Signal()
		}
	})
}

// mayTake reports whether a sender may take the oldest batch. mu is held.
func (p *partition) mayTake() bool {
	switch len(p.mu.queue) {
	case 0:
		return false
	case 1:
		b := p.mu.queue[0]
		if p.mu.closed || len(b.buf) >= pipelineBytes {
			return true
		}
		return p.mu.inFlight == 0 && (b.due || b.records >= max(p.mu.last[0], p.mu.last[1]))
	}
	return true
}

// take waits for a batch and removes it from the queue. It returns nil once
// the partition is closed and the queue empty.
func (p *partition) take() *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.mayTake() {
		if p.mu.closed {
			return nil
		}
		p.ready.Wait()
	}
	b := p.mu.queue[0]
	p.mu.queue[0] = nil
	p.mu.queue = p.mu.queue[1:]
	p.mu.inFlight++
	p.mu.last = [2]int{b.records, p.mu.last[0]}
	return b
}

// finish answers the appenders of a batch with its outcome; base is Kafka's offset
// of its first record. reuse says that its buffer has no users any more.
func (p *partition) finish(b *batch, base int64, err error, reuse bool) {
	p.mu.Lock()
	p.mu.inFlight--
	p.mu.queuedBytes -= int64(b.payload + b.records*maxFraming)
	p.mu.queuedRecords -= b.records
	p.reuse(b.buf, reuse)
	if p.mayTake() {
		p.ready.Signal()
	}
	p.mu.Unlock()
	c := &p.counters
	if err == nil {
		c.appended.Add(uint64(b.records))
		c.appendedBytes.Add(uint64(b.payload))
		c.batches.Add(1)
	} else {
		c.refusedFailed.Add(uint64(b.records))
	}
	if o := p.origin.Load(); o != nil {
		base += o.shift
	}
	for i, w := range b.waiters {
		w.done <- result{base + int64(i), err}
	}
}

// close lets senders end when the queue is empty.
func (p *partition) close() {
	p.mu.Lock()
	p.mu.closed = true
	p.mu.Unlock()
	p.ready.Broadcast()
}

// wait returns what became of the record, or ctx's error.
func (w *waiter) wait(ctx context.Context) (int64, error) {
	select {
	case r := <-w.done:
		if r.err != nil {
			return 0, r.err
		}
		return r.offset, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// atLeast raises known.
func (p *partition) atLeast(end int64) {
	for {
		have := p.known.Load()
		if have >= end || p.known.CompareAndSwap(have, end) {
			return
		}
	}
}

// corrupt is damage of a partition found at offset.
func (p *partition) corrupt(offset int64, flt *fault) *eventlog.CorruptError {
	return &eventlog.CorruptError{
		File:     fmt.Sprintf("topic %s, partition %d", p.log.opts.Topic, p.id),
		Position: int64(flt.pos), Offset: offset, Reason: flt.reason,
	}
}
