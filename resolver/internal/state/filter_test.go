package state

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// TestFilterYields: what fills a table lets others run, and its filter is that of the policy inside.
func TestFilterYields(t *testing.T) {
	inside := bloom.FilterPolicy(10)
	outside := yieldingFilter{inside}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var stop atomic.Bool
	turns := 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; !stop.Load(); turns++ {
			runtime.Gosched()
		}
	}()
	a, b := inside.NewWriter(pebble.TableFilter), outside.NewWriter(pebble.TableFilter)
	for i := range 100 * pieceKeys {
		key := []byte{byte(i), byte(i >> 8), byte(i >> 16)}
		a.AddKey(key)
		b.AddKey(key)
	}
	stop.Store(true)
	<-ended
	if turns < 90 {
		t.Errorf("the other goroutine had %d turns", turns)
	}
	if string(a.Finish(nil)) != string(b.Finish(nil)) || inside.Name() != outside.Name() {
		t.Error("the filter is another")
	}
}
