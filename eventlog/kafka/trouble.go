package kafka

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// activity is a kind of request.
type activity string

const (
	onProduce activity = "produce"
	onOffsets activity = "ask for offsets"
	onFetch   activity = "fetch"
)

// trouble knows which requests fail at present. It logs when that begins and
// ends, not each time.
type trouble struct {
	opts *Options // of the log
	// any is set while since is not empty, so that success costs nothing.
	any atomic.Bool
	mu  struct {
		sync.Mutex
		since map[place]time.Time
		last  error
		at    time.Time
	}
}

type place struct {
	partition int
	what      activity
}

// met notes a failure.
func (t *trouble) met(partition int, what activity, err error) {
	now := t.opts.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.last, t.mu.at = err, now
	if _, ok := t.mu.since[place{partition, what}]; ok {
		return
	}
	if t.mu.since == nil {
		t.mu.since = make(map[place]time.Time)
	}
	t.mu.since[place{partition, what}] = now
	t.any.Store(true)
	t.opts.Logger.Warn("request to Kafka failed, trying again", "topic", t.opts.Topic, "partition", partition, "request", what, "err", err)
}

// over notes a success.
func (t *trouble) over(partition int, what activity) {
	if !t.any.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	since, ok := t.mu.since[place{partition, what}]
	if !ok {
		return
	}
	delete(t.mu.since, place{partition, what})
	t.any.Store(len(t.mu.since) > 0)
	t.opts.Logger.Info("requests to Kafka succeed again", "topic", t.opts.Topic, "partition", partition, "request", what, "after", t.opts.Now().Sub(since))
}

// forget drops a request that is not sent any more.
func (t *trouble) forget(partition int, what activity) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.since, place{partition, what})
	t.any.Store(len(t.mu.since) > 0)
}

func (t *trouble) state() (failing time.Duration, at time.Time, last error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.mu.since) > 0 {
		present := t.opts.Now()
		for _, since := range t.mu.since {
			failing = max(failing, present.Sub(since))
		}
	}
	return failing, t.mu.at, t.mu.last
}

// cause is the last error.
func (t *trouble) cause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.last == nil {
		return errors.New("brokers are slow")
	}
	return t.mu.last
}
