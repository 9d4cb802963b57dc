package node

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/musterhq/muster/resolver"
)

// Lease returns the epoch under which this node owns an account, 0 when embedded; ok is
// false when it does not own it.
func (n *Node) Lease(account uint64) (epoch uint64, ok bool) {
	p, err := n.owner(account)
	if err != nil {
		return 0, false
	}
	return p.lease.active()
}

// LeasedSince is the offset behind which everything was recorded since this node owns
// an account without a break: what earlier records ask for, another node or an
// earlier process may have begun. It is at most the log's end, math.MaxInt64 when the
// node does not own it.
func (n *Node) LeasedSince(account uint64) (offset int64) {
	p, err := n.owner(account)
	if err != nil {
		return math.MaxInt64
	}
	switch epoch, ok := p.lease.active(); {
	case !ok:
		return math.MaxInt64
	case epoch != 0:
		return int64(epoch) // an epoch's number is the offset behind its record
	}
	return p.loaded.to
}

// Look calls fn with a view of the account as far as it is applied here. Unlike
// [Node.Read] it does not ask the log whether there is more: it is for callers that
// act under a claim, which does ask. Errors are those of Read.
func (n *Node) Look(account uint64, fn func(*resolver.View) error) error {
	p, err := n.owner(account)
	if err != nil {
		return err
	}
	if err := p.failed.unavailable(); err != nil {
		return err
	}
	return p.look(account, fn)
}

// Effect begins an effect of an account, which may be carried out once it is
// claimed; ok is false when the node does not act any more under the epoch. end
// is to be called when the outcome is on record: a partition is given up when
// nothing is under way, or after a while.
func (n *Node) Effect(account, epoch uint64) (end func(), ok bool) {
	p, err := n.owner(account)
	if err != nil {
		return nil, false
	}
	return p.lease.effect(epoch)
}

// Claim claims items of an account's outbox under an epoch, MaxClaims at most,
// and returns those that are not to be carried out. When the epoch is over the
// error is one of [resolver.IsSuperseded]. Without items it asks whether it is. On any
// error nothing is claimed.
func (n *Node) Claim(ctx context.Context, account, epoch uint64, items []resolver.ClaimItem) (denied []uint64, err error) {
	b, err := n.Command(ctx, account, resolver.CommandOutboxClaim, resolver.OutboxClaim{Epoch: epoch, Items: items})
	if err != nil {
		return nil, err
	}
	var reply resolver.OutboxClaimReply
	if err := json.Unmarshal(b, &reply); err != nil {
		return nil, fmt.Errorf("reply of the state machine: %w", err)
	}
	return reply.Denied, nil
}

// effectsWait is how long effects under way may hold up that a partition is
// given up.
const effectsWait = 3 * time.Second

// retire gives up the lease before a partition is given up: no effect is begun any more, and
// those under way may end. A new owner does not wait for that, and may repeat them.
func (p *partition) retire(ctx context.Context) {
	idle := p.lease.end()
	if idle == nil {
		return
	}
	limit := time.NewTimer(effectsWait)
	defer limit.Stop()
	select {
	case <-idle:
	case <-ctx.Done():
	case <-limit.C:
	case <-p.failed.Done():
	}
}
