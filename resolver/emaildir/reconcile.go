package emaildir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// CommandFunc submits a command and returns its reply.
type CommandFunc func(ctx context.Context, account uint64, name string, args any) ([]byte, error)

// ReleaseNames releases names at the directory and then takes them off the
// partition's queue.
func ReleaseNames(ctx context.Context, list []Names, directory, own CommandFunc) error {
	if _, err := directory(ctx, 0, CommandRelease, Release{list}); err != nil {
		return fmt.Errorf("call the directory of e-mails: %w", err)
	}
	if _, err := own(ctx, 0, CommandReleased, Released{list}); err != nil {
		return fmt.Errorf("forget what was released: %w", err)
	}
	return nil
}

// ReconcileDue asks for what became of reservations, account by account, and tells the
// directory. A partition that does not answer does not keep others from it.
func ReconcileDue(ctx context.Context, due map[uint64][]Names, partitionOf func(account uint64) int, accounts, directory CommandFunc) error {
	var faults error
	silent := map[int]bool{}
	for _, account := range slices.Sorted(maps.Keys(due)) {
		if silent[partitionOf(account)] {
			continue
		}
		for list := range slices.Chunk(due[account], MaxItems/maxEmailNames) {
			reached, err := reconcileAccount(ctx, account, list, accounts, directory)
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

// reconcileAccount reconciles reservations of one account. reached reports whether the account's
// partition answered.
func reconcileAccount(ctx context.Context, account uint64, list []Names, accounts, directory CommandFunc) (reached bool, err error) {
	reply, err := accounts(ctx, account, CommandReconcile, Reconcile{list})
	if err != nil {
		return false, fmt.Errorf("ask what account %016x holds: %w", account, err)
	}
	var out Reconciled
	if err := json.Unmarshal(reply, &out); err != nil || len(out.Held) != len(list) {
		return true, fmt.Errorf("answer to %s of account %016x has %d items, expected %d: %w", CommandReconcile, account, len(out.Held), len(list), err)
	}
	var confirm Confirm
	var release Release
	for i, x := range list {
		if len(out.Held[i]) > 0 {
			confirm.Items = append(confirm.Items, Confirmed{x.ID, x.at})
		}
		if rest := Without(x.Names, out.Held[i]); len(rest) > 0 {
			release.Items = append(release.Items, Names{Account: account, ID: x.ID, Names: rest})
		}
	}
	if len(release.Items) > 0 {
		if _, err := directory(ctx, 0, CommandRelease, release); err != nil {
			return true, fmt.Errorf("release what was reserved: %w", err)
		}
	}
	if len(confirm.Items) > 0 {
		if _, err := directory(ctx, 0, CommandConfirm, confirm); err != nil {
			return true, fmt.Errorf("confirm what was reserved: %w", err)
		}
	}
	return true, nil
}
