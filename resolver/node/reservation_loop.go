package node

import (
	"context"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/emaildir"
)

// The pace of what follows reservations.
const (
	reconcilePause  = time.Second            // between two looks for what is due
	releasePause    = 100 * time.Millisecond // between two records
	releaseRetryMax = 10 * time.Second       // after a failure
	emailTimeout    = 10 * time.Second       // of one command
)

// releaseLoop releases e-mails that are free again in the directory. They are in
// the state until it has confirmed, so that this continues after a crash.
func (p *partition) releaseLoop(ctx context.Context) {
	wait := releasePause
	for ctx.Err() == nil {
		changed := p.position.progress.Wait()
		p.mu.RLock()
		list := p.mu.m.EmailDirectory().ReleasesWaiting()
		p.mu.RUnlock()
		if len(list) == 0 {
			wait = releasePause
			select {
			case <-changed:
				p.pause(ctx, releasePause)
			case <-ctx.Done():
			case <-p.failed.Done():
				return
			}
			continue
		}
		switch err := emaildir.ReleaseNames(ctx, list, p.node.command, p.command); {
		case ctx.Err() != nil:
			return
		case err != nil:
			wait = min(2*wait, releaseRetryMax)
			p.log.Warn("e-mails that are free again are not released yet; trying again", "emails", len(list), "retry_in", wait, "error", err)
			p.pause(ctx, wait)
		default:
			wait = releasePause
		}
	}
}

// reconcileLoop reconciles reservations that were not confirmed or released in time.
// It runs with the directory.
func (p *partition) reconcileLoop(ctx context.Context) {
	for ctx.Err() == nil {
		changed := p.position.progress.Wait()
		p.mu.RLock()
		open := p.mu.m.Stats().EmailsReserved
		due := p.mu.m.EmailDirectory().ReservationsDue(p.node.opts.Now().UnixMilli())
		p.mu.RUnlock()
		if open == 0 {
			select {
			case <-changed:
			case <-ctx.Done():
			case <-p.failed.Done():
				return
			}
		}
		if len(due) > 0 {
			if err := emaildir.ReconcileDue(ctx, due, p.node.PartitionOf, p.node.command, p.command); err != nil && ctx.Err() == nil {
				p.log.Warn("reserved e-mails are not reconciled yet; trying again", "error", err)
			}
		}
		p.pause(ctx, reconcilePause)
	}
}

// command is Command with a bound on its time.
func (n *Node) command(ctx context.Context, account uint64, name string, args any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, emailTimeout)
	defer cancel()
	return n.Command(ctx, account, name, args)
}

// command submits a command of the partition itself or of one of its accounts.
func (p *partition) command(ctx context.Context, account uint64, name string, args any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, emailTimeout)
	defer cancel()
	env := eventlog.Envelope{Kind: eventlog.KindCommand, Account: account}
	if err := p.node.stamp(&env); err != nil {
		return nil, err
	}
	var out resolver.Outcome
	if err := p.submit(ctx, env, eventlog.AppendCommand(env.Append(nil), name, must.JSON(args)), &out); err != nil {
		return nil, err
	}
	if out.Refusal != nil {
		return nil, out.Refusal
	}
	return out.Reply, nil
}
