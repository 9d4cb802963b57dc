package contest

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// TestMeasureDisk: it syncs until the time is over, its figures are in order, and it leaves
// nothing behind, also when it is cut short.
func TestMeasureDisk(t *testing.T) {
	dir := t.TempDir()
	d, err := measureDisk(t.Context(), dir, 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if d.Syncs < 1 || d.P50Millis <= 0 || d.P50Millis > d.P99Millis || d.P99Millis > d.P999Millis || d.P999Millis > d.MaxMillis {
		t.Errorf("%+v", d)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := measureDisk(ctx, dir, time.Minute); !errors.Is(err, why) {
		t.Errorf("cut short: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
