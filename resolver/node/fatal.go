package node

import (
	"fmt"
	"sync"

	"github.com/musterhq/muster/resolver"
)

// fatal is why a node or a partition cannot continue, once that is so. The first error
// counts.
type fatal struct {
	once sync.Once
	err  error         // set before done is closed, and read after it
	done chan struct{} // closed by the failure
}

func newFatal() *fatal { return &fatal{done: make(chan struct{})} }

// set notes a failure, and reports whether it is the first.
func (f *fatal) set(err error) (first bool) {
	f.once.Do(func() {
		f.err, first = err, true
		close(f.done)
	})
	return first
}

// Done returns a channel that the failure closes.
func (f *fatal) Done() <-chan struct{} { return f.done }

// Err returns the failure, nil before there is one.
func (f *fatal) Err() error {
	select {
	case <-f.done:
		return f.err
	default:
		return nil
	}
}

// unavailable returns what is answered because of the failure, nil before there is one.
func (f *fatal) unavailable() error {
	if err := f.Err(); err != nil {
		return fmt.Errorf("%w: %w", resolver.ErrUnavailable, err)
	}
	return nil
}
