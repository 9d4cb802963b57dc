package pause

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestFor: it takes its time, unless the context ends, and tells why that did.
func TestFor(t *testing.T) {
	begun := time.Now()
	if err := For(t.Context(), 20*time.Millisecond); err != nil || time.Since(begun) < 20*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(why) })
	if err := For(ctx, time.Hour); !errors.Is(err, why) {
		t.Errorf("cut off: %v", err)
	}
}
