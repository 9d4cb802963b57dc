package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/sources"
)

// OutboxAccounts lists the accounts that have items due at nowMs, of partitions
// whose lease this node holds, and how many items wait in all.
func (n *Node) OutboxAccounts(nowMs int64) (due []uint64, waiting int) {
	n.machines(func(m *resolver.Machine, held bool) {
		list, k := m.OutboxAccounts(nowMs)
		waiting += k
		if held {
			due = append(due, list...)
		}
	})
	return due, waiting
}

// AccountsSending lists the accounts that have campaigns whose run continues, of
// partitions whose lease this node holds. It looks at all runs.
func (n *Node) AccountsSending() (list []uint64) {
	n.machines(func(m *resolver.Machine, held bool) {
		if held {
			list = append(list, m.AccountsSending()...)
		}
	})
	return list
}

// AccountsWithDueCampaigns lists the accounts that have campaigns whose time has come,
// of partitions whose lease this node holds.
func (n *Node) AccountsWithDueCampaigns() (list []uint64) {
	n.machines(func(m *resolver.Machine, held bool) {
		if held {
			list = append(list, m.AccountsWithDueCampaigns()...)
		}
	})
	return list
}

// machines calls fn with each machine that is here and whether this node holds its lease.
// Apply waits meanwhile.
func (n *Node) machines(fn func(m *resolver.Machine, held bool)) {
	for p := range n.here() {
		_, held := p.lease.active()
		p.with(func(m *resolver.Machine) { fn(m, held) })
	}
}

// OutboxQueued returns a channel that is closed when items have been queued since
// the call.
func (n *Node) OutboxQueued() <-chan struct{} { return n.queued.Wait() }

// CampaignChanged returns a channel that is closed when a run of a campaign has started or
// stopped, or a campaign has become due, since the call.
func (n *Node) CampaignChanged() <-chan struct{} { return n.campaigns.Wait() }

// InboxChanged returns a channel that is closed when an inbox of in-app messages has
// changed since the call.
func (n *Node) InboxChanged() <-chan struct{} { return n.inboxes.Wait() }

// KeyAccess finds the key of an account by the SHA-256 of its text: see
// [resolver.Machine.KeyAccess]. The error wraps [resolver.ErrNotOwner] or [resolver.ErrUnavailable].
func (n *Node) KeyAccess(account uint64, hash [32]byte) (access resolver.KeyAccess, ok bool, err error) {
	p, err := n.owner(account)
	if err != nil {
		return access, false, err
	}
	if err := p.barrier(context.Background()); err != nil {
		return access, false, err
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.readable(); err != nil {
		return access, false, err
	}
	access, ok = p.mu.m.KeyAccess(account, hash)
	return access, ok, nil
}

// StateHash returns the hash of a partition's state and the offset it belongs
// to. Apply waits meanwhile.
func (n *Node) StateHash(partition int) (next int64, sum string, err error) {
	p := n.partitions[partition].Load()
	if p == nil {
		return 0, "", notOwner(partition)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.readable(); err != nil {
		return 0, "", err
	}
	sum, err = p.mu.m.Hash()
	return p.mu.m.Next(), sum, err
}

// CommandBy is [Node.Command], and records by as the author in the audit log.
func (n *Node) CommandBy(ctx context.Context, account uint64, name string, args any, by audit.Author) ([]byte, error) {
	if signed := resolver.SignCommand(name, args, by); signed != nil {
		return n.Command(ctx, account, name, signed)
	}
	return n.Command(ctx, account, name, args)
}

// usesOfRecords splits the uses of keys into those of one record each: they are of one
// partition, and at most as many as a record may hold.
func usesOfRecords[U any](n *Node, uses []U, account func(U) uint64) (out [][]U) {
	byPartition := make([][]U, len(n.partitions))
	for _, u := range uses {
		p := n.PartitionOf(account(u))
		byPartition[p] = append(byPartition[p], u)
	}
	for _, list := range byPartition {
		out = slices.AppendSeq(out, slices.Chunk(list, resolver.MaxKeyUses))
	}
	return out
}

// RecordKeyUses records when keys were used, in as few records as there are
// partitions.
func (n *Node) RecordKeyUses(ctx context.Context, uses []access.KeyUse) error {
	for _, chunk := range usesOfRecords(n, uses, func(u access.KeyUse) uint64 { return u.Account }) {
		if _, err := n.Command(ctx, chunk[0].Account, access.CommandAPIKeysUsed, access.APIKeysUsed{Uses: chunk}); err != nil {
			return fmt.Errorf("record the use of API keys: %w", err)
		}
	}
	return nil
}

// RecordSourceUses records when write keys were used, in as few records as there are
// partitions.
func (n *Node) RecordSourceUses(ctx context.Context, uses []sources.Use) error {
	for _, chunk := range usesOfRecords(n, uses, func(u sources.Use) uint64 { return u.Account }) {
		if _, err := n.Command(ctx, chunk[0].Account, sources.CommandUsed, sources.Used{Uses: chunk}); err != nil {
			return fmt.Errorf("record the use of write keys: %w", err)
		}
	}
	return nil
}
