package webhook

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func limiter(t *testing.T, o LimiterOptions) *Limiter {
	t.Helper()
	l, err := NewLimiter(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func granted(t *Turn) bool {
	select {
	case <-t.granted:
		return true
	default:
		return false
	}
}

// TestW3AgainstModel: random reservations, releases and surrenders against a model
// that finds the eligible turns by looking at all of them.
func TestW3AgainstModel(t *testing.T) {
	type entry struct {
		turn     *Turn
		endpoint string
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := LimiterOptions{Global: 1 + rng.IntN(4), PerEndpoint: 1 + rng.IntN(2), MaxWaiting: 12, MaxWaitingPerEndpoint: 5}
		l := limiter(t, o)
		var all []entry // in order of reservation
		for range 300 {
			if rng.IntN(2) == 0 {
				ep := fmt.Sprint(rng.IntN(4))
				waiting, here := 0, 0
				for _, e := range all {
					if !granted(e.turn) {
						waiting++
						if e.endpoint == ep {
							here++
						}
					}
				}
				turn, err := l.Reserve(ep)
				if full := waiting >= o.MaxWaiting || here >= o.MaxWaitingPerEndpoint; full != errors.Is(err, ErrFull) {
					t.Fatalf("seed %d: %d and %d wait: %v", seed, waiting, here, err)
				}
				if err == nil {
					all = append(all, entry{turn, ep})
				}
			} else if len(all) > 0 {
				i := rng.IntN(len(all))
				all[i].turn.Release()
				all[i].turn.Release()
				all = slices.Delete(all, i, i+1)
			}
			running, per, skipped := 0, map[string]int{}, map[string]bool{}
			for _, e := range all {
				if granted(e.turn) {
					running++
					per[e.endpoint]++
					if skipped[e.endpoint] {
						t.Fatalf("seed %d: out of order on %s", seed, e.endpoint)
					}
				} else {
					skipped[e.endpoint] = true
				}
			}
			if running > o.Global {
				t.Fatalf("seed %d: %d run of %d", seed, running, o.Global)
			}
			for ep, n := range per {
				if n > o.PerEndpoint {
					t.Fatalf("seed %d: %d run on %s", seed, n, ep)
				}
			}
			for ep := range skipped {
				if running < o.Global && per[ep] < o.PerEndpoint {
					t.Fatalf("seed %d: room, but %s waits", seed, ep)
				}
			}
			if s := l.Stats(); s.Running != running || s.Waiting != len(all)-running {
				t.Fatalf("seed %d: %+v", seed, s)
			}
		}
		for _, e := range all {
			e.turn.Release()
		}
		if s := l.Stats(); s.Running != 0 || s.Waiting != 0 || s.Endpoints != 0 {
			t.Fatalf("seed %d: left behind: %+v", seed, s)
		}
	}
}

// An endpoint with a long line does not hold up the others.
func TestLimiterTakesEndpointsByTurns(t *testing.T) {
	l := limiter(t, LimiterOptions{Global: 1, PerEndpoint: 1})
	var turns []*Turn
	for _, ep := range []string{"a", "a", "a", "a", "b", "b"} {
		turn, err := l.Reserve(ep)
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, turn)
	}
	var order []int
	for range turns {
		for i, turn := range turns {
			if turn != nil && granted(turn) {
				order = append(order, i)
				turns[i] = nil
				turn.Release()
				break
			}
		}
	}
	if want := []int{0, 4, 1, 5, 2, 3}; !slices.Equal(order, want) {
		t.Errorf("order is %v, want %v", order, want)
	}
}

func TestLimiterConcurrently(t *testing.T) {
	l := limiter(t, LimiterOptions{Global: 3, PerEndpoint: 2})
	var running, worst atomic.Int32
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%5 == 0 {
				time.AfterFunc(time.Duration(i)*10*time.Microsecond, cancel)
			}
			turn, err := l.Acquire(ctx, fmt.Sprint(i%4))
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			n := running.Add(1)
			for w := worst.Load(); n > w && !worst.CompareAndSwap(w, n); w = worst.Load() {
			}
			time.Sleep(200 * time.Microsecond)
			running.Add(-1)
			turn.Release()
		})
	}
	wg.Wait()
	if worst.Load() > 3 {
		t.Errorf("%d ran at once", worst.Load())
	}
	if s := l.Stats(); s.Running != 0 || s.Waiting != 0 || s.Endpoints != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

func TestLimiterClose(t *testing.T) {
	l := limiter(t, LimiterOptions{Global: 1})
	first, _ := l.Reserve("a")
	second, _ := l.Reserve("a")
	l.Close()
	if err := first.Wait(context.Background()); err != nil {
		t.Errorf("the running one: %v", err)
	}
	if err := second.Wait(context.Background()); !errors.Is(err, ErrClosed) {
		t.Errorf("the waiting one: %v", err)
	}
	if _, err := l.Acquire(context.Background(), "a"); !errors.Is(err, ErrClosed) {
		t.Errorf("a new one: %v", err)
	}
	first.Release()
	second.Release()
	if s := l.Stats(); s.Running != 0 || s.Waiting != 0 || s.Endpoints != 0 {
		t.Errorf("left behind: %+v", s)
	}
	if _, err := NewLimiter(LimiterOptions{Global: -1}); err == nil {
		t.Error("negative option")
	}
}
