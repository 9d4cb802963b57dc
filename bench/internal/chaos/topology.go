package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/musterhq/muster/bench/internal/proxy"
	"github.com/musterhq/muster/internal/services"
)

// site is everything that runs.
type site struct {
	kafka      *services.KafkaCluster
	clickHouse *services.ClickHouseServer
	nodes      []*node
}

// database is the nodes' in ClickHouse.
const database = "muster"

// open starts Kafka and ClickHouse and prepares the nodes; none of them runs yet.
func open(ctx context.Context, c Config) (s *site, err error) {
	s = &site{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	ports, err := services.FreePorts(c.Topology.Nodes)
	if err != nil {
		return s, err
	}
	for i, port := range ports {
		n := &node{
			number: i, binary: c.Binary, dir: filepath.Join(c.Dir, "node-"+strconv.Itoa(i)),
			address: fmt.Sprintf("127.0.0.1:%d", port), timeout: c.StartTimeout,
		}
		if err := os.MkdirAll(n.dir, 0o700); err != nil {
			return s, err
		}
		if n.front, err = proxy.Listen(n.address); err != nil {
			return s, err
		}
		s.nodes = append(s.nodes, n)
	}
	// Each node comes to each broker through a proxy of its own.
	doors := services.Doors{Count: c.Topology.Nodes, Advertise: func(_, door int, listens string) (string, error) {
		p, err := proxy.Listen(listens)
		if err != nil {
			return "", err
		}
		s.nodes[door].kafka = append(s.nodes[door].kafka, p)
		return p.Addr(), nil
	}}
	if s.kafka, err = services.StartKafkaWithDoors(ctx, c.Dir, c.Topology.Brokers, doors); err != nil {
		return s, err
	}
	if s.clickHouse, err = services.StartClickHouse(ctx, c.Dir); err != nil {
		return s, err
	}
	for _, n := range s.nodes {
		if n.clicks, err = proxy.Listen(s.clickHouse.Addr()); err != nil {
			return s, err
		}
		n.args = s.args(c, n)
	}
	return s, nil
}

// args are a node's.
func (s *site) args(c Config, n *node) []string {
	var brokers []string
	for _, p := range n.kafka {
		brokers = append(brokers, p.Addr())
	}
	history := url.URL{Scheme: "clickhouse", Host: n.clicks.Addr(), Path: "/" + database}
	args := []string{
		"serve", "--data", filepath.Join(n.dir, "data"), "--listen", n.address,
		"--kafka", strings.Join(brokers, ","), "--kafka-session-timeout", c.Topology.Session.String(),
		"--clickhouse", history.String(),
	}
	if n.number == 0 {
		args = append(args, "--credentials", n.credentials())
	}
	if c.Topology.Nodes > 1 {
		args = append(args, "--cluster-secret", clusterSecret, "--advertise", n.front.Addr(),
			"--kafka-partitions", strconv.Itoa(c.Topology.Partitions), "--checkpoints", "file://"+filepath.Join(c.Dir, "checkpoints"))
	}
	return append(args, c.Topology.Args...)
}

// clusterSecret is what the nodes know each other by.
const clusterSecret = "chaos-chaos-chaos-chaos-chaos-32"

// close ends everything.
func (s *site) close() (err error) {
	for _, n := range s.nodes {
		err = errors.Join(err, n.close())
	}
	if s.clickHouse != nil {
		err = errors.Join(err, s.clickHouse.Close())
	}
	if s.kafka != nil {
		err = errors.Join(err, s.kafka.Close())
	}
	return err
}

// origins are where the nodes are reached.
func (s *site) origins() (out []string) {
	for _, n := range s.nodes {
		out = append(out, n.origin())
	}
	return out
}
