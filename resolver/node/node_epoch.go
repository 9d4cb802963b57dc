package node

import (
	"context"
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver"
)

// noteEpoch notes the newest epoch of the state; id is that of the record just
// applied. It is called while the partition's lock is held.
func (p *partition) noteEpoch(m *resolver.Machine, id eventlog.RecordID) {
	last := m.LastEpoch()
	newest := last.Number
	if newest == p.lease.newest.Load() {
		return
	}
	switch won, lost := p.lease.note(newest, id); {
	case won:
		p.log.Info("holding the lease", "epoch", newest)
	case lost:
		p.log.Warn("another node holds the lease of the partition", "epoch", newest, "node", last.Node, "address", last.Address)
	}
	p.node.changed.Signal()
}

// appendEpoch begins an epoch of this node's and waits until it is applied. The
// state must be that of the log's end. A node without an id begins none, and says in the log
// which rules its build has if the state does not know that yet.
func (p *partition) appendEpoch(ctx context.Context) error {
	o := &p.node.opts
	if o.NodeID == "" {
		p.appendRules(ctx)
		return nil
	}
	env := eventlog.Envelope{Kind: eventlog.KindCommand}
	if err := p.node.stamp(&env); err != nil {
		return err
	}
	p.lease.ask(env.ID)
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

// appendRules says which rules this build has, where they are newer than those that the state
// knows of. Where that fails the older ones continue to hold, until the next start says it.
func (p *partition) appendRules(ctx context.Context) {
	p.mu.RLock()
	needs := p.mu.m.NeedsRules()
	p.mu.RUnlock()
	if !needs {
		return
	}
	env := eventlog.Envelope{Kind: eventlog.KindCommand}
	err := p.node.stamp(&env)
	if err == nil {
		var out resolver.Outcome
		args := must.JSON(resolver.RulesBegin{ApplyVersion: resolver.ApplyVersion})
		err = p.submit(ctx, env, eventlog.AppendCommand(env.Append(nil), resolver.CommandPartitionRules, args), &out)
	}
	if err != nil {
		p.log.Warn("the version of the rules is not in the log yet; rules that changed with this version begin at the next start", "error", err)
	}
}

// renew begins an epoch unless this node holds the lease already: another node's record may
// have come behind the last one.
func (p *partition) renew(ctx context.Context) error {
	if _, ok := p.lease.held(); ok {
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
	p.with(func(m *resolver.Machine) { e = m.LastEpoch() })
	return e, e.Number != 0
}

// HoldsLease reports whether this node holds the lease of a partition: it is here and the newest
// epoch is this node's. [Node.Changed] says when that may have changed. One that
// is here for which the node does not act was taken by another: what decides
// on ownership gives it back, or takes it again once it is sure.
func (n *Node) HoldsLease(partition int) bool {
	if !n.Owns(partition) {
		return false
	}
	p := n.partitions[partition].Load()
	if p == nil {
		return false
	}
	_, ok := p.lease.active()
	return ok
}

// Clustered reports whether several nodes reach the log: partitions come and go, and
// what the node carries out is claimed.
func (n *Node) Clustered() bool { return n.opts.NodeID != "" }
