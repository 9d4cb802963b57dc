package webhook

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	const runs = 4000
	var mean, least, most time.Duration = 0, math.MaxInt64, 0
	for range runs {
		var total time.Duration
		for attempt := 1; ; attempt++ {
			wait, ok := Backoff(attempt, rng.Uint64(), 0)
			if !ok {
				if attempt != MaxAttempts {
					t.Fatalf("ended after attempt %d", attempt)
				}
				break
			}
			total += wait
		}
		mean += total / runs
		least, most = min(least, total), max(most, total)
	}
	if mean < 60*time.Hour || mean > 72*time.Hour {
		t.Errorf("attempts last %v on average", mean)
	}
	t.Logf("attempts last %v on average, %v to %v", mean, least, most)
	for attempt, ceiling := range map[int]time.Duration{-1: 5 * time.Second, 0: 5 * time.Second, 1: 5 * time.Second, 2: 15 * time.Second, 5: 405 * time.Second, 9: 32805 * time.Second, 10: 24 * time.Hour, 14: 24 * time.Hour} {
		low, _ := Backoff(attempt, 0, 0)
		high, _ := Backoff(attempt, math.MaxUint64, 0)
		half, _ := Backoff(attempt, 1<<63, 0)
		if low != 0 || high != ceiling-time.Millisecond || half != ceiling/2 {
			t.Errorf("attempt %d: %v, %v, %v", attempt, low, half, high)
		}
	}
	if wait, _ := Backoff(1, 0, time.Hour); wait != time.Hour {
		t.Errorf("Retry-After of an hour: %v", wait)
	}
	if wait, _ := Backoff(1, 0, 1000*time.Hour); wait != MaxRetryAfter {
		t.Errorf("Retry-After of 1000 hours: %v", wait)
	}
	if wait, _ := Backoff(12, math.MaxUint64, time.Second); wait < 23*time.Hour {
		t.Errorf("Retry-After shortened the wait to %v", wait)
	}
	for _, attempt := range []int{15, 16, math.MaxInt} {
		if _, ok := Backoff(attempt, 0, 0); ok {
			t.Errorf("attempt %d is not the last", attempt)
		}
	}
}
