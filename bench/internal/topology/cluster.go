package topology

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/proxy"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/internal/pause"
)

// ClusterOptions say how the nodes of a [Cluster] run.
type ClusterOptions struct {
	// Dir takes data and logs of the nodes, and the checkpoints that they share.
	Dir    string
	Binary string
	Nodes  int
	// Partitions is how many the log has.
	Partitions int
	// Session is how long a node may be silent before another takes over.
	Session time.Duration
	// Timeout bounds a start and a stop of a node.
	Timeout time.Duration
	// Proxied puts a proxy in front of each node.
	Proxied bool
	// Alone has one node run that knows nothing of a cluster.
	Alone bool
}

// Cluster is nodes that share a log and a history.
type Cluster struct {
	Nodes   []*Node
	options ClusterOptions
}

// secret is what the nodes know each other by.
const secret = "bench-bench-bench-bench-bench-32"

// NewCluster prepares nodes; none of them runs yet. After an error, Close closes what
// there is.
func NewCluster(o ClusterOptions) (*Cluster, error) {
	c := &Cluster{options: o}
	if err := os.MkdirAll(c.checkpoints(), 0o700); err != nil {
		return c, err
	}
	for i := range o.Nodes {
		installation, err := server.NewInstallation(filepath.Join(o.Dir, "node-"+strconv.Itoa(i)), o.Binary, nil)
		if err != nil {
			return c, err
		}
		n := &Node{Number: i, installation: installation, timeout: o.Timeout}
		c.Nodes = append(c.Nodes, n)
		if o.Proxied {
			if n.Front, err = proxy.Listen(n.Address()); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

func (c *Cluster) checkpoints() string { return filepath.Join(c.options.Dir, "checkpoints") }

// Connect says where a node finds Kafka and ClickHouse, and its further arguments.
func (c *Cluster) Connect(n *Node, brokers []string, clickHouse string, args ...string) {
	n.installation.Args = []string{
		"--kafka", strings.Join(brokers, ","), "--kafka-session-timeout", c.options.Session.String(), "--clickhouse", clickHouse,
	}
	if !c.options.Alone {
		n.installation.Args = append(n.installation.Args, "--cluster-secret", secret, "--advertise", n.advertised(),
			"--kafka-partitions", strconv.Itoa(c.options.Partitions), "--checkpoints", "file://"+c.checkpoints())
	}
	n.installation.Args = append(n.installation.Args, args...)
}

// Start starts all nodes, one after the other: the first makes the first company.
func (c *Cluster) Start(ctx context.Context) error {
	for _, n := range c.Nodes {
		if err := n.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Credentials returns those of the first company.
func (c *Cluster) Credentials() (found server.Credentials, err error) {
	for _, n := range c.Nodes {
		if found, err = n.Credentials(); err == nil {
			return found, nil
		}
	}
	return found, err
}

// Close kills the nodes and closes their proxies.
func (c *Cluster) Close() (err error) {
	for _, n := range c.Nodes {
		err = errors.Join(err, n.close())
	}
	return err
}

// live returns the nodes that run.
func (c *Cluster) live() (out []*Node) {
	for _, n := range c.Nodes {
		if n.running() != nil {
			out = append(out, n)
		}
	}
	return out
}

// PIDs returns the process ids of the nodes that run.
func (c *Cluster) PIDs() (out []int) {
	for _, n := range c.Nodes {
		if p := n.running(); p != nil {
			out = append(out, p.PID())
		}
	}
	return out
}

// Origins returns where the nodes are reached.
func (c *Cluster) Origins() (out []string) {
	for _, n := range c.Nodes {
		out = append(out, n.Origin())
	}
	return out
}

// errUnowned means that some partition has not exactly one owner.
var errUnowned = errors.New("partitions do not have one owner each")

// owners asks the nodes that run for the owner of each partition, and for how many
// each node has.
func (c *Cluster) owners(ctx context.Context) (owners []*Node, each map[*Node]int, err error) {
	owners, each = make([]*Node, c.options.Partitions), map[*Node]int{}
	found := 0
	for _, n := range c.live() {
		here, err := n.Metric(ctx, "muster_applied_offset")
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
			return nil, nil, fmt.Errorf("%w: partition %d has none", errUnowned, p)
		}
	}
	if found != len(owners) {
		return nil, nil, fmt.Errorf("%w: %d partitions have %d", errUnowned, len(owners), found)
	}
	return owners, each, nil
}

const (
	ownersPoll = 100 * time.Millisecond
	lagPoll    = 20 * time.Millisecond
)

// Owners returns the owner of each partition, once each has one and one alone. Every
// node must answer.
func (c *Cluster) Owners(ctx context.Context) ([]*Node, error) {
	for {
		owners, _, err := c.owners(ctx)
		if err == nil || !errors.Is(err, errUnowned) {
			return owners, err
		}
		if stopped := pause.For(ctx, ownersPoll); stopped != nil {
			return nil, fmt.Errorf("%w: %w", stopped, err)
		}
	}
}

// Spread returns the owner of each partition, once each node that runs has its part.
func (c *Cluster) Spread(ctx context.Context) ([]*Node, error) {
	for {
		owners, each, err := c.owners(ctx)
		if err == nil {
			least, nodes := 0, c.live()
			for _, n := range nodes {
				if each[n] >= c.options.Partitions/len(nodes) {
					least++
				}
			}
			if least == len(nodes) {
				return owners, nil
			}
			err = fmt.Errorf("partitions by node: %v", each)
		}
		if stopped := pause.For(ctx, ownersPoll); stopped != nil {
			return nil, fmt.Errorf("partitions are not spread: %w: %w", stopped, err)
		}
	}
}

// CaughtUp waits until history has all that the nodes have applied, and returns how
// long that took.
func (c *Cluster) CaughtUp(ctx context.Context) (time.Duration, error) {
	var lag float64
	var asked error
	began := time.Now()
	err := pause.Until(ctx, lagPoll, func() (bool, error) {
		lag, asked = c.lag(ctx)
		return asked == nil && lag == 0, nil
	})
	if err != nil {
		return 0, errors.Join(fmt.Errorf("history lacks %.0f records: %w", lag, err), asked)
	}
	return time.Since(began), nil
}

// lag returns how many records history lacks.
func (c *Cluster) lag(ctx context.Context) (lag float64, err error) {
	for _, n := range c.live() {
		by, err := n.Metric(ctx, "muster_history_lag_records")
		if err != nil {
			return lag, err
		}
		for _, records := range by {
			lag += records
		}
	}
	return lag, nil
}
