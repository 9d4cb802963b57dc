package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// startEvery is the pause between lines that say that the service still starts.
const startEvery = 5 * time.Second

// listenAgain is the pause between attempts to listen on an address that is taken.
const listenAgain = 100 * time.Millisecond

// openListener listens on the address. A process that was killed, or is being
// stopped, may hold it for seconds more: until then it waits. The listener is nil
// without an error when ctx ends first.
func (c *serveConfig) openListener(ctx context.Context) (net.Listener, error) {
	again := time.NewTicker(listenAgain)
	defer again.Stop()
	for logged := false; ; {
		ln, err := net.Listen("tcp", c.listen)
		if err == nil {
			return ln, nil
		}
		left := time.Until(c.engine.LockUntil)
		if !errors.Is(err, syscall.EADDRINUSE) || left <= 0 {
			return nil, listenError(c.listen, err)
		}
		if !logged {
			logged = true
			c.log.Warn("another process listens on the address; waiting for it to end", "listen", c.listen, "for", left.Round(time.Second))
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			c.log.Info("stopped while starting")
			return nil, nil
		}
	}
}

// reportStart logs now and then that the service still starts, until stop is called,
// which may be more than once.
func (c *serveConfig) reportStart(every time.Duration) (stop func()) {
	began, quit := time.Now(), make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				c.log.Info("still starting", "after", now.Sub(began).Round(time.Second))
			case <-quit:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(quit); done.Wait() })
}
