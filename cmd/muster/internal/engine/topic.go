package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/musterhq/muster/cluster"
	"github.com/musterhq/muster/cluster/peer"
	"github.com/musterhq/muster/eventlog/kafka"
	"github.com/musterhq/muster/resolver/node"
)

// openTopic opens the log in Kafka and makes this node a member of its cluster.
func (e *Engine) openTopic(ctx context.Context, o Options) (err error) {
	if o.ClickHouse == nil {
		return errors.New("a log in Kafka needs its history in ClickHouse")
	}
	k := *o.Kafka
	k.MaxRecordBytes, k.Logger = o.MaxRecordBytes, o.Logger
	known, found, err := readLogName(o.Dir)
	if err != nil {
		return err
	}
	if found && known.Topic == k.Topic {
		k.Base, k.Known = &known.Base, true
	}
	if e.topic, err = kafka.Open(ctx, k); err != nil {
		return err
	}
	e.Log = e.topic
	id, err := e.topic.ClusterID(ctx)
	if err != nil {
		return fmt.Errorf("the log in Kafka: %w", err)
	}
	ours := logName{Cluster: id, Topic: e.topic.Topic()}
	if !found {
		if ours.Base, err = e.topic.Base(ctx); err != nil {
			return fmt.Errorf("the log in Kafka: %w", err)
		}
	}
	name, err := claimDir(o.Dir, ours, rand.Reader)
	if err != nil {
		return err
	}
	e.identity = name.String()
	mechanism, err := k.Mechanism()
	if err != nil {
		return fmt.Errorf("the log in Kafka: %w", err)
	}
	host, _ := os.Hostname() // for people to read
	e.self = cluster.Node{ID: name.Node, Host: host, Address: cmp.Or(o.Address, "no address")}
	key := ""
	if o.Peer != nil {
		key = o.Peer.Secret.Fingerprint(e.topic.Topic())
	}
	e.member, err = cluster.Join(ctx, cluster.Options{
		Brokers: k.Brokers, Topic: e.topic.Topic(), Partitions: e.topic.Partitions(), TLS: k.TLS, SASL: mechanism, Logger: o.Logger,
		Node: e.self, Self: o.Self, Key: key, SessionTimeout: o.SessionTimeout,
	})
	var twin *cluster.TwinError
	if errors.As(err, &twin) {
		return fmt.Errorf("%w: %s is a copy of the directory of %s, which runs. Name a new directory with --data (it is filled from the log), or stop that process", ErrInUse, o.Dir, twin.Twin)
	}
	var foreign *cluster.ForeignOwnerError
	if errors.As(err, &foreign) {
		return fmt.Errorf("%w: %w. For both to work together start them with the same --cluster-secret. Else stop that one (a node that died is given up after %v), or name another topic with --kafka-topic for another installation",
			ErrInUse, err, foreign.Session)
	}
	if err != nil || o.Peer == nil {
		return err
	}
	calls := *o.Peer
	calls.Table, calls.Self = e.member, e.self.ID
	e.peers, err = peer.New(calls)
	return err
}

// inCluster adds what the state of a log has to know that other nodes reach.
func (e *Engine) inCluster(n *node.Options, o Options) {
	if e.member == nil {
		return
	}
	n.Owned, n.RemoteLog = []int{}, true
	n.NodeID, n.Advertise = e.self.ID, e.self.Address
	if e.peers != nil {
		n.Remote = e.peers
	}
}

// join begins to take the partitions that are this node's.
func (e *Engine) join(log *slog.Logger) {
	if e.member == nil {
		return
	}
	if e.peers != nil {
		e.peers.Start(e.Node)
	}
	e.keeper = newKeeper(e.Node, e.member, e.topic.Partitions(), log)
}

// OwnedElsewhere reports whether another node owns a partition, or loads it to own it, as far
// as this one knows. It does not know before it is in the group.
func (e *Engine) OwnedElsewhere(partition int) bool {
	if e.member == nil {
		return false
	}
	owner, ok := e.member.Owner(partition)
	return ok && owner.ID != e.self.ID
}

// Peers makes calls to other nodes; nil where there can be none.
func (e *Engine) Peers() *peer.Peers { return e.peers }

// Loaded waits until the partitions that are this node's are here.
func (e *Engine) Loaded(ctx context.Context) error {
	if e.keeper == nil {
		return nil
	}
	loaded := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { loaded <- e.keeper.loaded(ctx) }()
	select {
	case err := <-loaded:
		return err
	case <-e.Lost():
		return e.LostErr()
	case <-e.Node.Failed():
		return e.Node.Err()
	}
}

// Loading are the partitions that are this node's and not here yet.
func (e *Engine) Loading() []int {
	if e.keeper == nil {
		return nil
	}
	return e.keeper.loading()
}

// Lost is closed when the log belongs to nodes that this one has nothing to do
// with; [Engine.LostErr] says to whom. It is nil, and never ready, for a log in
// files.
func (e *Engine) Lost() <-chan struct{} {
	if e.member == nil {
		return nil
	}
	return e.member.Lost()
}

// LostErr is why this node has lost its log.
func (e *Engine) LostErr() error { return e.member.Err() }

// Leave has other nodes take over, of a log in Kafka, and returns when requests
// come to them. What is here is still answered for until [Engine.Close]. A
// checkpoint is written first, as far as ctx allows, so that they need not replay
// much.
func (e *Engine) Leave(ctx context.Context) error {
	if e.member == nil {
		return nil
	}
	e.keeper.close()
	written := make(chan error, 1)
	go func() { written <- e.Node.Checkpoint() }()
	var err error
	select {
	case err = <-written:
	case <-ctx.Done():
		err = errors.New("the last checkpoint was not written in time; the node that takes over replays the log")
	}
	e.member.Leave(ctx)
	return err
}
