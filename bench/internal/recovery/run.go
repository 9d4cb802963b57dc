package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/history"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/topology"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/segment/segmenttest"
)

const (
	startLimit = time.Minute
	// fillBatch and fillConnections are those of the stored events.
	fillBatch, fillConnections = 100, 16
	// between kills the clients send for this long.
	between = 3 * time.Second
	// look is the time between two looks at whether clients were acknowledged.
	look       = 2 * time.Millisecond
	eventBytes = 320
)

// Options say what is stored and who retries.
type Options struct {
	// Events are stored before the first kill.
	Events   int `json:"events"`
	Profiles int `json:"profiles"`
	Segments int `json:"segments"`
	Clients  int `json:"clients"`
	Rounds   int `json:"rounds"`
	server.Options
}

// Validate reports the first fault of the options. Binary may be missing: it can be
// built once the others are right.
func (o Options) Validate() error {
	return cmp.Or(
		server.Within("events", o.Events, fillBatch, 100_000_000),
		server.Within("clients", o.Clients, 1, 1000),
		server.Within("rounds", o.Rounds, 1, 1000),
		server.Within("segments", o.Segments, 0, len(segmenttest.LiveSegments)),
		o.spec(fillBatch).Validate(),
	)
}

func (o Options) spec(batch int) payload.Spec {
	return payload.Spec{Seed: 1, Batch: batch, Profiles: o.Profiles, EventBytes: eventBytes}
}

// Round is one kill, in seconds from the start of the process that follows it.
type Round struct {
	FirstSeconds float64 `json:"first_ack_seconds"`
	AllSeconds   float64 `json:"all_clients_acked_seconds"`
}

// Report is what was measured.
type Report struct {
	Options Options      `json:"options"`
	Rounds  []Round      `json:"rounds"`
	Refused uint64       `json:"attempts_without_acknowledgement"`
	Once    history.Once `json:"once"`
}

// Run measures. After a fault the report holds what was measured before.
func Run(ctx context.Context, o Options) (r *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s, err := topology.Begin(ctx, o.Options, filepath.Join(o.Dir, "server"), o.Segments)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Kill()) }()
	acked, err := o.fill(ctx, s)
	if err != nil {
		return nil, err
	}
	r = &Report{Options: o}
	clients, err := o.clients(s.Credentials)
	if err != nil {
		return r, err
	}
	sending, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	faults := make(chan error, len(clients))
	for _, c := range clients {
		all.Go(func() { faults <- c.run(sending) })
	}
	for range o.Rounds {
		if err := pause.For(ctx, between); err != nil {
			return r, err
		}
		if err := s.Kill(); err != nil {
			return r, err
		}
		began := time.Now()
		next, err := s.Launch()
		if err != nil {
			return r, err
		}
		s.Process = next
		round, err := await(ctx, began, clients, next, faults)
		if err != nil {
			return r, err
		}
		r.Rounds = append(r.Rounds, round)
		o.Logf("first event taken %.2f s after the start, each client's after %.2f s", round.FirstSeconds, round.AllSeconds)
	}
	stop()
	all.Wait()
	for range clients {
		err = errors.Join(err, <-faults)
	}
	if err != nil {
		return r, err
	}
	for _, c := range clients {
		acked = append(acked, loader.Range{Worker: c.number, To: c.acked})
		r.Refused += c.refused
	}
	// Each client may have had one event under way when it ended.
	stopped, err := s.Once(ctx, acked, uint64(len(clients)))
	r.Once = stopped.Once
	return r, err
}

// fill stores the events.
func (o Options) fill(ctx context.Context, s *topology.Single) ([]loader.Range, error) {
	fleet, err := s.Credentials.Fleet(o.spec(fillBatch), fillConnections)
	if err != nil {
		return nil, err
	}
	defer fleet.Close()
	if _, err := fleet.Sweep(ctx); err != nil {
		return nil, err
	}
	for loader.Events(fleet.Acked()) < uint64(o.Events) {
		sent, err := fleet.Saturate(ctx, time.Second)
		if err != nil {
			return nil, err
		}
		if sent.Failed > 0 {
			return nil, fmt.Errorf("storing events: %w", sent.FirstFailure)
		}
	}
	o.Logf("%d events stored", loader.Events(fleet.Acked()))
	return fleet.Acked(), nil
}

// clients are numbered behind the connections that stored the events.
func (o Options) clients(at server.Credentials) (out []*client, err error) {
	target, err := at.Target(false)
	if err != nil {
		return nil, err
	}
	for i := range o.Clients {
		c := &client{number: fillConnections + i, target: target, caller: loader.Caller{DialTimeout: time.Second, Timeout: callLimit}}
		if c.worker, err = payload.NewWorker(o.spec(0), c.number, target.Head); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// await waits until each client has been acknowledged by the process that
// began then.
func await(ctx context.Context, began time.Time, clients []*client, running *child.Process, faults <-chan error) (r Round, err error) {
	for {
		first, last, silent := time.Time{}, time.Time{}, 0
		for _, c := range clients {
			at := time.Unix(0, c.ackedAt.Load())
			switch {
			case !at.After(began):
				silent++
			case first.IsZero() || at.Before(first):
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		if r.FirstSeconds == 0 && !first.IsZero() {
			r.FirstSeconds = first.Sub(began).Seconds()
		}
		if silent == 0 {
			r.AllSeconds = last.Sub(began).Seconds()
			return r, nil
		}
		select {
		case err := <-faults:
			return r, fmt.Errorf("a client ended: %w", err)
		case <-running.Done():
			return r, fmt.Errorf("the server ended by itself; its last output:\n%s", running.Tail())
		default:
		}
		if time.Since(began) > startLimit {
			return r, fmt.Errorf("%d clients were not acknowledged within %v of the start", silent, startLimit)
		}
		if err := pause.For(ctx, look); err != nil {
			return r, err
		}
	}
}

// Print writes the report for people.
func (r *Report) Print(out io.Writer) error {
	return report.PrintTables(out, func(w io.Writer) {
		for i, round := range r.Rounds {
			fmt.Fprintf(w, "kill %d: first event taken %.2f s after the start, each client's after %.2f s\n", i+1, round.FirstSeconds, round.AllSeconds)
		}
		fmt.Fprintf(w, "%d events acknowledged, %d attempts were not; %d rows, %d missing, %d doubled\n",
			r.Once.Acked, r.Refused, r.Once.Rows, r.Once.Missing, r.Once.Doubled)
	})
}
