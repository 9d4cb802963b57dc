package gate

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestPause: it takes its time, unless the context ends, and tells why that did.
func TestPause(t *testing.T) {
	begun := time.Now()
	if err := Pause(t.Context(), 20*time.Millisecond); err != nil || time.Since(begun) < 20*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Millisecond, func() { cancel(why) })
	if err := Pause(ctx, time.Hour); !errors.Is(err, why) {
		t.Errorf("cut off: %v", err)
	}
}
