package gate

import (
	"context"
	"time"
)

// Pause waits, and returns why a context ended that ends meanwhile.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
