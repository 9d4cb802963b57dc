package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/bench/internal/proxy"
	"github.com/musterhq/muster/bench/internal/topology"
	"github.com/musterhq/muster/internal/pause"
)

// The kinds of faults.
const (
	nodeKilled       = "node killed"
	nodeFrozen       = "node frozen"
	nodeCut          = "node cut off from everybody" // from the load and from other nodes
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
	// ofOwner reports that the node is that which owns partition target, until it is
	// known which that is.
	ofOwner bool
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
	only     []string // when there are any
	left     []string
}

// kinds are those of a deck. Nodes are what this is about: they are killed and
// frozen twice as often.
var kinds = []string{
	nodeKilled, nodeKilled, nodeFrozen, nodeFrozen, nodeCut, brokerKilled, brokerFrozen, brokerStopped,
	kafkaCut, kafkaStalled, clickHouseKilled, clickHouseFrozen, clickHouseCut,
}

func (d *deck) draw() string {
	if len(d.left) == 0 {
		for _, k := range kinds {
			if (len(d.only) == 0 || slices.Contains(d.only, k)) && (k != brokerStopped || d.topology.Brokers == 3) {
				d.left = append(d.left, k)
			}
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

// round deals the faults of a round: one, two or three.
func (d *deck) round() []fault {
	faults := []fault{d.one()}
	for range d.rng.IntN(3) {
		next := d.one()
		next.at = d.between(0, 1500*time.Millisecond)
		faults = append(faults, next)
	}
	return faults
}

// apart leaves out faults of a process or connection that another fault is about.
func apart(faults []fault) []fault {
	seen := map[string]bool{}
	return slices.DeleteFunc(faults, func(f fault) bool {
		p := party(f)
		if seen[p] {
			return true
		}
		seen[p] = true
		return false
	})
}

// node draws one, mostly by a partition of a company's that it owns: what is not
// owned matters less.
func (d *deck) node(f *fault) {
	if d.rng.IntN(3) > 0 {
		f.ofOwner, f.target = true, d.rng.IntN(min(companies, d.topology.Partitions))
	} else {
		f.target = d.rng.IntN(d.topology.Nodes)
	}
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
	longer := d.topology.Session + d.between(time.Second, 3*time.Second)
	switch f.kind {
	case nodeKilled:
		d.node(&f)
		// At once, as a supervisor does, or after others took over.
		if f.length = d.between(0, 1500*time.Millisecond); d.rng.IntN(3) == 0 {
			f.length = longer
		}
	case nodeFrozen:
		d.node(&f)
		f.length = longer
	case nodeCut:
		d.node(&f)
		f.length = d.between(200*time.Millisecond, 3*time.Second)
	case kafkaCut, kafkaStalled:
		// A while, or longer than a session.
		d.node(&f)
		if f.length = d.between(200*time.Millisecond, 2*time.Second); d.rng.IntN(2) == 0 {
			f.length = longer
		}
	case clickHouseCut:
		d.node(&f)
		f.length = d.between(500*time.Millisecond, 4*time.Second)
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
	s.alone = len(faults) == 1
	for _, f := range faults {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		group.Go(func() error {
			if pause.For(ctx, f.at) != nil {
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
		pause.For(ctx, f.length)
		return end()
	}
	broken := func(brk func(*proxy.Proxy), of ...*proxy.Proxy) error {
		for _, p := range of {
			brk(p)
		}
		pause.For(ctx, f.length)
		for _, p := range of {
			p.Mend()
		}
		return nil
	}
	n := s.Nodes[min(f.target, len(s.Nodes)-1)]
	switch f.kind {
	case nodeKilled:
		n.Life.Lock()
		defer n.Life.Unlock()
		start := n.StartAgain
		if s.alone {
			start = n.Start
		}
		variants := topology.UsualVariants()
		return during(n.Kill, func() error { return start(ctx, variants[rng.IntN(len(variants))]...) })
	case nodeFrozen:
		n.Life.Lock()
		defer n.Life.Unlock()
		return during(n.Freeze, n.Thaw)
	case nodeCut:
		return broken((*proxy.Proxy).Cut, n.Front)
	case kafkaCut:
		n.MayEnd()
		return broken((*proxy.Proxy).Cut, n.Kafka...)
	case kafkaStalled:
		n.MayEnd()
		return broken((*proxy.Proxy).Stall, n.Kafka...)
	case clickHouseCut:
		return broken((*proxy.Proxy).Cut, n.ClickHouse)
	case brokerKilled:
		return during(func() error { return s.kafka.Kill(f.target) }, func() error { return s.kafka.Restart(ctx, f.target) })
	case brokerStopped:
		return during(func() error { return s.kafka.Stop(f.target) }, func() error { return s.kafka.Restart(ctx, f.target) })
	case brokerFrozen:
		// Every node's session may end while the group's coordinator is silent.
		for _, n := range s.Nodes {
			n.MayEnd()
		}
		return during(func() error { return s.kafka.Freeze(f.target) }, func() error { return s.kafka.Thaw(f.target) })
	case clickHouseKilled:
		return during(s.clickHouse.Kill, func() error { return s.clickHouse.Restart(ctx) })
	case clickHouseFrozen:
		return during(s.clickHouse.Freeze, s.clickHouse.Thaw)
	}
	return errors.New("there is no such fault")
}
