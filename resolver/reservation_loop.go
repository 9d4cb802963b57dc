package resolver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
)

// The pace of what follows reservations.
const (
	reconcilePause  = time.Second            // between two looks for what is due
	reconcileGrace  = time.Second            // for a clock that is behind this one
	releasePause    = 100 * time.Millisecond // between two records
	releaseRetryMax = 10 * time.Second       // after a failure
	emailTimeout    = 10 * time.Second       // of one command
)

// ask submits a command and returns its reply.
type ask func(ctx context.Context, account uint64, name string, args any) ([]byte, error)

// releaseLoop tells the directory of e-mails that are free again. They are in the
// state until it has confirmed, so that this goes on after a crash.
func (p *partition) releaseLoop(ctx context.Context) {
	defer p.done.Done()
	wait := releasePause
	for ctx.Err() == nil {
		changed := p.progress.Wait()
		p.mu.RLock()
		list := p.mu.m.releasesWaiting()
		p.mu.RUnlock()
		if len(list) == 0 {
			wait = releasePause
			select {
			case <-changed:
				p.pause(ctx, releasePause)
			case <-ctx.Done():
			case <-p.failed:
				return
			}
			continue
		}
		switch err := releaseWaiting(ctx, list, p.node.command, p.command); {
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

// releaseWaiting releases names at the directory and then takes them off the
// partition's queue.
func releaseWaiting(ctx context.Context, list []EmailNames, directory, own ask) error {
	if _, err := directory(ctx, 0, CommandEmailRelease, EmailRelease{list}); err != nil {
		return fmt.Errorf("tell the directory of e-mails: %w", err)
	}
	if _, err := own(ctx, 0, CommandEmailReleased, EmailReleased{list}); err != nil {
		return fmt.Errorf("forget what was released: %w", err)
	}
	return nil
}

// reconcileLoop settles reservations that were not confirmed or released in time.
// It runs with the directory.
func (p *partition) reconcileLoop(ctx context.Context) {
	defer p.done.Done()
	for ctx.Err() == nil {
		changed := p.progress.Wait()
		p.mu.RLock()
		open := len(p.mu.m.emails.reserved)
		due := p.mu.m.reservationsDue(p.node.opts.Now().Add(-reconcileGrace).UnixMilli())
		p.mu.RUnlock()
		if open == 0 {
			select {
			case <-changed:
			case <-ctx.Done():
			case <-p.failed:
				return
			}
		}
		if len(due) > 0 {
			if err := reconcileDue(ctx, due, p.node.PartitionOf, p.node.command, p.command); err != nil && ctx.Err() == nil {
				p.log.Warn("reserved e-mails are not settled yet; trying again", "error", err)
			}
		}
		p.pause(ctx, reconcilePause)
	}
}

// reconcileDue asks for what became of reservations, account by account, and tells the
// directory. A partition that does not answer does not keep others from it.
func reconcileDue(ctx context.Context, due map[uint64][]EmailNames, partitionOf func(account uint64) int, accounts, directory ask) error {
	var faults error
	silent := map[int]bool{}
	for _, account := range sortedKeys(due) {
		if silent[partitionOf(account)] {
			continue
		}
		for list := range slices.Chunk(due[account], maxEmailItems/maxEmailNames) {
			reached, err := reconcile(ctx, account, list, accounts, directory)
			if err != nil {
				faults = errors.Join(faults, err)
				if !reached {
					silent[partitionOf(account)] = true
				}
				break
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return faults
}

// reconcile settles reservations of one account. reached reports whether the account's
// partition answered.
func reconcile(ctx context.Context, account uint64, list []EmailNames, accounts, directory ask) (reached bool, err error) {
	reply, err := accounts(ctx, account, CommandEmailSettle, EmailSettle{list})
	if err != nil {
		return false, fmt.Errorf("ask what account %016x holds: %w", account, err)
	}
	var out EmailSettled
	if err := json.Unmarshal(reply, &out); err != nil || len(out.Held) != len(list) {
		return true, fmt.Errorf("answer to %s of account %016x has %d items, expected %d: %w", CommandEmailSettle, account, len(out.Held), len(list), err)
	}
	var confirm EmailConfirm
	var release EmailRelease
	for i, x := range list {
		if len(out.Held[i]) > 0 {
			confirm.Items = append(confirm.Items, EmailConfirmed{x.ID, x.at})
		}
		if rest := without(x.Names, out.Held[i]); len(rest) > 0 {
			release.Items = append(release.Items, EmailNames{Account: account, ID: x.ID, Names: rest})
		}
	}
	if len(release.Items) > 0 {
		if _, err := directory(ctx, 0, CommandEmailRelease, release); err != nil {
			return true, fmt.Errorf("release what was reserved: %w", err)
		}
	}
	if len(confirm.Items) > 0 {
		if _, err := directory(ctx, 0, CommandEmailConfirm, confirm); err != nil {
			return true, fmt.Errorf("confirm what was reserved: %w", err)
		}
	}
	return true, nil
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
	var out Outcome
	if err := p.submit(ctx, env, eventlog.AppendCommand(env.Append(nil), name, must.JSON(args)), &out); err != nil {
		return nil, err
	}
	if out.Refusal != nil {
		return nil, out.Refusal
	}
	return out.Reply, nil
}
