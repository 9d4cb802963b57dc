package segments

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/resolver"
)

// Rate is one measurement of ingest.
type Rate struct {
	Events  int     `json:"events"`
	Seconds float64 `json:"seconds"` // until the last was acknowledged
	PerSec  float64 `json:"events_per_second"`
	// CPUMicros is CPU time per event until history had all of them; of several
	// rounds the mean. LeastMicros is the least of the rounds: what the machine
	// or a rare big piece of work of the database adds by chance is not in it.
	CPUMicros   float64   `json:"cpu_us_per_event"`
	LeastMicros float64   `json:"least_cpu_us_per_event,omitempty"`
	Rounds      []float64 `json:"rounds_cpu_us_per_event,omitempty"`
	// ApplyMicros is how long the applying goroutine took per event, as time on
	// the wall.
	ApplyMicros float64 `json:"apply_us_per_event"`
	// Transitions is how many entries and exits the events made.
	Transitions uint64 `json:"transitions"`
	// Checkpoints is how many were written meanwhile because the generation was
	// full; they are in the CPU time.
	Checkpoints int64 `json:"checkpoints"`
}

// submit submits a record, again when too much is waiting. Every event must be
// accepted: a measurement of refusals would be none.
func (a *account) submit(ctx context.Context, rec []byte, out *resolver.Outcome) error {
	for {
		if err := stampNow(rec); err != nil {
			return err
		}
		err := a.node.Submit(ctx, accountNumber, rec, out)
		if errors.Is(err, resolver.ErrOverloaded) {
			if err := pause.For(ctx, time.Millisecond); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if out.Refusal != nil {
			return fmt.Errorf("a record was refused: %w", out.Refusal)
		}
		for i := range out.Events {
			if e := &out.Events[i]; e.Status != resolver.EventAccepted {
				return fmt.Errorf("event %d of a record was not accepted (status %d): %v", i, e.Status, e.Refusal)
			}
		}
		return nil
	}
}

// ingest submits records from several goroutines as fast as it goes and
// measures that. It waits for history first, so that what came before is not
// counted, and afterwards, so that all of this is.
func (a *account) ingest(ctx context.Context, workers int, records [][]byte) (Rate, error) {
	if err := a.awaitHistory(ctx); err != nil {
		return Rate{}, err
	}
	var next atomic.Int64
	return a.measure(ctx, workers, func(ctx context.Context, _ int) error {
		var out resolver.Outcome
		for {
			i := int(next.Add(1)) - 1
			if i >= len(records) {
				return nil
			}
			if err := a.submit(ctx, records[i], &out); err != nil {
				return err
			}
		}
	})
}

// measure runs work in several goroutines, waits until history has what they
// submitted, and returns what that took.
func (a *account) measure(ctx context.Context, workers int, work func(ctx context.Context, worker int) error) (Rate, error) {
	runtime.GC()
	before := a.node.Stats()[0]
	cpu, begun := cpuTime(), time.Now()
	err := parallel(ctx, workers, work)
	took := time.Since(begun)
	if err == nil {
		err = a.awaitHistory(ctx)
	}
	spent := cpuTime() - cpu
	after := a.node.Stats()[0]
	n := int(after.Events - before.Events)
	per := func(d float64) float64 { return report.Ratio(d, 1e3*float64(n)) }
	return Rate{
		Events: n, Seconds: took.Seconds(), PerSec: report.Ratio(float64(n), took.Seconds()), CPUMicros: per(float64(spent)),
		ApplyMicros: per(float64(after.ApplyNanoseconds - before.ApplyNanoseconds)), Transitions: after.Transitions - before.Transitions,
		Checkpoints: after.Checkpoints - before.Checkpoints,
	}, err
}

// join is several rounds as one.
func join(rounds []Rate) (out Rate) {
	for _, r := range rounds {
		out.Events += r.Events
		out.Seconds += r.Seconds
		out.CPUMicros += r.CPUMicros * float64(r.Events)
		out.ApplyMicros += r.ApplyMicros * float64(r.Events)
		out.Transitions += r.Transitions
		out.Checkpoints += r.Checkpoints
		out.Rounds = append(out.Rounds, r.CPUMicros)
	}
	if out.Events > 0 {
		n := float64(out.Events)
		out.PerSec, out.CPUMicros, out.ApplyMicros = report.Ratio(n, out.Seconds), out.CPUMicros/n, out.ApplyMicros/n
		out.LeastMicros = slices.Min(out.Rounds)
	}
	return out
}

// pace submits records of batch events at a rate until ctx ends or stop is
// closed, and returns how many events were acknowledged.
func (a *account) pace(ctx context.Context, workers int, perSecond float64, stop <-chan struct{}, maker func(worker int) *maker, pick func(*rand.Rand) int) (int64, error) {
	var done atomic.Int64
	between := time.Duration(float64(batch) / perSecond * float64(time.Second))
	start := time.Now()
	err := parallel(ctx, workers, func(ctx context.Context, worker int) error {
		m := maker(worker)
		pick := func() int { return pick(m.rng) }
		var rec []byte
		var out resolver.Outcome
		for i := worker; ; i += workers {
			rec = m.record(rec[:0], batch, pick, "")
			if wait := time.Until(start.Add(time.Duration(i) * between)); wait > 0 {
				t := time.NewTimer(wait)
				select {
				case <-t.C:
				case <-stop:
				case <-ctx.Done():
				}
				t.Stop()
			}
			select {
			case <-stop:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			default:
			}
			if err := a.submit(ctx, rec, &out); err != nil {
				return err
			}
			done.Add(batch)
		}
	})
	return done.Load(), err
}

// parallel runs fn in n goroutines and waits for all. The first error ends the
// others' context and is returned.
func parallel(ctx context.Context, n int, fn func(ctx context.Context, worker int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for w := range n {
		group.Go(func() error { return fn(ctx, w) })
	}
	return group.Wait()
}

// growBatch is how many past events an import record carries.
const growBatch = 500

// grow fills an empty account with profiles, each with at least one past event.
func (a *account) grow(ctx context.Context, o *Options, step, profiles int) (Rate, error) {
	nowMs := time.Now().UnixMilli()
	return a.measure(ctx, o.Workers, func(ctx context.Context, worker int) error {
		m := newMaker(o.Seed, uint64(step)<<40|1<<32|uint64(worker))
		head := eventlog.ImportHead{File: importFile(o.Seed, step, worker)}
		// This worker's share: every so many profiles, first one event each.
		mine := (profiles - worker + o.Workers - 1) / o.Workers
		total := mine * o.EventsPerProfile
		var rec []byte
		var out resolver.Outcome
		for i := 0; i < total; {
			n := min(growBatch, total-i)
			head.FirstRow, head.Rows = uint64(i), uint32(n)
			env := m.envelope(eventlog.KindImport)
			rec = eventlog.AppendEventCount(head.Append(env.Append(rec[:0])), n)
			for range n {
				k := i
				if i >= mine {
					k = m.rng.IntN(mine)
				}
				rec = m.past(rec, worker+k*o.Workers, nowMs)
				i++
			}
			if err := a.submit(ctx, rec, &out); err != nil {
				return err
			}
		}
		return nil
	})
}
