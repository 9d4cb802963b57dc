package api

import (
	"context"
	"net"
	"time"

	"github.com/musterhq/muster/ingest"
)

// goneInterval is how often it is looked whether a caller is still there.
const goneInterval = 100 * time.Millisecond

// errGone answers a caller who is not there any more. The status is for the metrics.
var errGone = &problem{status: 499, message: "the connection was closed before the answer was ready"}

// untilGone is a context that ends when the caller closes the connection, so that
// history is not asked for an answer that nobody reads. It ends with the call, too.
func (c *call) untilGone() context.Context {
	if c.here == nil {
		c.here, c.leave = context.WithCancelCause(context.Background())
		go watchConn(c.here, c.Conn(), c.leave)
	}
	return c.here
}

func watchConn(ctx context.Context, conn net.Conn, leave context.CancelCauseFunc) {
	tick := time.NewTicker(goneInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if ingest.Gone(conn) {
				leave(errGone)
				return
			}
		}
	}
}

// answer runs the call's handler. Whatever fails once the caller is gone is errGone.
func (c *call) answer(handle func(*call) (any, error)) (data any, err error) {
	defer func() {
		if c.here == nil {
			return
		}
		if err != nil && context.Cause(c.here) == errGone {
			err = errGone
		}
		c.leave(nil)
	}()
	return handle(c)
}
