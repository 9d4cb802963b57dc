package duckdb

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// heldContext holds up what asks whether it has ended.
type heldContext struct {
	context.Context
	asked, on chan struct{}
}

func (c heldContext) Err() error {
	select {
	case c.asked <- struct{}{}:
		<-c.on
	case <-c.on:
	}
	return c.Context.Err()
}

// TestPositionGivesUpDuringACopy: Position returns the error of its context while the file is
// being copied, and the position again afterwards.
func TestPositionGivesUpDuringACopy(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	appendRecords(t, s, 0, 0, 5)
	held := heldContext{t.Context(), make(chan struct{}), make(chan struct{})}
	copied, asked := make(chan error, 1), make(chan error, 1)
	go func() { copied <- s.CopyTo(held, filepath.Join(t.TempDir(), "copy")) }()
	<-held.asked // the file is being copied
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	go func() { asked <- errOf(s.Position(ctx, 0)) }()
	select {
	case err := <-asked:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits for the copy")
	}
	close(held.on)
	if err := <-copied; err != nil {
		t.Error(err)
	}
	if at, err := s.Position(t.Context(), 0); err != nil || at != 5 {
		t.Errorf("at %d, %v", at, err)
	}
}
