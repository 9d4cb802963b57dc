package resolver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// ReserveFor is for how long an e-mail is reserved that is not confirmed.
const ReserveFor = time.Minute

// MissingEmail tells what the directory must be asked for before a command can give a
// contact its e-mail: nothing when the account's partition decides by itself. It
// guesses: the state moves on until the command is applied. It uses the machine's scratch
// memory, so the caller keeps readers out, too.
func (m *Machine) MissingEmail(account uint64, c *contacts.EmailCommand) (take, check []emaildir.Name) {
	a, email := m.accounts[account], c.Email()
	if a == nil {
		return nil, nil
	}
	except := profile.NoOrdinal
	if id, ok := c.Changes(); ok {
		if except, ok = a.ResolveText(id); !ok {
			return nil, nil
		}
	}
	if h, ok := a.Profiles.Hasher.HashIdentifier(IdentityEmail, []byte(email), &m.normal); ok && a.Profiles.Identifiers.Owner(h) != profile.NoOrdinal || m.hasEmail(a, email, except) {
		return nil, nil
	}
	if take = m.namesToReserve(a, email); len(take) == 0 {
		return nil, nil
	}
	for _, n := range emaildir.NamesToCheck(a.Profiles.Hasher, email, &m.normal) {
		check = append(check, emaildir.Name(n))
	}
	return take, check
}

// EmailWay is how the one who gives a contact an e-mail reaches the directory and
// the account's partition, which is here.
type EmailWay interface {
	// Stamp gives a record its time and, unless it has one, its id.
	Stamp(env *eventlog.Envelope) error
	// NewReservation draws an id that no reservation has had.
	NewReservation() (emaildir.ReservationID, error)
	// Missing is [Machine.MissingEmail] of the account's partition.
	Missing(account uint64, c *contacts.EmailCommand) (take, check []emaildir.Name, err error)
	// Reserve asks the directory for what is missing.
	Reserve(ctx context.Context, ask emaildir.Ask) (emaildir.Answered, error)
	// Submit has the errors of the node's Submit.
	Submit(ctx context.Context, env eventlog.Envelope, rec []byte, out *Outcome) error
	// Held is [emaildir.State.HeldUnder] of the account's partition.
	Held(account uint64, id emaildir.ReservationID, names []emaildir.Name) ([]emaildir.Name, error)
	// Confirm and Release are done in the background; if not, they are settled.
	Confirm(x emaildir.Confirmed)
	Release(x emaildir.Names)
	// Pause waits before another attempt; its error says that there is none.
	Pause(ctx context.Context, attempt int) error
}

// ErrUndecided ends the attempts to reserve an e-mail.
var ErrUndecided = fmt.Errorf("%w: it is not decided yet who has this e-mail; try again in a minute", ErrUnavailable)

// TakeEmail carries out a command that may give a contact an e-mail. It may stop at
// any step: see [emaildir.Settle].
func TakeEmail(ctx context.Context, w EmailWay, env eventlog.Envelope, c *contacts.EmailCommand, out *Outcome) error {
	for attempt := 0; ; attempt++ {
		if attempt > 0 {
			if err := w.Pause(ctx, attempt); err != nil {
				return err
			}
			env.ID = eventlog.RecordID{} // the record before was refused, or not stored
		}
		if err := w.Stamp(&env); err != nil {
			return err
		}
		g, at, again, err := reserveFirst(ctx, w, env, c)
		if err != nil {
			return err
		}
		if again {
			continue
		}
		if err := w.Stamp(&env); err != nil {
			return err
		}
		err = w.Submit(ctx, env, eventlog.AppendCommand(env.Append(nil), c.Name(), c.Args(g)), out)
		if len(g.Names) > 0 && (err == nil || errors.Is(err, ErrOverloaded) || errors.Is(err, ErrNotOwner)) {
			// What the account holds now is decided, whatever the answer was: it may be
			// that to a repetition. With the errors nothing was stored.
			finishEmail(w, env.Account, g, at, err == nil)
		}
		if err != nil || out.Refusal == nil || out.Refusal.Code != codeUnreserved && out.Refusal.Code != codeExpired {
			return err
		}
	}
}

// reserveFirst reserves what the command needs; at is as in [emaildir.Answered]. again
// means that this is not decided yet.
func reserveFirst(ctx context.Context, w EmailWay, env eventlog.Envelope, c *contacts.EmailCommand) (g emaildir.Grant, at int64, again bool, err error) {
	take, check, err := w.Missing(env.Account, c)
	if err != nil || len(take) == 0 {
		return g, 0, false, err
	}
	ask := emaildir.Ask{Account: env.Account, Take: take, Check: check, UntilMs: env.StampMs + ReserveFor.Milliseconds()}
	if ask.ID, err = w.NewReservation(); err != nil {
		return g, 0, false, err
	}
	got, err := w.Reserve(ctx, ask)
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
		return g, 0, false, fmt.Errorf("%w: %d e-mails are reserved and not settled", ErrOverloaded, emaildir.MaxReserved)
	case answer == emaildir.Ahead:
		return g, 0, false, fmt.Errorf("%w: this node's clock is ahead of the others'; set it right", ErrUnavailable)
	}
	return g, 0, true, nil
}

// finishEmail tells the directory what became of a reservation.
func finishEmail(w EmailWay, account uint64, g emaildir.Grant, at int64, applied bool) {
	var held []emaildir.Name
	if applied {
		var err error
		if held, err = w.Held(account, g.ID, g.Names); err != nil {
			return // it is settled
		}
	}
	if len(held) > 0 && at != 0 {
		w.Confirm(emaildir.Confirmed{ID: g.ID, At: at})
	}
	if rest := emaildir.Without(g.Names, held); len(rest) > 0 {
		w.Release(emaildir.Names{Account: account, ID: g.ID, Names: rest})
	}
}
