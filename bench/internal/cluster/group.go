package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/services"
)

// group is nodes that share a topic and a database.
type group struct {
	name            string
	o               Options
	topic, database string
	nodes           []*node
	companies       []*company // by partition
}

// secret is what the nodes know each other by.
const secret = "bench-bench-bench-bench-bench-32"

// newGroup prepares nodes; none of them runs yet.
func newGroup(o Options, b *backing, name string, count int) (*group, error) {
	g := &group{name: name, o: o, topic: b.topic(name), database: b.database(name)}
	dsn, err := b.dsnOf(g.database)
	if err != nil {
		return nil, err
	}
	ports, err := services.FreePorts(count)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Dir, name)
	checkpoints := filepath.Join(dir, "checkpoints")
	if err := os.MkdirAll(checkpoints, 0o700); err != nil {
		return nil, err
	}
	for i, port := range ports {
		n := &node{number: i, binary: o.Binary, dir: filepath.Join(dir, "node-"+strconv.Itoa(i)), address: fmt.Sprintf("127.0.0.1:%d", port)}
		if err := os.MkdirAll(n.dir, 0o700); err != nil {
			return nil, err
		}
		n.args = append([]string{
			"serve", "--data", filepath.Join(n.dir, "data"), "--listen", n.address, "--credentials", n.credentials(),
			"--kafka", strings.Join(b.brokers, ","), "--kafka-topic", g.topic, "--kafka-partitions", strconv.Itoa(o.Partitions),
			"--kafka-session-timeout", o.Session.String(), "--clickhouse", dsn,
			"--cluster-secret", secret, "--advertise", n.address, "--checkpoints", "file://" + checkpoints,
		}, o.ServerArgs...)
		g.nodes = append(g.nodes, n)
	}
	return g, nil
}

// startAll starts all nodes and waits until each owns its part.
func (g *group) startAll(ctx context.Context) error {
	for _, n := range g.nodes {
		if err := n.start(ctx); err != nil {
			return err
		}
	}
	_, err := g.spread(ctx)
	return err
}

// close kills the nodes.
func (g *group) close() (err error) {
	for _, n := range g.nodes {
		if n.process != nil {
			err = errors.Join(err, n.process.Kill())
			n.process = nil
		}
	}
	return err
}

// pids are those of the nodes that run.
func (g *group) pids() (out []int) {
	for _, n := range live(g.nodes) {
		out = append(out, n.process.PID())
	}
	return out
}

// spreadTimeout bounds how long partitions may go from hand to hand.
const spreadTimeout = 2 * time.Minute

// spread waits until each partition has one owner and each node that runs its
// part, and returns the owners.
func (g *group) spread(ctx context.Context) ([]*node, error) {
	ctx, cancel := context.WithTimeout(ctx, spreadTimeout)
	defer cancel()
	for {
		owners, each, err := g.owners(ctx)
		if err == nil {
			least, nodes := 0, live(g.nodes)
			for _, n := range nodes {
				if each[n] >= g.o.Partitions/len(nodes) {
					least++
				}
			}
			if least == len(nodes) {
				return owners, nil
			}
			err = fmt.Errorf("partitions by node: %v", each)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: partitions are not spread: %w", g.name, errors.Join(ctx.Err(), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// owners asks the nodes that run for the owner of each partition.
func (g *group) owners(ctx context.Context) (owners []*node, each map[*node]int, err error) {
	owners, each = make([]*node, g.o.Partitions), map[*node]int{}
	found := 0
	for _, n := range live(g.nodes) {
		here, err := n.byPartition(ctx, "muster_applied_offset")
		if err != nil {
			return nil, nil, err
		}
		for p := range here {
			if p < 0 || p >= len(owners) {
				return nil, nil, fmt.Errorf("%v has partition %d of %d", n, p, len(owners))
			}
			owners[p] = n
			each[n]++
			found++
		}
	}
	for p, n := range owners {
		if n == nil {
			return nil, nil, fmt.Errorf("partition %d has no owner", p)
		}
	}
	if found != len(owners) {
		return nil, nil, fmt.Errorf("%d partitions have %d owners", len(owners), found)
	}
	return owners, each, nil
}

// historyTimeout bounds how long history may lag behind.
const historyTimeout = 5 * time.Minute

// caughtUp waits until history has all that was acknowledged, and returns how
// long that took.
func (g *group) caughtUp(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	for {
		lag := 0.0
		for _, n := range live(g.nodes) {
			by, err := n.byPartition(ctx, "muster_history_lag_records")
			if err != nil {
				return 0, err
			}
			for _, records := range by {
				lag += records
			}
		}
		if lag == 0 {
			return time.Since(began), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%s: history lacks %.0f records: %w", g.name, lag, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
