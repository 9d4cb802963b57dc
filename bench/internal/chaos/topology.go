package chaos

import (
	"context"
	"errors"
	"net/url"

	"github.com/musterhq/muster/bench/internal/proxy"
	"github.com/musterhq/muster/bench/internal/topology"
	"github.com/musterhq/muster/internal/services"
)

// site is everything that runs.
type site struct {
	*topology.Cluster
	kafka      *services.KafkaCluster
	clickHouse *services.ClickHouseServer
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
	t := c.Topology
	s.Cluster, err = topology.NewCluster(topology.ClusterOptions{
		Dir: c.Dir, Binary: c.Binary, Nodes: t.Nodes, Partitions: t.Partitions, Session: t.Session, Timeout: c.StartTimeout, Proxied: true, Alone: t.Nodes == 1,
	})
	if err != nil {
		return s, err
	}
	// Each node comes to each broker through a proxy of its own.
	doors := services.Doors{Count: t.Nodes, Advertise: func(_, door int, listens string) (string, error) {
		p, err := proxy.Listen(listens)
		if err != nil {
			return "", err
		}
		s.Nodes[door].Kafka = append(s.Nodes[door].Kafka, p)
		return p.Addr(), nil
	}}
	if s.kafka, err = services.StartKafkaWithDoors(ctx, c.Dir, t.Brokers, doors); err != nil {
		return s, err
	}
	if s.clickHouse, err = services.StartClickHouse(ctx, c.Dir); err != nil {
		return s, err
	}
	for _, n := range s.Nodes {
		if n.ClickHouse, err = proxy.Listen(s.clickHouse.Addr()); err != nil {
			return s, err
		}
		var brokers []string
		for _, p := range n.Kafka {
			brokers = append(brokers, p.Addr())
		}
		history := url.URL{Scheme: "clickhouse", Host: n.ClickHouse.Addr(), Path: "/" + database}
		s.Connect(n, brokers, history.String(), c.ServerArgs...)
	}
	return s, nil
}

// close ends everything.
func (s *site) close() (err error) {
	if s.Cluster != nil {
		err = s.Cluster.Close()
	}
	if s.clickHouse != nil {
		err = errors.Join(err, s.clickHouse.Close())
	}
	if s.kafka != nil {
		err = errors.Join(err, s.kafka.Close())
	}
	return err
}
