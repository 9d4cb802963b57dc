package node

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/emaildir"
)

// maxEmailQueue bounds what waits for a record to the directory.
const maxEmailQueue = 10_000

// emailBatches makes one record of all items that wait while the record before is
// under way. One goroutine, run, sends.
type emailBatches[T, A any] struct {
	send  func(ctx context.Context, items []T) ([]A, error)
	limit int // items of a record
	mu    struct {
		sync.Mutex
		queue []*emailItem[T, A]
		ended bool
	}
	wake chan struct{}
}

// emailItem is one item and, once done is closed, what became of it.
type emailItem[T, A any] struct {
	item   T
	answer A
	err    error
	done   chan struct{}
}

func newEmailBatches[T, A any](limit int, send func(context.Context, []T) ([]A, error)) *emailBatches[T, A] {
	return &emailBatches[T, A]{send: send, limit: limit, wake: make(chan struct{}, 1)}
}

// post puts an item into the queue, nil if there is no room.
func (b *emailBatches[T, A]) post(item T) *emailItem[T, A] {
	x := &emailItem[T, A]{item: item, done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.ended || len(b.mu.queue) >= maxEmailQueue {
		return nil
	}
	b.mu.queue = append(b.mu.queue, x)
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return x
}

// do posts an item and waits for its answer.
func (b *emailBatches[T, A]) do(ctx context.Context, item T) (answer A, err error) {
	x := b.post(item)
	if x == nil {
		return answer, fmt.Errorf("%w: %d e-mails wait for the directory", resolver.ErrOverloaded, maxEmailQueue)
	}
	select {
	case <-x.done:
		return x.answer, x.err
	case <-ctx.Done():
		return answer, fmt.Errorf("%w: the directory of e-mails has not answered: %w", resolver.ErrUnavailable, ctx.Err())
	}
}

// run sends until ctx ends.
func (b *emailBatches[T, A]) run(ctx context.Context) {
	for {
		b.mu.Lock()
		n := min(len(b.mu.queue), b.limit)
		list := b.mu.queue[:n:n]
		b.mu.queue = b.mu.queue[n:]
		if ctx.Err() != nil {
			list, b.mu.queue, b.mu.ended = append(list, b.mu.queue...), nil, true
		}
		ended := b.mu.ended
		b.mu.Unlock()
		if ended {
			for _, x := range list {
				x.err = fmt.Errorf("%w: the service stops", resolver.ErrUnavailable)
				close(x.done)
			}
			return
		}
		if n == 0 {
			select {
			case <-b.wake:
			case <-ctx.Done():
			}
			continue
		}
		items := make([]T, n)
		for i, x := range list {
			items[i] = x.item
		}
		answers, err := b.send(ctx, items)
		for i, x := range list {
			if x.err = err; err == nil {
				x.answer = answers[i]
			}
			close(x.done)
		}
	}
}

// The attempts to reach the directory: what was sent is sent again, under the same
// ids, since each of its commands may be carried out twice.
const (
	directoryAttempts = 4
	directoryPause    = 50 * time.Millisecond // doubled with each attempt
)

// directoryClient is a node's client of the directory of e-mails. A log of one partition needs
// none.
type directoryClient struct {
	reserves *emailBatches[emaildir.Ask, emaildir.Answered]
	confirms *emailBatches[emaildir.Confirmed, struct{}]
	releases *emailBatches[emaildir.Names, struct{}]
	stop     context.CancelFunc
	done     sync.WaitGroup
}
