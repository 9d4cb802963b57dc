package segments

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/bench/internal/condition"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
)

// ErrStale means that a read missed an acknowledged event.
var ErrStale = errors.New("a read missed an event that was acknowledged before it")

// Stale is the check that reads include what was acknowledged.
type Stale struct {
	Workers int `json:"workers"`
	// Reads is how many acknowledged events were each followed by a read, and
	// Stale how many of those did not include it.
	Reads   int64   `json:"reads"`
	Stale   int64   `json:"stale"`
	First   string  `json:"first_stale,omitempty"`
	Seconds float64 `json:"seconds"`
	PerSec  float64 `json:"events_and_reads_per_second"`
}

const (
	staleWorkers = 16
	// staleProfiles is how many profiles each worker changes; no other worker does.
	staleProfiles = 100
)

// staleCheck submits single events from 16 goroutines. Each event moves its
// profile into a segment or out of it, and the read that follows its
// acknowledgement must say so:
//
//	the sum of ±1 is 1 or more      membership of the profile
//	an attribute is on              membership of the profile
//	that sum, one worker's events   the segment's count, which only this worker changes
func (r *run) staleCheck(ctx context.Context) (*Stale, error) {
	profiles := staleProfiles
	if n := r.profiles / staleWorkers; n < profiles {
		profiles = n
	}
	sums, err := r.a.define(ctx, "stale: sum", condition.Activity("stale_sum", condition.Aggregate("sum", "v", ">=", 1)))
	if err != nil {
		return nil, err
	}
	on, err := r.a.define(ctx, "stale: attribute", condition.Attribute("attributes.stale", "=", `"on"`))
	if err != nil {
		return nil, err
	}
	all := []string{sums, on}
	for w := range staleWorkers {
		id, err := r.a.define(ctx, fmt.Sprintf("stale: worker %d", w), condition.Activity("stale_sum", condition.Where("w", "=", strconv.Itoa(w)), condition.Aggregate("sum", "v", ">=", 1)))
		if err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	if err := r.a.waitLive(ctx, all...); err != nil {
		return nil, err
	}

	out := &Stale{Workers: staleWorkers}
	var left, reads, stale atomic.Int64
	var first atomic.Pointer[string]
	left.Store(int64(r.o.StaleReads))
	begun := time.Now()
	err = parallel(ctx, staleWorkers, func(ctx context.Context, worker int) error {
		p := staleProbe{a: r.a, maker: newMaker(r.o.Seed, 3<<32|uint64(worker)), worker: worker, sums: sums, on: on, count: all[2+worker],
			summed: make([]bool, profiles), switched: make([]bool, profiles)}
		for left.Add(-1) >= 0 {
			missed, err := p.next(ctx)
			if err != nil {
				return err
			}
			reads.Add(1)
			if missed != "" {
				stale.Add(1)
				first.CompareAndSwap(nil, &missed)
			}
		}
		return nil
	})
	took := time.Since(begun)
	out.Reads, out.Stale, out.Seconds, out.PerSec = reads.Load(), stale.Load(), took.Seconds(), report.Ratio(float64(reads.Load()), took.Seconds())
	if f := first.Load(); f != nil {
		out.First = *f
	}
	if err != nil {
		return out, err
	}
	if out.Stale > 0 {
		return out, fmt.Errorf("%w: %d of %d, the first: %s", ErrStale, out.Stale, out.Reads, out.First)
	}
	return out, nil
}

// staleProbe is one worker of the check.
type staleProbe struct {
	a               *account
	maker           *maker
	worker          int
	sums, on, count string
	// What is acknowledged, by the worker's profiles: whether the sum is 1, and
	// whether the attribute is on; members counts the first.
	summed, switched []bool
	members          uint64

	rec []byte
	out resolver.Outcome
}

// next submits an event and reads. missed says what the read did not include;
// it is empty when it did.
func (p *staleProbe) next(ctx context.Context) (missed string, err error) {
	m := p.maker
	i := m.rng.IntN(len(p.summed))
	kind := m.rng.IntN(3)
	m.user(p.worker + i*staleWorkers)
	if kind == 1 {
		p.switched[i] = !p.switched[i]
		m.ev.Type = []byte("stale_attribute")
		m.ev.Attributes = []byte(`{"stale":"off"}`)
		if p.switched[i] {
			m.ev.Attributes = []byte(`{"stale":"on"}`)
		}
	} else {
		v := 1
		p.members++
		if p.summed[i] {
			v = -1
			p.members -= 2
		}
		p.summed[i] = !p.summed[i]
		m.ev.Type = []byte("stale_sum")
		m.ev.Properties = fmt.Appendf(nil, `{"v":%d,"w":%d}`, v, p.worker)
	}
	env := m.envelope(eventlog.KindEvents)
	p.rec = eventlog.AppendEvent(eventlog.AppendEventCount(env.Append(p.rec[:0]), 1), &m.ev)
	if err := p.a.submit(ctx, p.rec, &p.out); err != nil {
		return "", err
	}
	now := time.Now().UnixMilli()
	if kind == 2 {
		n, ok, err := p.a.count(ctx, p.count, now)
		if err == nil && (!ok || n != p.members) {
			missed = fmt.Sprintf("record %d: worker %d counts %d members (known: %t), want %d", p.out.Offset, p.worker, n, ok, p.members)
		}
		return missed, err
	}
	err = p.a.read(ctx, func(v *resolver.View) error {
		id, want := p.sums, p.summed[i]
		if kind == 1 {
			id, want = p.on, p.switched[i]
		}
		ordinal, ok := v.Profiles().Resolve(p.out.Events[0].Profile)
		if !ok {
			return fmt.Errorf("record %d: its profile %s is not there", p.out.Offset, p.out.Events[0].Profile)
		}
		if is, ok := v.Segments().Has(id, ordinal, now); !ok || is != want {
			missed = fmt.Sprintf("record %d: profile %s is a member of %s: %t (known: %t), want %t", p.out.Offset, p.out.Events[0].Profile, id, is, ok, want)
		}
		return nil
	})
	return missed, err
}
