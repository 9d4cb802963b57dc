package segments

import (
	"context"
	"fmt"
	"slices"
)

// scaleCounts are the numbers of segments an event's cost is measured with.
var scaleCounts = []int{0, 1, 10, 100, 1000}

// sameProfiles is how many profiles, drawn from all, get the events in the
// measurement on the same type: with a thousand segments each of them takes
// memory in a thousand conditions.
const sameProfiles = 2000

// CostPoint is the CPU time per event beside a number of segments.
type CostPoint struct {
	Segments  int       `json:"segments"`
	CPUMicros float64   `json:"cpu_us_per_event"` // the least of the rounds
	Rounds    []float64 `json:"rounds"`
}

// Cost is how the cost of an event depends on the number of segments.
type Cost struct {
	Other []CostPoint `json:"on_other_types"`
	Same  []CostPoint `json:"on_the_same_type"`
	// OtherSpread is the largest of the points on other types over the smallest.
	OtherSpread float64 `json:"other_types_spread"`
}

// most is the cost of an event beside the most segments, on types that no event has.
func (c *Cost) most() float64 { return c.Other[len(c.Other)-1].CPUMicros }

// cost measures events beside 0 to 1,000 segments. The rounds go up and down in
// turns, so that a drift of the machine meets all numbers alike.
func (s *step) cost(ctx context.Context) error {
	other := make([]CostPoint, len(scaleCounts))
	same := make([]CostPoint, len(scaleCounts)-1)
	for i, n := range scaleCounts {
		other[i].Segments = n
		if i > 0 {
			same[i-1].Segments = n
		}
	}
	var ids []string
	for round := range s.o.Rounds {
		order := []int{0, 1, 2, 3, 4}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, i := range order {
			var err error
			if ids, err = s.scaleTo(ctx, ids, scaleCounts[i]); err != nil {
				return err
			}
			r, err := s.costOf(ctx, s.records(s.o.CostEvents))
			if err != nil {
				return err
			}
			other[i].Rounds = append(other[i].Rounds, r.CPUMicros)
		}
	}
	if _, err := s.scaleTo(ctx, ids, 0); err != nil {
		return err
	}
	if err := s.sameCost(ctx, same); err != nil {
		return err
	}
	var least []float64
	for _, list := range [][]CostPoint{other, same} {
		for i := range list {
			list[i].CPUMicros = slices.Min(list[i].Rounds)
		}
	}
	for _, p := range other {
		least = append(least, p.CPUMicros)
	}
	s.out.Cost = &Cost{other, same, spread(least)}
	return nil
}

// costOf measures records right behind a checkpoint: a measurement that one falls into takes
// half as much again, whatever the number of segments.
func (s *step) costOf(ctx context.Context, records [][]byte) (Rate, error) {
	if err := s.a.awaitHistory(ctx); err != nil {
		return Rate{}, err
	}
	if _, err := s.checkpoint(); err != nil {
		return Rate{}, err
	}
	return s.a.ingest(ctx, s.o.Workers, records)
}

// scaleTo brings the number of segments on types that no event has to n.
func (s *step) scaleTo(ctx context.Context, ids []string, n int) ([]string, error) {
	if n < len(ids) {
		gone := ids[n:]
		err := parallel(ctx, s.o.Workers, func(ctx context.Context, w int) error {
			for i := w; i < len(gone); i += s.o.Workers {
				if err := s.a.undefine(ctx, gone[i]); err != nil {
					return err
				}
			}
			return nil
		})
		return ids[:n], err
	}
	more, err := s.defineMany(ctx, n-len(ids), func(i int) string {
		i += len(ids)
		return scaleDefinition(fmt.Sprintf("other_%d", i%50), i/50)
	})
	return append(ids, more...), err
}

// defineMany saves segments from several goroutines and waits until they are
// live.
func (s *step) defineMany(ctx context.Context, n int, text func(i int) string) ([]string, error) {
	ids := make([]string, n)
	err := parallel(ctx, s.o.Workers, func(ctx context.Context, w int) error {
		for i := w; i < n; i += s.o.Workers {
			var err error
			if ids[i], err = s.a.define(ctx, fmt.Sprintf("scale %d", i), text(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, s.a.waitLive(ctx, ids...)
}

// sameCost measures events whose type all the segments are about. Each number
// of segments has a type of its own, so that the rounds can take turns.
func (s *step) sameCost(ctx context.Context, points []CostPoint) error {
	m := s.maker()
	pool := make([]int, min(sameProfiles, s.profiles))
	for i := range pool {
		pool[i] = m.rng.IntN(s.profiles)
	}
	name := func(p CostPoint) string { return fmt.Sprintf("same_%d_step_%d", p.Segments, s.number) }
	var ids []string
	for _, p := range points {
		more, err := s.defineMany(ctx, p.Segments, func(i int) string { return scaleDefinition(name(p), i) })
		if err != nil {
			return err
		}
		ids = append(ids, more...)
	}
	pick := func() int { return pool[m.rng.IntN(len(pool))] }
	for round := range s.o.Rounds {
		for i := range points {
			if round%2 == 1 {
				i = len(points) - 1 - i
			}
			events := s.o.CostEvents
			if points[i].Segments >= 1000 {
				events /= 5 // they take long enough
			}
			records := m.records(events, pick, name(points[i]))
			r, err := s.costOf(ctx, records)
			if err != nil {
				return err
			}
			points[i].Rounds = append(points[i].Rounds, r.CPUMicros)
		}
	}
	_, err := s.scaleTo(ctx, ids, 0)
	return err
}
