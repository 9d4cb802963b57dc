package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/proxy"
	"github.com/musterhq/muster/bench/internal/victim"
)

// The kinds of faults.
const (
	nodeKilled       = "node killed"
	nodeFrozen       = "node frozen"
	nodeCut          = "node cut off from everybody" // who asks it: load and other nodes
	brokerKilled     = "broker killed"
	brokerFrozen     = "broker frozen"
	brokerStopped    = "broker stopped" // of three
	kafkaCut         = "node cut off from Kafka"
	kafkaStalled     = "node stalled at Kafka"
	clickHouseKilled = "ClickHouse killed"
	clickHouseFrozen = "ClickHouse frozen"
	clickHouseCut    = "node cut off from ClickHouse"
)

// fault is one of them: when, in the round's time, whom, and for how long.
type fault struct {
	kind   string
	at     time.Duration
	target int
	length time.Duration
}

func (f fault) String() string {
	text := fmt.Sprintf("%s at %v for %v", f.kind, f.at.Round(10*time.Millisecond), f.length.Round(10*time.Millisecond))
	switch f.kind {
	case clickHouseKilled, clickHouseFrozen:
		return text
	}
	return fmt.Sprintf("%s (%d)", text, f.target)
}

// deck deals faults: each kind once before any comes again.
type deck struct {
	rng      *rand.Rand
	topology Topology
	left     []string
}

func (d *deck) draw() string {
	if len(d.left) == 0 {
		// Nodes are what this is about: they are killed twice as often.
		d.left = []string{nodeKilled, nodeKilled, nodeFrozen, nodeFrozen, nodeCut, brokerKilled, brokerFrozen, kafkaCut, kafkaStalled, clickHouseKilled, clickHouseFrozen, clickHouseCut}
		if d.topology.Brokers == 3 {
			d.left = append(d.left, brokerStopped)
		}
		d.rng.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
	}
	kind := d.left[0]
	d.left = d.left[1:]
	return kind
}

// between is a random time.
func (d *deck) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.rng.Int64N(int64(most-least)+1))
}

// round deals the faults of a round, one or two. Two are never of one process:
// the second is of what the first is not.
func (d *deck) round() []fault {
	faults := []fault{d.one()}
	if d.rng.IntN(2) == 0 {
		if second := d.one(); party(second) != party(faults[0]) {
			second.at = d.between(0, 1500*time.Millisecond)
			faults = append(faults, second)
		} else {
			d.left = append(d.left, second.kind)
		}
	}
	return faults
}

// party is whose process or connections a fault is about.
func party(f fault) string {
	switch f.kind {
	case brokerKilled, brokerFrozen, brokerStopped:
		return "Kafka"
	case clickHouseKilled, clickHouseFrozen:
		return "ClickHouse"
	}
	return fmt.Sprint("node ", f.target)
}

func (d *deck) one() fault {
	f := fault{kind: d.draw()}
	longer := d.topology.Session + d.between(500*time.Millisecond, 2*time.Second)
	switch f.kind {
	case nodeKilled:
		f.target, f.length = d.rng.IntN(d.topology.Nodes), d.between(0, 1500*time.Millisecond)
	case nodeFrozen:
		f.target, f.length = d.rng.IntN(d.topology.Nodes), longer
	case nodeCut:
		f.target, f.length = d.rng.IntN(d.topology.Nodes), d.between(200*time.Millisecond, 3*time.Second)
	case kafkaCut, kafkaStalled:
		// A while, or longer than a session.
		f.target, f.length = d.rng.IntN(d.topology.Nodes), d.between(200*time.Millisecond, 2*time.Second)
		if d.rng.IntN(2) == 0 {
			f.length = longer
		}
	case clickHouseCut:
		f.target, f.length = d.rng.IntN(d.topology.Nodes), d.between(500*time.Millisecond, 4*time.Second)
	case brokerKilled:
		f.target, f.length = d.rng.IntN(d.topology.Brokers), d.between(0, time.Second)
	case brokerStopped:
		f.target, f.length = d.rng.IntN(d.topology.Brokers), d.between(2*time.Second, 5*time.Second)
	case brokerFrozen:
		f.target, f.length = d.rng.IntN(d.topology.Brokers), d.between(500*time.Millisecond, 5*time.Second)
	case clickHouseKilled, clickHouseFrozen:
		f.length = d.between(500*time.Millisecond, 4*time.Second)
	}
	return f
}

// inflict lets faults happen and returns when all is started, thawed and connected
// again. Whatever fails, nothing stays frozen.
func (s *site) inflict(ctx context.Context, rng *rand.Rand, faults []fault) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range faults {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		group.Go(func() error {
			if victim.Wait(ctx, f.at); ctx.Err() != nil {
				return ctx.Err()
			}
			if err := s.one(ctx, own, f); err != nil {
				return fmt.Errorf("%v: %w", f, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (s *site) one(ctx context.Context, rng *rand.Rand, f fault) error {
	during := func(begin, end func() error) error {
		if err := begin(); err != nil {
			return err
		}
		victim.Wait(ctx, f.length)
		return end()
	}
	broken := func(brk func(*proxy.Proxy), of ...*proxy.Proxy) error {
		for _, p := range of {
			brk(p)
		}
		victim.Wait(ctx, f.length)
		for _, p := range of {
			p.Mend()
		}
		return nil
	}
	n := s.nodes[min(f.target, len(s.nodes)-1)]
	switch f.kind {
	case nodeKilled:
		n.life.Lock()
		defer n.life.Unlock()
		return during(n.kill, func() error { return n.start(ctx, rng) })
	case nodeFrozen:
		n.life.Lock()
		defer n.life.Unlock()
		return during(n.freeze, n.thaw)
	case nodeCut:
		return broken((*proxy.Proxy).Cut, n.front)
	case kafkaCut:
		n.mayEnd()
		return broken((*proxy.Proxy).Cut, n.kafka...)
	case kafkaStalled:
		n.mayEnd()
		return broken((*proxy.Proxy).Stall, n.kafka...)
	case clickHouseCut:
		return broken((*proxy.Proxy).Cut, n.clicks)
	case brokerKilled:
		return during(func() error { return s.kafka.Kill(f.target) }, func() error { return s.kafka.Restart(ctx, f.target) })
	case brokerStopped:
		return during(func() error { return s.kafka.Stop(f.target) }, func() error { return s.kafka.Restart(ctx, f.target) })
	case brokerFrozen:
		// Every node's session may end while the group's coordinator is silent.
		for _, n := range s.nodes {
			n.mayEnd()
		}
		return during(func() error { return s.kafka.Freeze(f.target) }, func() error { return s.kafka.Thaw(f.target) })
	case clickHouseKilled:
		return during(s.clickHouse.Kill, func() error { return s.clickHouse.Restart(ctx) })
	case clickHouseFrozen:
		return during(s.clickHouse.Freeze, s.clickHouse.Thaw)
	}
	return errors.New("there is no such fault")
}
