package resolver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A claim comes before an effect: the node that acts says in the log what it is
// about to carry out, and does so once the claim was applied under its epoch. A
// claim under another epoch is refused, so a node that was frozen can repeat what
// it had claimed, and nothing else.
//
// Claims change nothing. Who claimed what would be of no use to a new owner: it
// cannot know whether that was carried out, and must do it all, since losing a
// message is worse than repeating one. All a claim does is to stand behind or
// before the next epoch record.
//
// The claim of a campaign's messages is the record that makes them pending
// ([CommandCampaignBatch], [CommandCampaignResume]), which carries the epoch, too.
// Of a batch only so many are under way at once, and the outcome of each is
// applied before its place is given to another: by then a node knows that it was
// superseded.
//
// Embedded there are no epochs and no claims.

// CommandOutboxClaim claims items of the outbox.
const CommandOutboxClaim = "outbox.claim"

// MaxClaims is how many items one record claims at most.
const MaxClaims = 1000

// OutboxClaim claims items. Without any it asks whether the epoch still holds.
type OutboxClaim struct {
	Epoch uint64      `json:"epoch"`
	Items []ClaimItem `json:"items,omitempty"`
}

// ClaimItem names an attempt of an item.
type ClaimItem struct {
	Seq     uint64 `json:"seq"`
	Attempt int    `json:"attempt"`
}

// OutboxClaimReply says which items are not to be carried out: they are gone,
// have another attempt, or their endpoint rests.
type OutboxClaimReply struct {
	Denied []uint64 `json:"denied,omitempty"` // by Seq
}

// codeEpoch is the code of what is refused because of its epoch.
const codeEpoch = "epoch"

// IsSuperseded tells whether an error is a refusal because the epoch is not the
// newest: another node acts now, or this one does under a later epoch.
func IsSuperseded(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && r.Code == codeEpoch
}

// checkEpoch refuses what was asked for under an epoch that is not the newest.
func (m *Machine) checkEpoch(epoch uint64) *Refusal {
	if epoch == m.epoch.Number {
		return nil
	}
	return &Refusal{Code: codeEpoch, Field: "epoch", Message: fmt.Sprintf("epoch %d is over: epoch %d of node %s acts now", epoch, m.epoch.Number, m.epoch.Node)}
}

// checkOutcome refuses outcomes of an older epoch, but that something was sent.
func (m *Machine) checkOutcome(epoch uint64, result string) *Refusal {
	if result == ResultSent {
		return nil
	}
	return m.checkEpoch(epoch)
}

// claimOutbox says which items may be carried out.
func (m *Machine) claimOutbox(cmd *command, c OutboxClaim) *Refusal {
	if r := m.checkEpoch(c.Epoch); r != nil {
		return r
	}
	if len(c.Items) > MaxClaims {
		return invalid("items", "items must have at most %d entries", MaxClaims)
	}
	var reply OutboxClaimReply
	for _, x := range c.Items {
		// What cannot be due now was closed in between: its endpoint rests.
		if it := cmd.account.outbox.items[x.Seq]; it == nil || it.Attempt != x.Attempt || it.at < 0 {
			reply.Denied = append(reply.Denied, x.Seq)
		}
	}
	cmd.reply(reply)
	return nil
}

// Acting returns the epoch under which this node acts for an account, 0 when
// embedded; ok is false when it does not.
func (n *Node) Acting(account uint64) (epoch uint64, ok bool) {
	p, err := n.owner(account)
	if err != nil {
		return 0, false
	}
	return p.isLeader()
}

// Look calls fn with a view of the account as far as it is applied here. Unlike
// [Node.Read] it asks nobody whether there is more: it is for who acts by what it
// sees under a claim, which does ask. Errors are those of Read.
func (n *Node) Look(account uint64, fn func(*View) error) error {
	p, err := n.owner(account)
	if err != nil {
		return err
	}
	select {
	case <-p.failed:
		return fmt.Errorf("%w: %w", ErrUnavailable, p.failure)
	default:
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.mu.m == nil {
		return p.gone()
	}
	a := p.mu.m.accounts[account]
	if a == nil {
		return ErrNoAccount
	}
	return fn(&View{p, p.mu.m, a})
}

// epoch is the one under which this node acts, 0 when embedded.
func (v *View) epoch() uint64 {
	if v.p == nil {
		return 0
	}
	epoch, _ := v.p.isLeader()
	return epoch
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
	if epoch == 0 && n.opts.NodeID == "" {
		_, ok := p.isLeader()
		return func() {}, ok
	}
	t := &p.lease
	t.mu.Lock()
	defer t.mu.Unlock()
	if now, ok := p.isLeader(); !ok || now != epoch {
		return nil, false
	}
	t.mu.effects++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.mu.effects--; t.mu.effects == 0 && t.mu.idle != nil {
			close(t.mu.idle)
			t.mu.idle = nil
		}
	}, true
}

// Claim claims items of an account's outbox under an epoch, MaxClaims at most,
// and returns those that are not to be carried out. When the epoch is over the
// error is one of [IsSuperseded]. Without items it asks whether it is. On any
// error nothing is claimed.
func (n *Node) Claim(ctx context.Context, account, epoch uint64, items []ClaimItem) (denied []uint64, err error) {
	b, err := n.Command(ctx, account, CommandOutboxClaim, OutboxClaim{epoch, items})
	if err != nil {
		return nil, err
	}
	var reply OutboxClaimReply
	if err := json.Unmarshal(b, &reply); err != nil {
		return nil, fmt.Errorf("reply of the state machine: %w", err)
	}
	return reply.Denied, nil
}

// effectsWait is how long effects under way may hold up that a partition is
// given up.
const effectsWait = 3 * time.Second

// retire ends acting before a partition is given up: no effect is begun any
// more, and those under way are waited for, so that a new owner repeats none.
func (p *partition) retire(ctx context.Context) {
	t := &p.lease
	t.mu.Lock()
	t.ended.Store(true)
	var idle chan struct{}
	if t.mu.effects > 0 {
		idle = make(chan struct{})
		t.mu.idle = idle
	}
	t.mu.Unlock()
	if idle == nil {
		return
	}
	limit := time.NewTimer(effectsWait)
	defer limit.Stop()
	select {
	case <-idle:
	case <-ctx.Done():
	case <-limit.C:
	case <-p.failed:
	}
}
