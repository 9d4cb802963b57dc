package messaging

import (
	"context"
	"time"
)

// The bounds of trying again.
const (
	attempts   = 4
	firstPause = 500 * time.Millisecond
	maxPause   = 30 * time.Second
	// maxFailing is how many messages in a row may fail for a while before the
	// run is stopped: the relay is down.
	maxFailing = 40
	// maxWaiting is how many messages of a run may wait for their next attempt outside a
	// place. With those in places they are fewer than maxFailing: that they all fail in the
	// end is no sign that the relay is down.
	maxWaiting = 24
	// loadedAtOnce is how many profiles a dry run of a push message reads in one view,
	// which Apply waits for.
	loadedAtOnce = 50
	// grace is how long a message under way is given at a stop.
	grace = 10 * time.Second
)

// graceful is a context that outlives ctx by a while: a message under way at a
// stop is finished and reported.
func graceful(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return out, func() { stop(); cancel() }
}
