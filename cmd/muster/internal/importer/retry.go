package importer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// The pauses between tries, and how many there are: about ten minutes in all.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 15 * time.Second
	maxTries     = 45
	// waitingAfter is after how many tries, 1.5 s of pauses, the reason for the waiting is
	// told, and waitingEvery how often it is told again.
	waitingAfter = 5
	waitingEvery = time.Minute
)

// retry calls try until it succeeds or says that trying again is no use. What is
// tried must be safe to repeat. waiting is called now and then while it goes on failing,
// unless it is nil.
func retry(ctx context.Context, waiting func(why error), try func() (again bool, err error)) error {
	pause := firstPause
	var said time.Time
	for n := 1; ; n++ {
		again, err := try()
		if err == nil || !again {
			return err
		}
		if n == maxTries {
			return fmt.Errorf("gave up after %d tries: %w. Run the import again later; it continues where it stopped", n, err)
		}
		if waiting != nil && n >= waitingAfter && time.Since(said) >= waitingEvery {
			waiting(err)
			said = time.Now()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		pause = min(2*pause, longestPause)
	}
}

func sortRefused(r []refusedRow) {
	slices.SortFunc(r, func(a, b refusedRow) int { return cmp.Compare(a.place, b.place) })
}
