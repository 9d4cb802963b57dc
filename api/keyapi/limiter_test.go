package keyapi

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/servertest"
)

// TestLimiterExact: of 140 requests within a second exactly 120 pass, and room
// comes back as each of them gets a minute old.
func TestLimiterExact(t *testing.T) {
	t.Parallel()
	c := servertest.NewClock(time.Unix(1_000_000, 0))
	l := newLimiter(c.Now)
	key := keyRef{1, "a"}
	passed := 0
	for range 140 {
		if l.take(key, 120) == 0 {
			passed++
		}
		c.Advance(7 * time.Millisecond)
	}
	if passed != 120 {
		t.Fatalf("%d of 140 passed", passed)
	}
	// 980 ms have gone by; the first request leaves the window after 60 s.
	if wait := l.take(key, 120); wait != 59_020*time.Millisecond {
		t.Fatalf("wait %s", wait)
	}
	c.Advance(59_019 * time.Millisecond)
	if wait := l.take(key, 120); wait != time.Millisecond {
		t.Fatalf("wait %s", wait)
	}
	c.Advance(time.Millisecond)
	if wait := l.take(key, 120); wait != 0 {
		t.Fatalf("wait %s when there is room", wait)
	}
	if wait := l.take(key, 120); wait != 7*time.Millisecond {
		t.Fatalf("wait %s after the only room was taken", wait)
	}
	if wait := l.take(keyRef{2, "a"}, 120); wait != 0 {
		t.Fatal("another account's key of the same id waits")
	}
}

// TestLimiterParallel: 64 at once get exactly what there is.
func TestLimiterParallel(t *testing.T) {
	t.Parallel()
	c := servertest.NewClock(time.Unix(1_000_000, 0))
	l := newLimiter(c.Now)
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 50 {
				if l.take(keyRef{1, "a"}, 120) == 0 {
					passed.Add(1)
				}
				c.Advance(time.Millisecond)
				l.sweep()
			}
		})
	}
	wg.Wait()
	if n := passed.Load(); n != 120 {
		t.Fatalf("%d passed", n)
	}
}

// TestLimiterNaive compares with a list of all requests that passed.
func TestLimiterNaive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := servertest.NewClock(time.Unix(1_000_000, 0))
		l := newLimiter(c.Now)
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		var passed []time.Time
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			c.Advance(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 500, 2999, 30_000, 60_000}).Draw(t, "ms")) * time.Millisecond)
			if rapid.IntRange(0, 20).Draw(t, "lowered") == 0 {
				limit = rapid.IntRange(1, 20).Draw(t, "limit")
			}
			if rapid.IntRange(0, 20).Draw(t, "swept") == 0 {
				l.sweep()
			}
			now := c.Now()
			inWindow := func(at time.Time) (n int) {
				for _, p := range passed {
					if at.Sub(p) < window {
						n++
					}
				}
				return n
			}
			wait := l.take(keyRef{1, "a"}, limit)
			if inWindow(now) < limit {
				if wait != 0 {
					t.Fatalf("turned away with %d of %d in the window", inWindow(now), limit)
				}
				passed = append(passed, now)
				continue
			}
			if wait <= 0 || inWindow(now.Add(wait)) >= limit || inWindow(now.Add(wait-time.Millisecond)) < limit {
				t.Fatalf("wait %s with %d of %d in the window", wait, inWindow(now), limit)
			}
		}
	})
}

// TestLimiterBounded (Q1): a counter's memory does not grow with the limit, and
// keys that are not used take none.
func TestLimiterBounded(t *testing.T) {
	t.Parallel()
	c := servertest.NewClock(time.Unix(1_000_000, 0))
	l := newLimiter(c.Now)
	key := keyRef{1, "a"}
	for range 61_000 {
		for range 3 {
			if l.take(key, 1_000_000) != 0 {
				t.Fatal("turned away below the limit")
			}
		}
		c.Advance(time.Millisecond)
	}
	if n := len(l.mu.keys[key].mu.ticks); n > 2*60_000 {
		t.Fatalf("%d ticks are held", n)
	}
	if l.sweep(); l.size() != 1 {
		t.Fatalf("%d counters", l.size())
	}
	c.Advance(window)
	if l.sweep(); l.size() != 0 {
		t.Fatalf("%d counters after a pause", l.size())
	}
}

// TestLimiterDropped: a request that holds a counter while it is dropped looks the
// key up again, or two counters would let through twice as much.
func TestLimiterDropped(t *testing.T) {
	t.Parallel()
	c := servertest.NewClock(time.Unix(1_000_000, 0))
	l := newLimiter(c.Now)
	old := l.counter(keyRef{1, "a"})
	l.sweep()
	if _, ok := old.take(l.elapsedMs, 120); ok {
		t.Error("a counter that was dropped counts on")
	}
	if l.take(keyRef{1, "a"}, 120) != 0 || l.size() != 1 {
		t.Error("the key has no counter any more")
	}
}

// TestLimiterClockSetBack: setting the wall clock does not lock keys out.
func TestLimiterClockSetBack(t *testing.T) {
	t.Parallel()
	real := time.Now() // has a monotonic part
	now := real
	l := newLimiter(func() time.Time { return now })
	for range 120 {
		l.take(keyRef{1, "a"}, 120)
	}
	now = real.Add(window)
	if wait := l.take(keyRef{1, "a"}, 120); wait != 0 {
		t.Fatalf("wait %s", wait)
	}
}

func BenchmarkLimiter(b *testing.B) {
	l := newLimiter(time.Now)
	keys := make([]keyRef, 1000)
	for i := range keys {
		keys[i] = keyRef{uint64(i), "key"}
	}
	b.ReportAllocs()
	for b.Loop() {
		l.take(keys[rand.IntN(len(keys))], 120)
	}
}
