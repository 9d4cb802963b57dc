package muster

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"
)

const (
	minBackoff    = 100 * time.Millisecond
	maxBackoff    = 30 * time.Second
	maxRetryAfter = 5 * time.Minute // what a server may ask for at most
)

// deliver sends the first events of the queue until each is recorded or dropped, and
// takes them off the queue. began is when they were tried first: the halves of a batch have
// no more time than the batch. uncertain says whether an earlier attempt may have been
// recorded.
func (c *Client) deliver(batch []queued, began time.Time, uncertain bool) {
	for attempt := 1; ; attempt++ {
		if c.ctx.Err() != nil {
			c.dropAll(batch, ErrNotSent, uncertain)
			return
		}
		results, failed := c.post(batch)
		if failed == nil {
			c.report(batch, results)
			return
		}
		uncertain = uncertain || failed.uncertain
		switch {
		case failed.divide && len(batch) > 1:
			half := len(batch) / 2
			c.deliver(batch[:half], began, uncertain)
			c.deliver(batch[half:], began, uncertain)
			return
		case !failed.retry:
			c.dropAll(batch, failed.err, uncertain)
			return
		case c.ctx.Err() != nil: // Close broke the request off
			c.dropAll(batch, fmt.Errorf("%w: %w", ErrNotSent, failed.err), uncertain)
			return
		}
		wait := c.backoff(attempt, failed.after)
		if after := c.cfg.clock.Now().Sub(began); after+wait > c.cfg.GiveUpAfter {
			c.cfg.Logger.Error("events given up", "events", len(batch), "attempts", attempt, "error", failed.err)
			c.dropAll(batch, &RetryError{Attempts: attempt, After: after, Err: failed.err}, uncertain)
			return
		}
		c.cfg.Logger.Warn("sending events failed", "events", len(batch), "attempt", attempt, "next_in", wait, "error", failed.err)
		timer, stop := c.cfg.clock.After(wait)
		select {
		case <-timer:
		case <-c.ctx.Done():
		}
		stop()
		if c.ctx.Err() == nil {
			c.mu.Lock()
			c.mu.stats.Retries++
			c.mu.Unlock()
		}
	}
}

// backoff returns how long to wait after an attempt, counted from 1: exponentially more
// each time, the upper half of it at random, and not less than the server asks for.
func (c *Client) backoff(attempt int, after time.Duration) time.Duration {
	wait := float64(minBackoff) * math.Pow(2, float64(min(attempt-1, 30)))
	wait = min(wait, float64(maxBackoff))
	wait *= 0.5 + 0.5*c.cfg.jitter()
	if after > 0 { // many clients may have been told the same
		wait = max(wait, float64(min(after, maxRetryAfter))+float64(minBackoff)*c.cfg.jitter())
	}
	return time.Duration(wait)
}

// report takes a batch off the queue that was answered.
func (c *Client) report(batch []queued, results []result) {
	recorded := 0
	for i, r := range results {
		switch {
		case !r.Success:
			c.drop(batch[i], &RefusedError{StatusCode: http.StatusAccepted, Message: r.Error}, false)
			continue
		case r.Warning != "" && c.cfg.OnWarning != nil:
			c.cfg.OnWarning(decodeEvent(batch[i].text), r.Warning)
		}
		recorded++
	}
	c.dequeue(len(batch), recorded)
}

// dropAll takes a batch off the queue that is not recorded, or not known to be.
func (c *Client) dropAll(batch []queued, err error, uncertain bool) {
	for _, q := range batch {
		c.drop(q, err, uncertain)
	}
	if errors.Is(err, ErrNotSent) {
		c.mu.Lock()
		c.mu.notSent += len(batch)
		c.mu.Unlock()
	}
	c.dequeue(len(batch), 0)
}

// drop reports an event of the queue that is not recorded, or not known to be.
func (c *Client) drop(q queued, err error, uncertain bool) {
	if c.cfg.OnDropped != nil {
		c.cfg.OnDropped(Dropped{Event: decodeEvent(q.text), Err: err, MayBeRecorded: uncertain})
	}
}
