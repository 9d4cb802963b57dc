package muster

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"time"
)

// Client sends events to a server. It is safe for concurrent use.
type Client struct {
	cfg          Config
	endpoint     string
	ownTransport bool // no other has connections of it

	wake   chan struct{} // holds a value when the queue changed as the sender should know
	ctx    context.Context
	cancel context.CancelFunc // ends the running request and all waits, when Close's time is over
	done   chan struct{}      // closed when the sender has ended

	packer packer // the sender's own

	mu struct {
		sync.Mutex
		queue  []queued // from the oldest; the first are those of the running request
		bytes  int      // of the queue
		closed bool
		room   chan struct{} // closed when events leave the queue; nil while there are no waiters
		// Events have numbers from 1 on, in the order of Send.
		added    uint64        // number of the newest
		finished uint64        // all up to this one are recorded or dropped
		flushTo  uint64        // all up to this one are to be sent without waiting for others
		flushed  chan struct{} // closed when finished grows; nil while there are no waiters
		stats    Stats
		notSent  int // events dropped because Close's time was over
	}
}

// queued is an event in the queue.
type queued struct {
	text []byte // its JSON
	at   time.Time
}

// Stats are counts of a client's events since New. Added = Recorded + Dropped + Queued,
// where Dropped leaves out those that Send refused.
type Stats struct {
	Added    uint64 // taken by Send
	Recorded uint64 // by the server, now or, by their idempotency keys, before
	Dropped  uint64 // taken by Send, and then given to OnDropped
	Refused  uint64 // for which Send returned an error
	Retries  uint64 // attempts of requests after their first
	Queued   int    // now, those of the running request included
	Bytes    int    // of the queue, now
}

// New returns a client. It does not connect: wrong credentials show with the first
// events, in [Config.OnDropped]. The error names the field at fault.
func New(cfg Config) (*Client, error) {
	ownTransport := cfg.HTTPClient == nil
	cfg = cfg.withDefaults()
	endpoint, err := cfg.endpoint()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, endpoint: endpoint, ownTransport: ownTransport, wake: make(chan struct{}, 1), done: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go c.run()
	return c, nil
}

// Send puts an event into the queue. It does not wait for the server, and keeps nothing
// of the event's maps. An error means that the event is not in the queue: [ErrQueueFull],
// [ErrClosed], [ErrTooLarge], ctx's error when it has ended, or what is wrong with the
// event. OnDropped gets the event then, too, so that callers may ignore the error.
func (c *Client) Send(ctx context.Context, e Event) error {
	err := c.send(ctx, &e)
	if err != nil {
		c.refuse(e, err)
	}
	return err
}

func (c *Client) send(ctx context.Context, e *Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.check(); err != nil {
		return err
	}
	if e.IdempotencyKey == "" {
		var key [16]byte
		if _, err := io.ReadFull(c.cfg.random, key[:]); err != nil {
			return fmt.Errorf("muster: making an idempotency key: %w", err)
		}
		e.IdempotencyKey = hex.EncodeToString(key[:])
	}
	text, err := e.encode()
	if err != nil {
		return err
	}
	if most := min(c.cfg.BatchBytes-batchOverhead, c.cfg.QueueBytes); len(text) > most {
		return fmt.Errorf("%w: it has %d bytes of JSON, and Config.BatchBytes and QueueBytes allow %d", ErrTooLarge, len(text), most)
	}
	for {
		c.mu.Lock()
		if c.mu.closed {
			c.mu.Unlock()
			return ErrClosed
		}
		if len(c.mu.queue) < c.cfg.QueueEvents && c.mu.bytes+len(text) <= c.cfg.QueueBytes {
			break
		}
		if !c.cfg.WaitForRoom {
			c.mu.Unlock()
			return ErrQueueFull
		}
		if c.mu.room == nil {
			c.mu.room = make(chan struct{})
		}
		room := c.mu.room
		c.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer c.mu.Unlock()
	c.mu.queue = append(c.mu.queue, queued{text: text, at: c.cfg.clock.Now()})
	c.mu.bytes += len(text)
	c.mu.added++
	c.mu.stats.Added++
	// The sender need not look at every event: at the first it sets its timer, and
	// then it waits for a full batch.
	if n := len(c.mu.queue); n == 1 || n >= c.cfg.BatchEvents || c.mu.bytes >= c.cfg.BatchBytes-batchOverhead {
		c.notify()
	}
	return nil
}

// notify has the sender look at the queue.
func (c *Client) notify() {
	select {
	case c.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Flush sends the events that are in the queue without waiting for others, and returns
// once each of them is recorded or dropped, or with ctx's error. Programs that are frozen
// between requests, such as functions in a cloud, call it before they answer.
func (c *Client) Flush(ctx context.Context) error {
	c.mu.Lock()
	last := c.mu.added
	c.mu.flushTo = max(c.mu.flushTo, last)
	c.notify()
	for c.mu.finished < last {
		if c.mu.flushed == nil {
			c.mu.flushed = make(chan struct{})
		}
		flushed := c.mu.flushed
		c.mu.Unlock()
		select {
		case <-flushed:
		case <-ctx.Done():
			return fmt.Errorf("muster: Flush: %w", ctx.Err())
		}
		c.mu.Lock()
	}
	c.mu.Unlock()
	return nil
}

// Close sends what is in the queue and returns when all of it is recorded or dropped.
// When ctx ends before, the running request is broken off, the rest reaches
// OnDropped with [ErrNotSent], and the error says how many events these were. Give ctx a
// deadline: a server that is away holds up Close for as long as GiveUpAfter. Later calls
// wait in the same way.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.mu.closed = true
	c.releaseRoom()
	c.notify()
	c.mu.Unlock()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	}
	c.cancel()
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.notSent == 0 {
		return nil
	}
	return fmt.Errorf("muster: Close: %d events were not sent, or their answer did not come: %w", c.mu.notSent, ctx.Err())
}

// Stats returns the counts of this moment.
func (c *Client) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.mu.stats
	s.Queued, s.Bytes = len(c.mu.queue), c.mu.bytes
	return s
}

// releaseRoom wakes the callers of Send that wait. The caller holds the lock.
func (c *Client) releaseRoom() {
	if c.mu.room != nil {
		close(c.mu.room)
		c.mu.room = nil
	}
}

// run is the sender. It ends when the client is closed and the queue is empty.
func (c *Client) run() {
	defer close(c.done)
	defer c.cancel()
	if c.ownTransport {
		defer c.cfg.HTTPClient.CloseIdleConnections()
	}
	for {
		batch := c.next()
		if batch == nil {
			return
		}
		c.deliver(batch, c.cfg.clock.Now(), false)
	}
}

// next waits until a batch is due and returns its events, which stay in the queue; nil
// when there will be none.
func (c *Client) next() []queued {
	for {
		c.mu.Lock()
		n, full := c.prefix()
		switch {
		case n == 0 && c.mu.closed:
			c.mu.Unlock()
			return nil
		case n == 0:
			c.mu.Unlock()
			<-c.wake
			continue
		}
		wait := c.cfg.BatchAge - c.cfg.clock.Now().Sub(c.mu.queue[0].at)
		if full || c.mu.closed || c.mu.finished < c.mu.flushTo || wait <= 0 {
			batch := c.mu.queue[:n:n]
			c.mu.Unlock()
			return batch
		}
		c.mu.Unlock()
		timer, stop := c.cfg.clock.After(wait)
		select {
		case <-c.wake:
		case <-timer:
		}
		stop()
	}
}

// prefix returns how many events of the queue the next batch has, and whether it can
// have no more. The caller holds the lock.
func (c *Client) prefix() (n int, full bool) {
	bytes := batchOverhead
	for n < len(c.mu.queue) {
		if bytes += len(c.mu.queue[n].text) + 1; n == c.cfg.BatchEvents || bytes > c.cfg.BatchBytes+1 {
			return n, true
		}
		n++
	}
	return n, n == c.cfg.BatchEvents
}

// dequeue takes the first n events off the queue: they are recorded or dropped.
func (c *Client) dequeue(n, recorded int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range n {
		c.mu.bytes -= len(c.mu.queue[i].text)
		c.mu.queue[i] = queued{} // the array may live on, the text need not
	}
	if c.mu.queue = c.mu.queue[n:]; len(c.mu.queue) == 0 {
		c.mu.queue = nil
	}
	c.mu.finished += uint64(n)
	c.mu.stats.Recorded += uint64(recorded)
	c.mu.stats.Dropped += uint64(n - recorded)
	c.releaseRoom()
	if c.mu.flushed != nil {
		close(c.mu.flushed)
		c.mu.flushed = nil
	}
}

// refuse reports an event that Send does not take.
func (c *Client) refuse(e Event, err error) {
	c.mu.Lock()
	c.mu.stats.Refused++
	c.mu.Unlock()
	if c.cfg.OnDropped != nil {
		c.cfg.OnDropped(Dropped{Event: e, Err: err})
	}
}
