// Package reservation carries out commands that may give a contact an e-mail. Where a log has
// several partitions, the directory of e-mails is in one of them: the e-mail is reserved there
// first, then the command goes to the account's partition, and then the reservation is
// confirmed or released. What stops in between is reconciled later, see [emaildir.Reconcile].
package reservation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// For is for how long an e-mail is reserved that is not confirmed.
const For = time.Minute

// The codes of refusals after which the command is tried again with a new reservation.
const (
	CodeUnreserved = "unreserved" // of a name for which the command has no grant
	CodeExpired    = "expired"    // grant
)

// Host is the node that carries out the command: how it reaches the directory and the
// account's partition, which is there.
type Host interface {
	// Stamp gives a record its time and, unless it has one, its id.
	Stamp(env *eventlog.Envelope) error
	// NewReservation draws an id that no reservation has had.
	NewReservation() (emaildir.ReservationID, error)
	// Missing is MissingEmail of the machine of the account's partition.
	Missing(account uint64, c *contacts.EmailCommand) (take, check []emaildir.Name, err error)
	// Reserve asks the directory for what is missing.
	Reserve(ctx context.Context, ask emaildir.Ask) (emaildir.Answered, error)
	// Submit stores and applies a record, and returns why it was refused. It has the errors of
	// the node's Submit.
	Submit(ctx context.Context, env eventlog.Envelope, rec []byte) (refusal *refuse.Refusal, err error)
	// Held is [emaildir.State.HeldUnder] of the account's partition.
	Held(account uint64, id emaildir.ReservationID, names []emaildir.Name) ([]emaildir.Name, error)
	// Confirm and Release are done in the background; if not, they are reconciled.
	Confirm(x emaildir.Confirmed)
	Release(x emaildir.Names)
	// Pause waits before another attempt; its error says that there is none.
	Pause(ctx context.Context, attempt int) error
}

// ErrUndecided ends the attempts to reserve an e-mail.
var ErrUndecided = fmt.Errorf("%w: it is not decided yet which contact has this e-mail; try again in a minute", feed.ErrUnavailable)

// Do carries out a command that may give a contact an e-mail. It may stop at
// any step: see [emaildir.Reconcile].
func Do(ctx context.Context, h Host, env eventlog.Envelope, c *contacts.EmailCommand) error {
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			if err := h.Pause(ctx, attempt); err != nil {
				return err
			}
			env.ID = eventlog.RecordID{} // the record before was refused, or not stored
		}
		if err := h.Stamp(&env); err != nil {
			return err
		}
		g, at, again, err := reserve(ctx, h, env, c)
		if err != nil {
			return err
		}
		if again {
			continue
		}
		if err := h.Stamp(&env); err != nil {
			return err
		}
		refusal, err := h.Submit(ctx, env, eventlog.AppendCommand(env.Append(nil), c.Name(), c.Args(g)))
		if len(g.Names) > 0 && (err == nil || errors.Is(err, refuse.ErrOverloaded) || errors.Is(err, refuse.ErrNotOwner)) {
			// What the account holds now is decided, whatever the answer was: it may be
			// that to a repetition. With the errors nothing was stored.
			finish(h, env.Account, g, at, err == nil)
		}
		if err != nil || refusal == nil || refusal.Code != CodeUnreserved && refusal.Code != CodeExpired {
			return err
		}
	}
}

// reserve reserves what the command needs; at is as in [emaildir.Answered]. again
// means that this is not decided yet.
func reserve(ctx context.Context, h Host, env eventlog.Envelope, c *contacts.EmailCommand) (g emaildir.Grant, at int64, again bool, err error) {
	take, check, err := h.Missing(env.Account, c)
	if err != nil || len(take) == 0 {
		return g, 0, false, err
	}
	ask := emaildir.Ask{Account: env.Account, Take: take, Check: check, UntilMs: env.StampMs + For.Milliseconds()}
	if ask.ID, err = h.NewReservation(); err != nil {
		return g, 0, false, err
	}
	got, err := h.Reserve(ctx, ask)
	switch answer := got.Answer; {
	case err != nil:
		return g, 0, false, err
	case answer == emaildir.Granted:
		return emaildir.Grant{ID: ask.ID, Names: take, UntilMs: ask.UntilMs}, got.At, false, nil
	case answer == emaildir.Taken:
		// Not refused here: the account's partition has its own reasons, which come
		// first.
		return emaildir.Grant{Taken: true}, 0, false, nil
	case answer == emaildir.Full:
		return g, 0, false, fmt.Errorf("%w: %d e-mails are reserved and not reconciled", refuse.ErrOverloaded, emaildir.MaxReserved)
	case answer == emaildir.Ahead:
		return g, 0, false, fmt.Errorf("%w: this node's clock is ahead of the others'; set it right", feed.ErrUnavailable)
	}
	return g, 0, true, nil
}

// finish reports the outcome of a reservation to the directory.
func finish(h Host, account uint64, g emaildir.Grant, at int64, applied bool) {
	var held []emaildir.Name
	if applied {
		var err error
		if held, err = h.Held(account, g.ID, g.Names); err != nil {
			return // it is reconciled
		}
	}
	if len(held) > 0 && at != 0 {
		h.Confirm(emaildir.Confirmed{ID: g.ID, At: at})
	}
	if rest := emaildir.Without(g.Names, held); len(rest) > 0 {
		h.Release(emaildir.Names{Account: account, ID: g.ID, Names: rest})
	}
}
