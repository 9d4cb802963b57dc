package crash

import (
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/bench/internal/condition"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/internal/pause"
)

// liveSegment is a segment that is saved at some point of the run and must hold
// the right people in the end, however often it was built again.
type liveSegment struct {
	what, definition string
	want             func(b *totals) int
	id               string
}

func liveSegments() []*liveSegment {
	return []*liveSegment{
		{what: "anybody with an event today", definition: condition.Activity(typeSure, condition.LastDays(1)),
			want: func(b *totals) int { return len(b.events) }},
		{what: "three events or more", definition: condition.Activity(typeSure, condition.Count(">=", 3)),
			want: func(b *totals) int { return atLeast(b.events, 3) }},
		{what: "one event alone", definition: condition.Activity(typeSure, condition.Count("=", 1)),
			want: func(b *totals) int { return atLeast(b.events, 1) - atLeast(b.events, 2) }},
		{what: "five events or more today", definition: condition.Activity(typeSure, condition.LastDays(1), condition.Count(">=", 5)),
			want: func(b *totals) int { return atLeast(b.events, 5) }},
		{what: "a sum of 100", definition: condition.Activity(typeSure, condition.Aggregate("sum", "value", ">=", 100)),
			want: func(b *totals) int { return atLeast(b.value, 100) }},
	}
}

// Define saves the next segment at a node, if one is left. The first comes before
// any event, the others must be built from history, under load and kills. It may
// be called while Run continues.
func (l *Load) Define(ctx context.Context, at server.Credentials) error {
	for _, s := range l.live {
		if s.id != "" {
			continue
		}
		c, err := surface.SignIn(ctx, at)
		if err != nil {
			return err
		}
		defer c.SignOut(ctx)
		s.id, err = c.CreateSegment(ctx, s.what, s.definition)
		return err
	}
	return nil
}

// liveTimeout bounds how long a segment may be built at the end.
const liveTimeout = time.Minute

// checkLive compares the live segments with the books.
func (l *Load) checkLive(ctx context.Context, c *surface.Client, b *totals) error {
	for _, s := range l.live {
		if s.id == "" {
			continue
		}
		within, cancel := context.WithTimeout(ctx, liveTimeout)
		err := pause.Until(within, 10*time.Millisecond, func() (bool, error) {
			live, got, err := c.Segment(ctx, s.id)
			if err != nil {
				return false, err
			}
			// Also while it is built the count must be right.
			return live, compare("members", int(got), s.want(b))
		})
		cancel()
		if err != nil {
			return fmt.Errorf("live segment of %s: %w", s.what, err)
		}
	}
	return nil
}
