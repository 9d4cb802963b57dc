package handler

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/musterhq/muster/ingest"
)

// goneInterval is the time between two checks whether the caller has closed the
// connection.
const goneInterval = 100 * time.Millisecond

// errGone is the failure of a call whose caller has closed the connection. It has no
// reader; the metrics count its status, 499, as those of other servers do.
var errGone = &Problem{Status: 499, Message: "the connection was closed before the answer was ready"}

// UntilGone returns a context that ends when the caller closes the connection, so that
// history computes no answer without a reader. It ends with the call, too.
func (c *Call) UntilGone() context.Context {
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

// answer runs the call's handler. Once the connection is closed every error is errGone.
func (c *Call) answer(handle func(*Call) (any, error)) (data any, err error) {
	defer func() {
		if c.here == nil {
			return
		}
		if err != nil && errors.Is(context.Cause(c.here), errGone) {
			err = errGone
		}
		c.leave(nil)
	}()
	return handle(c)
}
