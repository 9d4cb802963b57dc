package recovery

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/payload"
)

// callLimit bounds a call: longer than a start, shorter than patience.
const callLimit = 30 * time.Second

// client sends events one after the other and repeats each until it is
// acknowledged.
type client struct {
	number int
	target loader.Target
	worker *payload.Worker
	caller loader.Caller
	acked  uint64
	// ackedAt is when the last event was acknowledged, in nanoseconds since 1970.
	ackedAt atomic.Int64
	refused uint64
}

// run sends until ctx ends. The error is an answer that no repetition mends.
func (c *client) run(ctx context.Context) error {
	defer c.caller.Close()
	for ctx.Err() == nil {
		request, first := c.worker.Next()
		if first != c.acked {
			return fmt.Errorf("client %d: event %d follows %d acknowledged ones", c.number, first, c.acked)
		}
		for ctx.Err() == nil {
			ok, err := c.send(request)
			if err != nil {
				return fmt.Errorf("client %d: %w", c.number, err)
			}
			if ok {
				c.acked++
				c.ackedAt.Store(time.Now().UnixNano())
				break
			}
			c.refused++
		}
	}
	return nil
}

// send sends the event once. It reports whether it was acknowledged.
func (c *client) send(request []byte) (bool, error) {
	answer, err := c.caller.Do(c.target.Address, request)
	if err != nil || answer.Status == http.StatusServiceUnavailable {
		return false, nil
	}
	_, err = c.caller.Profile(answer)
	return err == nil, err
}
