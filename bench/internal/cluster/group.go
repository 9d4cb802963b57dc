package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/musterhq/muster/bench/internal/topology"
)

// group is nodes that share a topic and a database.
type group struct {
	*topology.Cluster
	name            string
	o               Options
	topic, database string
	companies       []*company // by partition
}

// nodeTimeout bounds a start of a node, and a stop with its last checkpoint.
const nodeTimeout = time.Minute

// newGroup prepares nodes; none of them runs yet.
func newGroup(o Options, b *backing, name string, count int) (*group, error) {
	g := &group{name: name, o: o, topic: b.topic(name), database: b.database(name)}
	dsn, err := b.dsnOf(g.database)
	if err != nil {
		return nil, err
	}
	g.Cluster, err = topology.NewCluster(topology.ClusterOptions{
		Dir: filepath.Join(o.Dir, name), Binary: o.Binary, Nodes: count, Partitions: o.Partitions, Session: o.Session, Timeout: nodeTimeout,
	})
	if err != nil {
		return nil, err
	}
	for _, n := range g.Nodes {
		g.Connect(n, b.brokers, dsn, append([]string{"--kafka-topic", g.topic}, o.ServerArgs...)...)
	}
	return g, nil
}

const (
	// spreadTimeout bounds how long partitions may go from hand to hand.
	spreadTimeout = 2 * time.Minute
	// historyTimeout bounds how long history may lag behind.
	historyTimeout = 5 * time.Minute
)

// spread waits until each partition has one owner and each node that runs its
// part, and returns the owners.
func (g *group) spread(ctx context.Context) ([]*topology.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, spreadTimeout)
	defer cancel()
	owners, err := g.Spread(ctx)
	if err != nil {
		err = fmt.Errorf("%s: %w", g.name, err)
	}
	return owners, err
}

// caughtUp waits until history has all that was acknowledged, and returns how
// long that took.
func (g *group) caughtUp(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	took, err := g.CaughtUp(ctx)
	if err != nil {
		err = fmt.Errorf("%s: %w", g.name, err)
	}
	return took, err
}
