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

// TestUntil: it asks until the answer is yes or an error, or the context ends.
func TestUntil(t *testing.T) {
	asked, why := 0, errors.New("enough")
	third := func() (bool, error) { asked++; return asked == 3, nil }
	if err := Until(t.Context(), time.Millisecond, third); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if err := Until(t.Context(), time.Hour, func() (bool, error) { return false, why }); !errors.Is(err, why) {
		t.Errorf("an error: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := Until(ctx, time.Hour, func() (bool, error) { return false, nil }); !errors.Is(err, why) {
		t.Errorf("cut off: %v", err)
	}
}
