package resolver

import (
	"errors"
	"fmt"

	"github.com/musterhq/muster/resolver/outbox"
)

// A claim comes before an effect: the node that holds the lease says in the log what it is
// about to carry out, and does so once the claim was applied under its epoch. A
// claim under another epoch is refused, so a node that was frozen can repeat what
// it had claimed, and nothing else.
//
// Claims change nothing. Stored claims would be of no use to a new owner: it
// cannot know whether that was carried out, and must do it all, since losing a
// message is worse than repeating one. All a claim does is to stand behind or
// before the next epoch record.
//
// The claim of a campaign's messages is the record that makes them pending
// ([campaigns.CommandBatch], [campaigns.CommandResume]), which carries the epoch, too.
// Of a run only so many are under way at once. Before the place of one is given
// to another, its outcome is applied, or, while it waits for its next attempt, a
// claim without items: by then a node knows that it was superseded.
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

// IsSuperseded reports whether an error is a refusal because the epoch is not the
// newest: another node holds the lease, or this one does under a later epoch.
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
	if result == outbox.ResultSent {
		return nil
	}
	return m.checkEpoch(epoch)
}

// claimOutbox says which items may be carried out.
func (m *Machine) claimOutbox(tx *transaction, c OutboxClaim) *Refusal {
	if r := m.checkEpoch(c.Epoch); r != nil {
		return r
	}
	if len(c.Items) > MaxClaims {
		return invalid("items", "items must have at most %d entries", MaxClaims)
	}
	var reply OutboxClaimReply
	for _, x := range c.Items {
		// An item that cannot be due now was held back in between: its endpoint is not active.
		if !tx.account.Outbox.Claimable(x.Seq, x.Attempt) {
			reply.Denied = append(reply.Denied, x.Seq)
		}
	}
	tx.reply(reply)
	return nil
}
