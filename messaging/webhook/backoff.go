package webhook

import (
	"math/bits"
	"time"
)

// The schedule of attempts. After failed attempt n the next one follows after a
// random time between zero and a ceiling (full jitter, so that receivers that
// failed together are not called together again):
//
//	attempt   ceiling      mean time since the first attempt
//	   1          5 s           2.5 s
//	   2         15 s            10 s
//	   3         45 s            33 s
//	   4      2 m 15 s       1 m 40 s
//	   5      6 m 45 s       5 m
//	   6     20 m 15 s      15 m
//	   7      1 h  1 m      46 m
//	   8      3 h  2 m       2 h 17 m
//	   9      9 h  7 m       6 h 50 m
//	  10        24 h        18 h 50 m
//	  11        24 h         1 d  7 h
//	  12        24 h         1 d 19 h
//	  13        24 h         2 d  7 h
//	  14        24 h         2 d 19 h
//	  15     the last one
//
// A receiver that is down over a weekend is still reached; a cap of some hours
// would end the 15 attempts within a day.
const (
	MaxAttempts   = 15
	backoffBase   = 5 * time.Second
	backoffFactor = 3
	backoffCap    = 24 * time.Hour
)

// MaxRetryAfter bounds what a receiver may ask for with Retry-After.
const MaxRetryAfter = 24 * time.Hour

// Backoff says how long to wait after failed attempt number attempt (from 1). It is
// a pure function: random is 64 uniform bits, retryAfter is Result.RetryAfter,
// below which the wait never falls. ok is false when there are no more attempts:
// the delivery goes to the dead letters.
func Backoff(attempt int, random uint64, retryAfter time.Duration) (wait time.Duration, ok bool) {
	if attempt >= MaxAttempts {
		return 0, false
	}
	ceiling := backoffBase
	for range max(attempt, 1) - 1 {
		ceiling = min(ceiling*backoffFactor, backoffCap)
	}
	hi, _ := bits.Mul64(uint64(ceiling), random)
	wait = time.Duration(hi).Truncate(time.Millisecond)
	return max(wait, min(retryAfter, MaxRetryAfter)), true
}
