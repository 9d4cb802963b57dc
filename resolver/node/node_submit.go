package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver"
)

// Submit appends the record to the partition of the account and waits until it
// is durable and applied; out then holds the answer. rec starts with an
// envelope. Errors wrap [resolver.ErrOverloaded] or [resolver.ErrNotOwner] (nothing was stored) or
// [resolver.ErrUnavailable] (it may have been stored), or say that rec is malformed.
func (n *Node) Submit(ctx context.Context, account uint64, rec []byte, out *resolver.Outcome) error {
	env, _, err := eventlog.DecodeEnvelope(rec)
	if err != nil {
		return err
	}
	if env.Account != account {
		return fmt.Errorf("record is of account %016x, not of %016x", env.Account, account)
	}
	if ahead := env.StampMs - n.opts.Now().UnixMilli(); ahead > n.opts.MaxStampAhead.Milliseconds() {
		return fmt.Errorf("%w: the record's clock is %d ms ahead; set the clock right", resolver.ErrUnavailable, ahead)
	}
	p, err := n.owner(account)
	if err != nil {
		return err
	}
	rec, refusal, err := p.keepOut(env, rec)
	switch {
	case err != nil:
		return err
	case refusal != nil:
		out.Reset(-1)
		out.Refusal = refusal
		return nil
	}
	return p.carryOut(ctx, env, rec, out)
}

// Command submits a command and returns its reply, through Options.Remote when
// the account's partition is not here. A refusal by the state machine is
// returned as a *[resolver.Refusal].
func (n *Node) Command(ctx context.Context, account uint64, name string, args any) ([]byte, error) {
	env := eventlog.Envelope{Kind: eventlog.KindCommand, Account: account}
	if err := n.stamp(&env); err != nil {
		return nil, err
	}
	rec := eventlog.AppendCommand(env.Append(nil), name, must.JSON(args))
	var out resolver.Outcome
	err := n.Submit(ctx, account, rec, &out)
	switch {
	case errors.Is(err, resolver.ErrNotOwner) && n.opts.Remote != nil:
		return n.opts.Remote.Command(ctx, n.PartitionOf(account), rec)
	case err != nil:
		return nil, err
	case out.Refusal != nil:
		return nil, out.Refusal
	}
	return out.Reply, nil
}

// SubmitCommand carries out a command that another node made for a partition
// that is served here, as [Remote] says, and returns its reply. The record keeps
// its id, so that it counts once however often it is handed over, and is stamped
// again: a partition's time is its owner's. Errors are those of Submit, and a
// *[resolver.Refusal] by the state machine.
func (n *Node) SubmitCommand(ctx context.Context, partition int, rec []byte) (reply []byte, err error) {
	env, body, err := eventlog.DecodeEnvelope(rec)
	if err != nil {
		return nil, err
	}
	switch {
	case env.Kind != eventlog.KindCommand:
		return nil, fmt.Errorf("the record handed over is of kind %d, not a command", env.Kind)
	case partition < 0 || partition >= len(n.partitions):
		return nil, fmt.Errorf("there is no partition %d: the log has %d", partition, len(n.partitions))
	case env.Account != 0 && n.PartitionOf(env.Account) != partition:
		return nil, fmt.Errorf("the record handed over is of account %016x, which is not of partition %d", env.Account, partition)
	}
	p := n.partitions[partition].Load()
	if p == nil {
		return nil, notOwner(partition)
	}
	env.StampMs = n.opts.Now().UnixMilli()
	rec, refusal, err := p.keepOut(env, append(env.Append(nil), body...))
	switch {
	case err != nil:
		return nil, err
	case refusal != nil:
		return nil, refusal
	}
	var out resolver.Outcome
	if err := p.carryOut(ctx, env, rec, &out); err != nil {
		return nil, err
	}
	if out.Refusal != nil {
		return nil, out.Refusal
	}
	return out.Reply, nil
}
