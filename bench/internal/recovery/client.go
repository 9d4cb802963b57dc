package recovery

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/valyala/fastjson"

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
	conn   *loader.Conn
	parser fastjson.Parser
	acked  uint64
	// ackedAt is when the last event was acknowledged, in nanoseconds since 1970.
	ackedAt atomic.Int64
	refused uint64
}

// run sends until ctx ends. The error is an answer that no repetition mends.
func (c *client) run(ctx context.Context) error {
	defer c.close()
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
	var err error
	if c.conn == nil {
		if c.conn, err = loader.Dial(c.target.Address, time.Second); err != nil {
			return false, nil
		}
	}
	if err := c.conn.SetDeadline(time.Now().Add(callLimit)); err != nil {
		c.close()
		return false, nil
	}
	answer, err := c.conn.Do(request)
	if err != nil || answer.Closing {
		defer c.close()
	}
	switch {
	case err != nil || answer.Status == 503:
		return false, nil
	case answer.Status != 202:
		return false, fmt.Errorf("status %d: %.300s", answer.Status, answer.Body)
	}
	v, err := c.parser.ParseBytes(answer.Body)
	if err != nil {
		return false, err
	}
	return true, loader.CheckOutcome(v)
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}
