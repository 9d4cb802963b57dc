package main

import (
	"net"

	"github.com/musterhq/muster/cluster/peer"
	"github.com/musterhq/muster/cmd/muster/internal/cli"
)

// newPartitions is what the topic of several nodes is made with: as many for each
// of two, three or six, and one account in six behind each if one is slow.
const newPartitions = 6

// otherBodyBytes is how long bodies may be of calls that --max-body-bytes is not about.
const otherBodyBytes = 1 << 20

// clusterFlags say that this node works with others.
type clusterFlags struct{ secret, advertise *string }

func (c *clusterFlags) add(f *cli.Flags) {
	c.secret = f.String("cluster-secret", "", "`SECRET` shared by all nodes of a topic, at least 16 bytes; better set as MUSTER_CLUSTER_SECRET. Without it this node owns the whole log")
	c.advertise = f.String("advertise", "", "`HOST:PORT` at which other nodes reach this node (default: the --listen address)")
}

// read applies the flags to c, whose engine is set.
func (x *clusterFlags) read(c *serveConfig) error {
	switch {
	case c.engine.Kafka == nil && *x.secret != "":
		return wrongUsage("--cluster-secret needs --kafka: nodes share the log")
	case c.engine.Kafka == nil && *x.advertise != "":
		return wrongUsage("--advertise needs --kafka: nodes share the log")
	case c.engine.Kafka == nil:
		return nil
	}
	c.engine.Address = *x.advertise
	if *x.advertise != "" {
		host, port, err := checkHostPort("advertise", *x.advertise, "10.0.0.7:8080")
		if err != nil {
			return err
		}
		if host == "" || port == "0" {
			return wrongUsage("--advertise is %q; use HOST:PORT where other nodes reach this one, such as 10.0.0.7:8080", *x.advertise)
		}
	}
	if *x.secret == "" {
		return nil
	}
	secret, err := peer.NewSecret(*x.secret)
	if err != nil {
		return wrongUsage("--cluster-secret: %w", err)
	}
	host, _, err := net.SplitHostPort(c.listen)
	if ip := net.ParseIP(host); err == nil && *x.advertise == "" && (host == "" || ip != nil && ip.IsUnspecified()) {
		return wrongUsage("--listen %s does not say where other nodes reach this one; add --advertise HOST:PORT", c.listen)
	}
	c.engine.Kafka.NewPartitions = newPartitions
	c.engine.Peer = &peer.Options{
		Secret: secret, Memory: c.ingest.Memory, BodyBytes: max(c.ingest.BodyBytes, otherBodyBytes), RecordBytes: c.ingest.RecordBytes,
		Now: c.ingest.Now, Rand: c.ingest.Rand, Metrics: c.ingest.Metrics, Logger: c.log,
	}
	c.ingest.Internal, c.ingest.HeaderRoom = peer.Is, peer.HeadRoom
	return nil
}
