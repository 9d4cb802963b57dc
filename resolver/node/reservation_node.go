package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/reservation"
)

// startDirectoryClient begins to send to the directory. It returns nil where a single
// partition knows all e-mails.
func startDirectoryClient(n *Node) *directoryClient {
	if n.Partitions() == 1 {
		return nil
	}
	e := new(directoryClient)
	e.reserves = newEmailBatches(emaildir.MaxItems, func(ctx context.Context, items []emaildir.Ask) ([]emaildir.Answered, error) {
		reply, err := n.callDirectory(ctx, emaildir.CommandReserve, emaildir.Reserve{Items: items})
		if err != nil {
			return nil, err
		}
		var out emaildir.Reserved
		if err := json.Unmarshal(reply, &out); err != nil || len(out.Items) != len(items) {
			return nil, fmt.Errorf("%w: the directory of e-mails answered %d of %d items: %w", resolver.ErrUnavailable, len(out.Items), len(items), err)
		}
		return out.Items, nil
	})
	e.confirms = newEmailBatches(emaildir.MaxItems, func(ctx context.Context, items []emaildir.Confirmed) ([]struct{}, error) {
		_, err := n.callDirectory(ctx, emaildir.CommandConfirm, emaildir.Confirm{Items: items})
		return make([]struct{}, len(items)), err
	})
	e.releases = newEmailBatches(emaildir.MaxItems, func(ctx context.Context, items []emaildir.Names) ([]struct{}, error) {
		_, err := n.callDirectory(ctx, emaildir.CommandRelease, emaildir.Release{Items: items})
		return make([]struct{}, len(items)), err
	})
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	for _, run := range []func(context.Context){e.reserves.run, e.confirms.run, e.releases.run} {
		e.done.Go(func() { run(ctx) })
	}
	return e
}

// close ends the sending. What was not sent is reconciled by the directory.
func (e *directoryClient) close() {
	if e != nil {
		e.stop()
		e.done.Wait()
	}
}

// carryOut submits a record. Where there are several partitions, a command that may
// give a contact an e-mail reserves it first.
func (p *partition) carryOut(ctx context.Context, env eventlog.Envelope, rec []byte, out *resolver.Outcome) error {
	if p.node.directory == nil || env.Kind != eventlog.KindCommand {
		return p.submit(ctx, env, rec, out)
	}
	c, err := contacts.ParseEmailCommand(rec)
	switch {
	case err != nil:
		return err
	case c == nil:
		return p.submit(ctx, env, rec, out)
	}
	return reservation.Do(ctx, nodeEmails{p, out}, env, c)
}

// nodeEmails is the [reservation.Host] of one command to a partition that is here. The answer
// to the command goes to out.
type nodeEmails struct {
	p   *partition
	out *resolver.Outcome
}

func (w nodeEmails) Stamp(env *eventlog.Envelope) error {
	id := env.ID
	err := w.p.node.stamp(env)
	if id != (eventlog.RecordID{}) {
		env.ID = id
	}
	return err
}

func (w nodeEmails) NewReservation() (id emaildir.ReservationID, err error) {
	if _, err = io.ReadFull(w.p.node.opts.Rand, id[:]); err != nil {
		err = fmt.Errorf("random source: %w", err)
	}
	return id, err
}

func (w nodeEmails) Missing(account uint64, c *contacts.EmailCommand) (take, check []emaildir.Name, err error) {
	w.p.mu.Lock() // not RLock: the machine's scratch memory is used
	defer w.p.mu.Unlock()
	if err := w.p.readable(); err != nil {
		return nil, nil, err
	}
	take, check = w.p.mu.m.MissingEmail(account, c)
	return take, check, nil
}

func (w nodeEmails) Reserve(ctx context.Context, ask emaildir.Ask) (emaildir.Answered, error) {
	return w.p.node.directory.reserves.do(ctx, ask)
}

func (w nodeEmails) Submit(ctx context.Context, env eventlog.Envelope, rec []byte) (*refuse.Refusal, error) {
	err := w.p.submit(ctx, env, rec, w.out)
	return w.out.Refusal, err
}

func (w nodeEmails) Held(account uint64, id emaildir.ReservationID, names []emaildir.Name) ([]emaildir.Name, error) {
	w.p.mu.RLock()
	defer w.p.mu.RUnlock()
	if err := w.p.readable(); err != nil {
		return nil, err
	}
	return w.p.mu.m.EmailDirectory().HeldUnder(account, id, names), nil
}

func (w nodeEmails) Confirm(x emaildir.Confirmed) { w.p.node.directory.confirms.post(x) }

func (w nodeEmails) Release(x emaildir.Names) { w.p.node.directory.releases.post(x) }

// The pauses between attempts: another node that makes the same contact is done within
// milliseconds. What a node left half done takes until it is reconciled, which is not waited
// for.
const (
	takeAttempts = 12
	takePause    = 10 * time.Millisecond
	takePauseMax = 500 * time.Millisecond
)

func (w nodeEmails) Pause(ctx context.Context, attempt int) error {
	if attempt >= takeAttempts {
		return reservation.ErrUndecided
	}
	t := time.NewTimer(min(takePause<<(attempt-1), takePauseMax))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", reservation.ErrUndecided, ctx.Err())
	case <-w.p.position.ended:
		return w.p.StopErr()
	case <-w.p.failed.Done():
		return w.p.failed.unavailable()
	}
}

// callDirectory sends a command to the directory until it is carried out.
func (n *Node) callDirectory(ctx context.Context, name string, args any) (reply []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, emailTimeout)
	defer cancel()
	for attempt := range directoryAttempts {
		if attempt > 0 {
			if pause.For(ctx, directoryPause<<attempt) != nil {
				return nil, err
			}
		}
		if reply, err = n.Command(ctx, 0, name, args); err == nil {
			return reply, nil
		}
	}
	if errors.Is(err, resolver.ErrOverloaded) && !errors.Is(err, resolver.ErrUnavailable) {
		return nil, err
	}
	// Not wrapped: that the directory is not served where it was looked for says
	// nothing of the account's partition.
	return nil, fmt.Errorf("%w: the directory of e-mails cannot be reached: %v", resolver.ErrUnavailable, err)
}
