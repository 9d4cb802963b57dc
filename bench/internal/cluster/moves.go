package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/musterhq/muster/bench/internal/ledger"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/bench/internal/surface"
	"github.com/musterhq/muster/bench/internal/topology"
	"github.com/musterhq/muster/internal/pause"
)

// Moves is what it costs to move a partition.
type Moves struct {
	Profiles int `json:"profiles"`
	// GrownPerSecond is how fast its profiles were made.
	GrownPerSecond float64 `json:"grown_per_second"`
	Steps          []Step  `json:"steps"`
	// Once is what ClickHouse and segments have at the end, the probe's events
	// included.
	Once   Once   `json:"once"`
	Probes uint64 `json:"probe_events"`
}

// Step is something that happened to the nodes while the probe continued.
type Step struct {
	Name string `json:"name"`
	// From and To are the nodes that owned the partition before and after.
	From int `json:"from"`
	To   int `json:"to"`
	// Behind is how many records of the partition were not in the newest shared
	// checkpoint when it began.
	Behind float64 `json:"records_behind_checkpoint"`
	// Seconds is from its beginning until each node had its part.
	Seconds float64 `json:"seconds"`
	// EventSeconds and CountSeconds are the longest waits for an answer to an event
	// and to a count.
	EventSeconds float64 `json:"event_wait_max_seconds"`
	CountSeconds float64 `json:"count_wait_max_seconds"`
	// P50Millis and P99Millis are waits of all probes of the step.
	P50Millis float64 `json:"p50_ms"`
	P99Millis float64 `json:"p99_ms"`
	Probes    uint64  `json:"probes"`
	// Refused is how often an attempt was refused or had no answer.
	Refused uint64 `json:"refused_attempts"`
}

// away is how long the partition was unavailable.
func (s Step) away() float64 { return max(s.EventSeconds, s.CountSeconds) }

const (
	// calmMax is the longest time before and after what happens in a step; it is as
	// long as a phase.
	calmMax = 2 * time.Second
	// checkpointTimeout bounds the wait for the first shared checkpoint.
	checkpointTimeout = 3 * time.Minute
)

// mover moves one partition, the last: it is what a node gives away first.
type mover struct {
	*run
	*loaded
	big   int
	probe *probe
	moves *Moves
}

// moves fills a partition and moves it.
func (r *run) moves(ctx context.Context) (err error) {
	g, err := newGroup(r.o, r.backing, "moves", moveNodes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	m := &mover{run: r, loaded: &loaded{group: g, ledger: ledger.NewBulk()}, big: r.o.Partitions - 1, moves: &Moves{Profiles: r.o.MoveProfiles}}
	r.report.Moves = m.moves
	if err := m.fill(ctx); err != nil {
		return err
	}
	if err := m.steps(ctx); err != nil {
		return err
	}
	return m.end(ctx)
}

// fill starts one node and fills the partition.
func (m *mover) fill(ctx context.Context) error {
	if err := m.Nodes[0].Start(ctx); err != nil {
		return err
	}
	if _, err := m.spread(ctx); err != nil {
		return err
	}
	if err := m.found(ctx, m.big); err != nil {
		return err
	}
	c := m.companies[m.big]
	target, err := c.credentials.Target(true)
	if err != nil {
		return err
	}
	spec := payload.Spec{Seed: m.o.Seed, Batch: 100, Profiles: m.o.MoveProfiles, EventBytes: payload.MinEventBytes}
	seats := make([]loader.Seat, 16)
	for i := range seats {
		seats[i] = loader.Seat{Target: target, Company: m.big}
	}
	f, err := loader.NewFleetOf(seats, spec, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	m.o.Logf("filling partition %d with %d profiles", m.big, spec.Profiles)
	done, err := f.Sweep(ctx)
	if err != nil {
		return err
	}
	m.moves.GrownPerSecond = done.EventsPerSecond()
	if err := m.ledger.Add(f); err != nil {
		return err
	}
	if _, err := m.caughtUp(ctx); err != nil {
		return err
	}
	return m.checkpointed(ctx)
}

// checkpointed waits for the first checkpoint that others can load.
func (m *mover) checkpointed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkpointTimeout)
	defer cancel()
	var asked error
	err := pause.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		var offsets map[int]float64
		offsets, asked = m.Nodes[0].Metric(ctx, "muster_shared_checkpoint_offset")
		return offsets[m.big] > 0, nil
	})
	if err != nil {
		return fmt.Errorf("no checkpoint of partition %d: %w", m.big, errors.Join(err, asked))
	}
	return nil
}

// steps lets nodes come and go while the probe continues.
func (m *mover) steps(ctx context.Context) (err error) {
	c := m.companies[m.big]
	client, err := surface.SignIn(ctx, c.credentials)
	if err != nil {
		return err
	}
	id, err := client.CreateSegment(ctx, "probed", level{eventType: probeType, events: 1}.definition())
	client.Close()
	if err != nil {
		return err
	}
	c.levels = append(c.levels, level{eventType: probeType, events: 1, id: id})
	if m.probe, err = newProbe(c, m.Nodes[0], id, m.o.ProbesPerSecond); err != nil {
		return err
	}
	defer m.probe.client.Close()
	if err := m.probe.client.Open(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	finish, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		err := m.probe.run(ctx, finish)
		cancel(err)
		ended <- err
	}()
	defer func() {
		close(finish)
		if e := <-ended; e != nil && !errors.Is(e, context.Canceled) && !errors.Is(err, e) {
			err = errors.Join(err, e)
		}
	}()
	return m.script(ctx)
}

func (m *mover) script(ctx context.Context) error {
	join := func(n *topology.Node) func(*topology.Node) error {
		return func(*topology.Node) error {
			if err := n.Start(ctx); err != nil {
				return err
			}
			m.probe.add(n)
			return nil
		}
	}
	if err := m.step(ctx, "second node joins", join(m.Nodes[1])); err != nil {
		return err
	}
	if err := m.step(ctx, "third node joins", join(m.Nodes[2])); err != nil {
		return err
	}
	for range m.o.Cycles {
		var gone *topology.Node
		for _, s := range []struct {
			name string
			do   func(owner *topology.Node) error
		}{
			{"owner is stopped", func(n *topology.Node) error { gone = n; return n.Stop() }},
			{"it joins again", func(*topology.Node) error { return gone.Start(ctx) }},
			{"owner is killed", func(n *topology.Node) error { gone = n; return n.Kill() }},
			{"it joins again", func(*topology.Node) error { return gone.Start(ctx) }},
		} {
			if err := m.step(ctx, s.name, s.do); err != nil {
				return err
			}
		}
	}
	return nil
}

// step measures one thing that happens.
func (m *mover) step(ctx context.Context, name string, do func(owner *topology.Node) error) error {
	fail := func(err error) error {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	calm := min(calmMax, m.o.Duration)
	if err := pause.For(ctx, calm); err != nil {
		return fail(err)
	}
	owners, err := m.spread(ctx)
	if err != nil {
		return fail(err)
	}
	owner := owners[m.big]
	s := Step{Name: name, From: owner.Number}
	if s.Behind, err = m.behind(ctx, owner); err != nil {
		return fail(err)
	}
	m.probe.cut()
	began := time.Now()
	if err := do(owner); err != nil {
		return fail(err)
	}
	if owners, err = m.spread(ctx); err != nil {
		return fail(err)
	}
	s.Seconds, s.To = time.Since(began).Seconds(), owners[m.big].Number
	if err := pause.For(ctx, calm); err != nil {
		return fail(err)
	}
	if err := m.quiet(ctx, time.Now()); err != nil {
		return fail(err)
	}
	seen := m.probe.cut()
	s.EventSeconds, s.CountSeconds = seen.events.Seconds(), seen.counts.Seconds()
	s.P50Millis, s.P99Millis = report.Millis(seen.waits, 50), report.Millis(seen.waits, 99)
	s.Probes, s.Refused = seen.probes, seen.refused
	m.moves.Steps = append(m.moves.Steps, s)
	m.o.Logf("  %s: partition %d from node %d to node %d in %.2f s, %.0f records behind a checkpoint; longest wait %.2f s for an event, %.2f s for a count; %d attempts refused",
		name, m.big, s.From, s.To, s.Seconds, s.Behind, s.EventSeconds, s.CountSeconds, s.Refused)
	return nil
}

// behind is how many of a partition's records are in no shared checkpoint.
func (m *mover) behind(ctx context.Context, owner *topology.Node) (float64, error) {
	applied, err := owner.Metric(ctx, "muster_applied_offset")
	if err != nil {
		return 0, err
	}
	shared, err := owner.Metric(ctx, "muster_shared_checkpoint_offset")
	return applied[m.big] - shared[m.big], err
}

// quiet waits until all probes that were due before have their answer.
func (m *mover) quiet(ctx context.Context, before time.Time) error {
	return pause.Until(ctx, again, func() (bool, error) { return !m.probe.oldest().Before(before), nil })
}

// end checks that nothing was lost or counted twice.
func (m *mover) end(ctx context.Context) (err error) {
	m.moves.Probes = m.probe.mu.sent
	m.ledger.AddAcked(loader.Range{Company: m.big, Worker: probeWorker, To: m.probe.mu.acked}, payload.MaxProfiles, probeType)
	m.moves.Once, err = m.check(ctx, m.backing)
	return err
}

// targets judge the steps in which the partition moved.
func (m *Moves) targets() (out []report.Target) {
	for _, s := range m.Steps {
		if s.From == s.To {
			continue
		}
		name := fmt.Sprintf("%d profiles, %s: unavailable in s", m.Profiles, s.Name)
		out = append(out, report.AtMost(name, s.away(), wantAwaySeconds))
	}
	return out
}

func (r *Report) printMoves(w io.Writer) {
	m := r.Moves
	if m == nil {
		return
	}
	fmt.Fprintf(w, "\nMoves of a partition of %d profiles, made at %.0f a second; %g probes a second, half events and half counts; session timeout %v\n",
		m.Profiles, m.GrownPerSecond, r.Options.ProbesPerSecond, r.Options.Session)
	fmt.Fprintln(w, "step\tfrom node\tto node\trecords behind\tspread again s\tevent waits max s\tcount waits max s\tp50 ms\tp99 ms\tprobes\trefused\t")
	for _, s := range m.Steps {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%d\t\n", s.Name, s.From, s.To, s.Behind, s.Seconds, s.EventSeconds, s.CountSeconds, s.P50Millis, s.P99Millis, s.Probes, s.Refused)
	}
	o := m.Once
	fmt.Fprintf(w, "%d events acknowledged, %d of them probes, %d rows in ClickHouse, %d missing, %d doubled; %d segments count right\n", o.Acked, m.Probes, o.Rows, o.Missing, o.Doubled, o.Segments)
}
