package node

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver"
)

// lease is what a partition knows of its own right to act.
type lease struct {
	newest atomic.Uint64 // number of the newest epoch applied
	own    atomic.Uint64 // number of this partition's newest epoch of its own, 0 for none
	ended  atomic.Bool   // no effect is begun any more; set while mu is held

	mu struct {
		sync.Mutex
		record  eventlog.RecordID // of the epoch record under way
		effects int               // under way
		idle    chan struct{}     // closed when none is; nil unless asked for
	}
}

// holdsLease reports whether the newest epoch is this node's, and which it is. Embedded
// there is none: its number is 0. A partition that has known epochs is a
// cluster's, and not of a node without an id.
func (p *partition) holdsLease() (epoch uint64, ok bool) {
	newest := p.lease.newest.Load() // before own: see noteEpoch
	own := p.lease.own.Load()
	return own, own == newest && (own != 0) == (p.node.opts.NodeID != "")
}

// isLeader reports whether this node acts for the partition, and under which epoch.
func (p *partition) isLeader() (epoch uint64, ok bool) {
	epoch, ok = p.holdsLease()
	return epoch, ok && !p.lease.ended.Load()
}

// noteEpoch notes the newest epoch of the state; id is that of the record just
// applied. It is called while the partition's lock is held.
func (p *partition) noteEpoch(m *resolver.Machine, id eventlog.RecordID) {
	last := m.LastEpoch()
	newest := last.Number
	before := p.lease.newest.Load()
	if newest == before {
		return
	}
	p.lease.mu.Lock()
	own := p.lease.mu.record == id && id != eventlog.RecordID{}
	p.lease.mu.Unlock()
	_, reigned := p.holdsLease()
	if own {
		p.lease.own.Store(newest)
	}
	p.lease.newest.Store(newest)
	switch {
	case own:
		p.log.Info("acting", "epoch", newest)
	case reigned && before != 0:
		p.log.Warn("another node acts for the partition from here on", "epoch", newest, "node", last.Node, "address", last.Address)
	}
	p.node.changed.Signal()
}

// appendEpoch begins an epoch of this node's and waits until it is applied. The
// state must be that of the log's end. Nothing is done by a node without an id.
func (p *partition) appendEpoch(ctx context.Context) error {
	o := &p.node.opts
	if o.NodeID == "" {
		return nil
	}
	env := eventlog.Envelope{Kind: eventlog.KindCommand}
	if err := p.node.stamp(&env); err != nil {
		return err
	}
	p.lease.mu.Lock()
	p.lease.mu.record = env.ID
	p.lease.mu.Unlock()
	args := resolver.EpochBegin{Node: o.NodeID, Address: o.Advertise, ApplyVersion: resolver.ApplyVersion}
	var out resolver.Outcome
	if err := p.submit(ctx, env, eventlog.AppendCommand(env.Append(nil), resolver.CommandPartitionEpoch, must.JSON(args)), &out); err != nil {
		return fmt.Errorf("begin an epoch of partition %d: %w", p.id, err)
	}
	if out.Refusal != nil {
		return fmt.Errorf("begin an epoch of partition %d: %w", p.id, out.Refusal)
	}
	return nil
}

// renew begins an epoch unless this node acts already: another node's record may
// have come behind the last one.
func (p *partition) renew(ctx context.Context) error {
	if _, ok := p.holdsLease(); ok {
		return nil
	}
	return p.appendEpoch(ctx)
}

// Epoch returns the newest epoch of a partition; ok is false when there is none,
// or the partition is not here.
func (n *Node) Epoch(partition int) (e resolver.Epoch, ok bool) {
	if !n.Owns(partition) {
		return e, false
	}
	p := n.partitions[partition].Load()
	if p == nil {
		return e, false
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.mu.m == nil {
		return e, false
	}
	e = p.mu.m.LastEpoch()
	return e, e.Number != 0
}

// Acts reports whether this node acts for a partition: it is here and the newest
// epoch is this node's. [Node.Changed] says when that may have changed. One that
// is here for which the node does not act was taken by another: whoever decides
// on ownership gives it back, or takes it again once it is sure.
func (n *Node) Acts(partition int) bool {
	if !n.Owns(partition) {
		return false
	}
	p := n.partitions[partition].Load()
	if p == nil {
		return false
	}
	_, ok := p.isLeader()
	return ok
}

// Clustered reports whether several nodes reach the log: partitions come and go, and
// what the node carries out is claimed.
func (n *Node) Clustered() bool { return n.opts.NodeID != "" }
