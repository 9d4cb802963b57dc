package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/bench/internal/topology"
)

const (
	// probeWorker is the worker whose keys the probe's events have.
	probeWorker = payload.MaxWorkers - 1
	probeType   = "probed"
	// attempt bounds one request: longer than a node lets it wait for an owner.
	attempt = 15 * time.Second
	// again is the pause before the next attempt. Retry-After is not waited for:
	// what is measured is how long it is before an answer can be had.
	again = 20 * time.Millisecond
	// unanswered bounds all attempts at one probe.
	unanswered = time.Minute
)

// probe posts events and asks for their count, one after the other at a steady
// rate, whatever became of those before.
type probe struct {
	client  *surface.Client
	segment string // its members have an event of the probe's
	every   time.Duration
	origins atomic.Pointer[[]string]
	turn    atomic.Uint64

	mu struct {
		sync.Mutex
		sent, acked uint64               // events
		waiting     map[uint64]time.Time // by probe: when those without an answer were due
		stretch     *stretch
		err         error
	}
}

// stretch is what the probe saw from one moment to another.
type stretch struct {
	probes, refused uint64
	waits           *hdrhistogram.Histogram // µs from when it was due to its answer
	events, counts  time.Duration           // the longest wait of each kind
}

func newStretch() *stretch {
	return &stretch{waits: loader.NewHistogram()}
}

func newProbe(c *company, first *topology.Node, segment string, perSecond float64) (*probe, error) {
	p := &probe{segment: segment, every: time.Duration(float64(time.Second) / perSecond)}
	p.mu.stretch, p.mu.waiting = newStretch(), map[uint64]time.Time{}
	p.add(first)
	var err error
	p.client, err = surface.NewClient(surface.Site{Credentials: c.credentials, Origin: p.origin, Timeout: attempt, Tries: 1})
	return p, err
}

// origin is the next node's. A node stays in the list when it is gone, as it does
// in that of a client which gets the list once.
func (p *probe) origin() string {
	all := *p.origins.Load()
	return all[p.turn.Add(1)%uint64(len(all))]
}

// add adds a node to those that are asked.
func (p *probe) add(n *topology.Node) {
	var all []string
	if have := p.origins.Load(); have != nil {
		all = append(all, *have...)
	}
	all = append(all, n.Origin())
	p.origins.Store(&all)
}

// run sends until finish is closed, and returns once all have their answer.
func (p *probe) run(ctx context.Context, finish <-chan struct{}) error {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	var wg sync.WaitGroup
	begun := time.Now()
	for i := uint64(0); ; i++ {
		// Ticks may be late or lost; what is due is not.
		due := begun.Add(time.Duration(i) * p.every)
		for time.Now().Before(due) {
			select {
			case <-tick.C:
			case <-finish:
				wg.Wait()
				return p.fault()
			case <-ctx.Done():
				wg.Wait()
				return errors.Join(ctx.Err(), p.fault())
			}
		}
		if err := p.fault(); err != nil {
			wg.Wait()
			return err
		}
		p.mu.Lock()
		p.mu.waiting[i] = due
		p.mu.Unlock()
		wg.Go(func() {
			p.one(ctx, i%2 == 0, due)
			p.mu.Lock()
			delete(p.mu.waiting, i)
			p.mu.Unlock()
		})
	}
}

func (p *probe) fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.err
}

func (p *probe) one(ctx context.Context, isEvent bool, due time.Time) {
	ctx, cancel := context.WithTimeout(ctx, unanswered)
	defer cancel()
	p.mu.Lock()
	before, number := p.mu.acked, p.mu.sent
	if isEvent {
		p.mu.sent++
	}
	p.mu.Unlock()
	ask := p.count
	if isEvent {
		ask = p.event
	}
	for {
		got, err := ask(ctx, number)
		if errors.Is(err, surface.ErrNoAnswer) && ctx.Err() == nil {
			p.mu.Lock()
			p.mu.stretch.refused++
			p.mu.Unlock()
			time.Sleep(again)
			continue
		}
		p.note(isEvent, before, got, time.Since(due), err)
		return
	}
}

// note enters an answer.
func (p *probe) note(isEvent bool, before, got uint64, waited time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.mu.stretch
	s.probes++
	loader.Record(s.waits, waited)
	var fault error
	switch {
	case err != nil:
		fault = fmt.Errorf("a probe was not answered within %v: %w", waited.Round(time.Millisecond), err)
	case isEvent:
		p.mu.acked++
		s.events = max(s.events, waited)
	default:
		s.counts = max(s.counts, waited)
		if got < before || got > p.mu.sent {
			fault = fmt.Errorf("a count of %d, with %d events acknowledged before it was asked for and %d sent by its answer", got, before, p.mu.sent)
		}
	}
	if p.mu.err == nil { // the first says most
		p.mu.err = fault
	}
}

func (p *probe) event(ctx context.Context, number uint64) (uint64, error) {
	body, err := json.Marshal(map[string]any{
		"event_type": probeType, "user": map[string]string{"external_id": fmt.Sprintf("probe-%d", number)},
		"idempotency_key": string(payload.AppendKey(nil, probeWorker, number)),
	})
	if err != nil {
		return 0, err
	}
	text, err := p.client.Once(ctx, surface.ByApp, "POST", "/api/v1/events", body)
	if err != nil {
		return 0, err
	}
	var told struct {
		Success bool `json:"success"`
	}
	if err := json.Unmarshal(text, &told); err != nil || !told.Success {
		return 0, errors.Join(fmt.Errorf("event %d was refused: %.200s", number, text), err)
	}
	return 0, nil
}

func (p *probe) count(ctx context.Context, _ uint64) (uint64, error) {
	_, n, err := p.client.Segment(ctx, p.segment)
	return n, err
}

// oldest is when the oldest probe without an answer was due; now if there is none.
func (p *probe) oldest() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := time.Now()
	for _, due := range p.mu.waiting {
		if due.Before(at) {
			at = due
		}
	}
	return at
}

// cut ends a stretch, begins the next and returns the first.
func (p *probe) cut() *stretch {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.mu.stretch
	p.mu.stretch = newStretch()
	return s
}
