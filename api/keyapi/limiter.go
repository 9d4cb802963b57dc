package keyapi

import (
	"sync"
	"time"
)

// keyRef names an API key.
type keyRef struct {
	account uint64
	id      string
}

// window is the time in which requests are counted.
const window = 60 * time.Second

// limiter counts requests per key over a rolling window: whichever 60 seconds one
// looks at, no more than the limit were let through, and none was refused while
// there was room.Requests that are turned away do not count.
//
// Only keys that hold get here, so there are no more entries than keys, and sweep
// drops those that made no request in the window. An entry holds a tick per
// millisecond in which a request was let through, at most 60,000 whatever the limit.
type limiter struct {
	now   func() time.Time
	begin time.Time
	mu    struct {
		sync.RWMutex // guards keys; taken before a counter's
		keys         map[keyRef]*counter
	}
}

// counter is the requests of one key that still count.
type counter struct {
	mu struct {
		sync.Mutex // guards what follows
		ticks      []tick
		first, n   int // the ring's oldest tick, and how many there are
		requests   int
		newestMs   int64
		dropped    bool // by sweep: look the key up again
	}
}

// tick is the requests let through in one millisecond.
type tick struct {
	atMs     int64
	requests int
}

func newLimiter(now func() time.Time) *limiter {
	l := &limiter{now: now, begin: now()}
	l.mu.keys = map[keyRef]*counter{}
	return l
}

// elapsedMs is the time by the monotonic clock, which cannot be set.
func (l *limiter) elapsedMs() int64 { return l.now().Sub(l.begin).Milliseconds() }

// take lets a request through, or says how long to wait until there is room.
func (l *limiter) take(key keyRef, limit int) (wait time.Duration) {
	for {
		if wait, ok := l.counter(key).take(l.elapsedMs, limit); ok {
			return wait
		}
	}
}

func (l *limiter) counter(key keyRef) *counter {
	l.mu.RLock()
	c := l.mu.keys[key]
	l.mu.RUnlock()
	if c != nil {
		return c
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c = l.mu.keys[key]; c == nil {
		c = &counter{}
		l.mu.keys[key] = c
	}
	return c
}

// take asks for the time under the lock, so that it does not go back. ok is false
// when the counter was dropped.
func (c *counter) take(elapsedMs func() int64, limit int) (wait time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.dropped {
		return 0, false
	}
	m := &c.mu
	nowMs := max(elapsedMs(), m.newestMs)
	c.expire(nowMs)
	if m.requests >= limit {
		return c.untilRoom(nowMs, limit), true
	}
	m.newestMs = nowMs
	m.requests++
	if m.n > 0 {
		if last := &m.ticks[(m.first+m.n-1)%len(m.ticks)]; last.atMs == nowMs {
			last.requests++
			return 0, true
		}
	}
	if m.n == len(m.ticks) {
		grown := make([]tick, max(8, 2*m.n))
		k := copy(grown, m.ticks[m.first:])
		copy(grown[k:], m.ticks[:m.first])
		m.ticks, m.first = grown, 0
	}
	m.ticks[(m.first+m.n)%len(m.ticks)] = tick{nowMs, 1}
	m.n++
	return 0, true
}

// expire drops requests that are a whole window old.
func (c *counter) expire(nowMs int64) {
	m := &c.mu
	for m.n > 0 && m.ticks[m.first].atMs <= nowMs-window.Milliseconds() {
		m.requests -= m.ticks[m.first].requests
		m.first = (m.first + 1) % len(m.ticks)
		m.n--
	}
}

// untilRoom is when enough requests will have left the window. That may take more
// than one: the limit may have been lowered.
func (c *counter) untilRoom(nowMs int64, limit int) time.Duration {
	m := &c.mu
	left := m.requests
	for i := range m.n {
		t := &m.ticks[(m.first+i)%len(m.ticks)]
		if left -= t.requests; left < limit {
			return time.Duration(t.atMs+window.Milliseconds()-nowMs) * time.Millisecond
		}
	}
	return window // the limit is 0: no request passes
}

// sweep drops the counters of keys that made no request in the window.
func (l *limiter) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	nowMs := l.elapsedMs()
	for key, c := range l.mu.keys {
		c.mu.Lock()
		if c.expire(nowMs); c.mu.n == 0 {
			c.mu.dropped = true
			delete(l.mu.keys, key)
		}
		c.mu.Unlock()
	}
}

func (l *limiter) size() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.mu.keys)
}
