package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/bench/internal/contest"
	"github.com/musterhq/muster/bench/internal/ledger"
	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/payload"
	"github.com/musterhq/muster/bench/internal/report"
)

// Route is where requests are sent.
type Route string

// The routes.
const (
	ToAny   Route = "any node" // two of three are forwarded with three nodes
	ToOwner Route = "owner"
)

// contestant is a group as it is loaded.
type contestant struct {
	*loaded
	route Route
}

// loaded is a group with what was sent to it.
type loaded struct {
	*group
	ledger  *ledger.Bulk
	workers int // that were used so far
}

// ingest measures all rounds.
func (r *run) ingest(ctx context.Context) (err error) {
	var groups []*loaded
	var contestants []contestant
	defer func() {
		for _, g := range groups {
			err = errors.Join(err, g.Close())
		}
	}()
	for _, n := range r.o.Nodes {
		g, err := newGroup(r.o, r.backing, fmt.Sprintf("nodes-%d", n), n)
		if err != nil {
			return err
		}
		l := &loaded{group: g, ledger: ledger.NewBulk()}
		groups = append(groups, l)
		r.o.Logf("starting %s", g.name)
		if err := l.prepare(ctx); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		contestants = append(contestants, contestant{l, ToAny})
		if n > 1 {
			contestants = append(contestants, contestant{l, ToOwner})
		}
	}
	if err := r.rounds(ctx, groups, contestants); err != nil {
		return err
	}
	for _, g := range groups {
		once, err := g.check(ctx, r.backing)
		r.report.Once[g.name] = once
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		r.o.Logf("%s: %d events acknowledged, %d rows, %d missing, %d doubled; %d segments count right", g.name, once.Acked, once.Rows, once.Missing, once.Doubled, once.Segments)
	}
	return nil
}

// prepare starts the nodes and makes companies, segments and profiles.
func (l *loaded) prepare(ctx context.Context) error {
	if err := l.Start(ctx); err != nil {
		return err
	}
	if _, err := l.spread(ctx); err != nil {
		return err
	}
	all := make([]int, l.o.Partitions)
	for p := range all {
		all[p] = p
	}
	if err := l.found(ctx, all...); err != nil {
		return err
	}
	sweep := contest.Mode{Name: "batch", Batch: 100, Connections: max(16, l.o.Partitions)}
	f, err := l.fleet(ctx, sweep, ToOwner)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Sweep(ctx); err != nil {
		return err
	}
	if err := l.ledger.Add(f); err != nil {
		return err
	}
	_, err = l.caughtUp(ctx)
	return err
}

// fleet makes the connections of a phase: companies take turns, and each has its
// share at every node, or all at the owner.
func (l *loaded) fleet(ctx context.Context, m contest.Mode, route Route) (*loader.Fleet, error) {
	owners, err := l.spread(ctx)
	if err != nil {
		return nil, err
	}
	var seats []loader.Seat
	for i := range m.Connections {
		company := i % len(l.companies)
		at := owners[company]
		if route == ToAny {
			at = l.Nodes[(i+i/len(l.companies))%len(l.Nodes)]
		}
		target, err := l.companies[company].credentials.At(at.Origin()).Target(m.Batch > 0)
		if err != nil {
			return nil, err
		}
		seats = append(seats, loader.Seat{Target: target, Company: company})
	}
	f, err := loader.NewFleetOf(seats, l.o.spec(m), l.workers)
	l.workers += len(seats)
	return f, err
}

// warmUp is how long each bare client works before anything counts.
const warmUp = 2 * time.Second

func (r *run) rounds(ctx context.Context, groups []*loaded, contestants []contestant) error {
	topic := r.backing.topic("bare")
	if err := r.backing.makeTopic(ctx, topic, r.o.Partitions); err != nil {
		return err
	}
	inserts, err := r.backing.openRows(ctx, groups[0].database)
	if err != nil {
		return err
	}
	bare := &bare{run: r, topic: topic, inserts: inserts, records: map[string][][]byte{}}
	for _, m := range r.o.Modes {
		r.report.Modes = append(r.report.Modes, ModeReport{Mode: m})
	}
	for round := range r.o.Rounds {
		for i := range r.o.Modes {
			mode := &r.report.Modes[i]
			r.o.Logf("round %d of %d, %s, %d connections", round+1, r.o.Rounds, mode.Mode.Name, mode.Mode.Connections)
			if err := r.round(ctx, round, mode, bare, contestants); err != nil {
				return errors.Join(fmt.Errorf("round %d, %s: %w", round+1, mode.Mode.Name, err), inserts.conn.Close())
			}
		}
	}
	return inserts.close(ctx)
}

// round measures each once. The first one changes from round to round, and the
// bare clients are between the groups.
func (r *run) round(ctx context.Context, number int, mode *ModeReport, bare *bare, contestants []contestant) error {
	result := Round{Groups: make([]Loaded, len(contestants))}
	if number == 0 {
		if err := bare.prepare(ctx, mode, contestants[0]); err != nil {
			return err
		}
	}
	steps := []func() error{
		func() error { return bare.produce(ctx, mode, &result.Produce, 1, mode.Mode.Connections) },
		func() error {
			per := max(1, int(batchBytes/mode.RecordBytes))
			return bare.produce(ctx, mode, &result.ProduceFull, per, min(inFlight*r.o.Partitions, mode.Mode.Connections))
		},
		func() error { return bare.insert(ctx, &result.Insert) },
	}
	for i, c := range contestants {
		steps = append(steps, func() (err error) {
			result.Groups[i], err = r.load(ctx, mode.Mode, c)
			return err
		})
	}
	for i := range steps {
		if err := steps[(i*stride(len(steps))+number)%len(steps)](); err != nil {
			return err
		}
	}
	mode.Rounds = append(mode.Rounds, result)
	return nil
}

// stride goes through n steps in an order that mixes the bare clients among the
// groups; it has no divisor in common with n.
func stride(n int) int {
	for s := max(1, n/2); ; s++ {
		a, b := n, s
		for b > 0 {
			a, b = b, a%b
		}
		if a == 1 {
			return s
		}
	}
}

// load is the phases of one group.
func (r *run) load(ctx context.Context, m contest.Mode, c contestant) (out Loaded, err error) {
	out = Loaded{Group: c.name, Nodes: len(c.Nodes), Route: c.route}
	f, err := c.fleet(ctx, m, c.route)
	if err != nil {
		return out, err
	}
	defer f.Close()
	began := time.Now()
	if out.Saturated, err = r.phase(c.group, func() (*loader.Result, error) { return f.Saturate(ctx, r.o.Duration) }); err != nil {
		return out, err
	}
	behind, err := c.caughtUp(ctx)
	if err != nil {
		return out, err
	}
	out.HistorySeconds, out.HistoryPerSecond = behind.Seconds(), float64(out.Saturated.Events)/time.Since(began).Seconds()
	rate := out.Saturated.EventsPerSecond / 2
	if out.Paced, err = r.phase(c.group, func() (*loader.Result, error) { return f.Pace(ctx, rate, r.o.Duration) }); err != nil {
		return out, err
	}
	out.Paced.OfferedPerSecond = rate
	r.o.Logf("  %s: %.0f events/s, history %.0f/s; at %.0f/s p50 %.2f ms, p99 %.2f ms; %d requests failed", out.name(),
		out.Saturated.EventsPerSecond, out.HistoryPerSecond, rate, out.Paced.P50Millis, out.Paced.P99Millis, out.Saturated.Failed+out.Paced.Failed)
	if err := c.ledger.Add(f); err != nil {
		return out, err
	}
	_, err = c.caughtUp(ctx)
	return out, err
}

// phase runs one phase and measures its CPU time.
func (r *run) phase(g *group, do func() (*loader.Result, error)) (Phase, error) {
	m, err := r.backing.startMeter(g.PIDs())
	if err != nil {
		return Phase{}, err
	}
	result, err := do()
	if err != nil {
		return Phase{}, err
	}
	p := Phase{Phase: report.NewPhase(result)}
	return p, p.stop(m)
}

// sampleOf sends a little and reads back what is in the log then.
func (r *run) sampleOf(ctx context.Context, m contest.Mode, c contestant) ([][]byte, error) {
	since, err := r.backing.ends(ctx, c.topic, r.o.Partitions)
	if err != nil {
		return nil, err
	}
	f, err := c.fleet(ctx, m, c.route)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Saturate(ctx, time.Second); err != nil {
		return nil, err
	}
	if err := c.ledger.Add(f); err != nil {
		return nil, err
	}
	// An event of the smallest kind takes more bytes in a record than any record
	// that nodes write on their own.
	return r.backing.sample(ctx, c.topic, since, max(m.Batch, 1)*payload.MinEventBytes/2)
}
