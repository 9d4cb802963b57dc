package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/bench/internal/proxy"
	"github.com/musterhq/muster/internal/services"
)

// site is everything that runs.
type site struct {
	kafka      *services.KafkaCluster
	clickHouse *services.ClickHouseServer
	nodes      []*node
	// alone reports that there is one fault in this round: a start must succeed.
	alone bool
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
	if err := os.MkdirAll(checkpoints(c), 0o700); err != nil {
		return s, err
	}
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
			"--kafka-partitions", strconv.Itoa(c.Topology.Partitions), "--checkpoints", "file://"+checkpoints(c))
	}
	return append(args, c.Topology.Args...)
}

// checkpoints is the directory that nodes share.
func checkpoints(c Config) string { return filepath.Join(c.Dir, "checkpoints") }

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

// metric returns a metric's lines at a node, by their labels.
func (n *node) metric(ctx context.Context, name string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", n, err)
	}
	defer res.Body.Close()
	out := map[string]float64{}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if rest, is := strings.CutPrefix(lines.Text(), name+"{"); is {
			labels, value, _ := strings.Cut(rest, "} ")
			if out[labels], err = strconv.ParseFloat(value, 64); err != nil {
				return nil, fmt.Errorf("%v: metric %s: %w", n, lines.Text(), err)
			}
		}
	}
	return out, nil
}

// owners asks the nodes which partitions they own, and waits until each has an
// owner, and one alone.
func (s *site) owners(ctx context.Context, partitions int) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, ownersTimeout)
	defer cancel()
	for {
		owners, found := make([]int, partitions), 0
		for i, n := range s.nodes {
			here, err := n.metric(ctx, "muster_applied_offset")
			if err != nil {
				return nil, err
			}
			for labels := range here {
				p, err := strconv.Atoi(strings.Trim(strings.TrimPrefix(labels, "partition="), `"`))
				if err != nil || p < 0 || p >= partitions {
					return nil, fmt.Errorf("%v has partition %s", n, labels)
				}
				owners[p] = i
				found++
			}
		}
		if found == partitions {
			return owners, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d partitions have %d owners: %w", partitions, found, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ownersTimeout bounds how long partitions may go from hand to hand when all is
// well.
const ownersTimeout = 30 * time.Second
