//go:build !linux

package loader

import (
	"context"
	"time"
)

// sleepUntil waits for the instant or the end of ctx.
func sleepUntil(ctx context.Context, t time.Time) {
	if d := time.Until(t); d > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
}
