package resolver

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// redactingLog is a log from whose records bytes can be taken out. Roll lets the next
// record begin a new file: only what is before it can be redacted.
type redactingLog interface {
	Roll(partition int) error
	Redact(ctx context.Context, partition int, list []eventlog.Redaction) error
}

const (
	// redactBytes bounds what is held of redactions before they are carried out.
	redactBytes = 16 << 20
	// The scan of the log rests for a while after so many bytes, so that it does not
	// keep a processor to itself.
	redactRestBytes = 8 << 20
	redactRest      = 5 * time.Millisecond
)

// redact takes the persons of a batch out of the log, and what was refused because of
// erased persons. It reads the log from its start, since nothing tells where they are,
// and may be repeated.
func (p *partition) redact(ctx context.Context, log redactingLog, b *erasureBatch) error {
	start, _, err := p.node.opts.Log.Bounds(ctx, p.id)
	if err != nil {
		return err
	}
	end := b.refused.UpTo
	if b.erasures == 0 {
		start = max(start, b.refused.From)
	}
	for _, t := range b.tasks {
		end = max(end, t.UpTo)
	}
	r, err := p.redactor(b)
	if err != nil || start >= end {
		return err
	}
	reader, err := p.node.opts.Log.Read(p.id, start)
	if err != nil {
		return err
	}
	defer reader.Close()
	var list []eventlog.Redaction
	held, read := 0, 0
	flush := func() error {
		defer func() { list, held = nil, 0 }()
		err := log.Redact(ctx, p.id, list)
		if !errors.Is(err, eventlog.ErrBeingWritten) {
			return err
		}
		if err := p.roll(ctx, log); err != nil {
			return err
		}
		return log.Redact(ctx, p.id, list)
	}
	for offset := start; offset < end; offset++ {
		e, err := reader.Next(ctx)
		if err != nil {
			return err
		}
		if p.node.skipped(p.id, e.Offset) {
			continue
		}
		splices, err := r.record(e.Offset, e.Data)
		if err != nil {
			return err
		}
		if splices != nil {
			list = append(list, eventlog.Redaction{Offset: e.Offset, Splices: splices})
			for _, s := range splices {
				held += len(s.New) + 64
			}
		}
		if held > redactBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		if read += len(e.Data); read > redactRestBytes {
			read = 0
			p.pause(ctx, redactRest)
		}
	}
	return flush()
}

// roll ends the file that the log writes to: the next record begins another.
func (p *partition) roll(ctx context.Context, log redactingLog) error {
	if err := log.Roll(p.id); err != nil {
		return err
	}
	env := eventlog.Envelope{Kind: eventlog.KindContinue}
	if err := p.node.stamp(&env); err != nil {
		return err
	}
	var out Outcome
	return p.submit(ctx, env, env.Append(nil), &out)
}

// redactor is one for a batch, as of now. It looks at the partition while it is used.
func (p *partition) redactor(b *erasureBatch) (*redactor, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.mu.m == nil {
		return nil, p.gone()
	}
	a := p.mu.m.accounts[b.account]
	r := newRedactor(a)
	look := func(fn func(a *account)) {
		p.mu.RLock()
		defer p.mu.RUnlock()
		if p.mu.m != nil {
			fn(p.mu.m.accounts[b.account])
		}
	}
	r.owner = func(h identifier.Hash) (o uint32) {
		look(func(a *account) { o = a.ids.Owner(h) })
		return o
	}
	r.shows = func(o uint32, kind IdentityKind, h identifier.Hash) (shows bool, err error) {
		look(func(a *account) { shows, err = p.mu.m.shows(a, o, kind, h) })
		return shows, err
	}
	r.whose = func(id string) (o uint32, ok bool) {
		look(func(a *account) { o, ok = a.ordinalOf(id) })
		return o, ok
	}
	r.gone = func(o uint32) (gone bool) {
		look(func(a *account) { gone = a.isGone(o) })
		return gone
	}
	marks := make(map[identifier.Hash]int64, len(a.erasures))
	for h, x := range a.erasures {
		marks[h] = x.At
	}
	r.marked = func(h identifier.Hash) (int64, bool) {
		at, ok := marks[h]
		return at, ok
	}
	return r, r.erase(b.tasks, a.erasures)
}

// shows reports whether the live profile that an ordinal leads to shows an identifier. It
// uses no scratch of m.
func (m *Machine) shows(a *account, o uint32, kind IdentityKind, h identifier.Hash) (bool, error) {
	b, err := m.store.Peek(a.name(), a.root(o))
	if err != nil {
		return false, err
	}
	var d profile.Document
	if err := d.Decode(b); err != nil {
		return false, err
	}
	return a.shown(&Machine{}, &d, kind, h) >= 0, nil
}

// isGone is gone of an ordinal that need not be one.
func (a *account) isGone(o uint32) bool { return o < a.headers.Count && a.gone(o) }

// ordinalOf is the ordinal that an id carries, of whoever is left of it.
func (a *account) ordinalOf(id string) (uint32, bool) {
	x, ok := ParseProfileID(id)
	if !ok {
		return 0, false
	}
	o := x.Ordinal()
	return o, o < a.headers.Count && a.headers.Get(o).ID == x
}

// keepOut takes out of a record, before it is stored, what the state machine refuses
// because of erased persons. A command that it refuses is not stored at all. An
// erasure that comes between is seen to afterwards, see noteRefused.
func (p *partition) keepOut(env eventlog.Envelope, rec []byte) ([]byte, *Refusal, error) {
	if p.erasedCount.Load() == 0 {
		return rec, nil, nil
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.mu.m == nil {
		return rec, nil, nil // told by who submits it
	}
	a := p.mu.m.accounts[env.Account]
	if a == nil || len(a.erasures) == 0 {
		return rec, nil, nil
	}
	r := newRedactor(a)
	r.owner = a.ids.Owner
	r.shows = func(o uint32, kind IdentityKind, h identifier.Hash) (bool, error) { return p.mu.m.shows(a, o, kind, h) }
	r.whose, r.gone = a.ordinalOf, a.isGone
	r.marked = func(h identifier.Hash) (int64, bool) {
		x, ok := a.erasures[h]
		return x.At, ok
	}
	x := eventlog.Redaction{}
	var err error
	if x.Splices, err = r.record(math.MaxInt64, rec); err != nil || x.Splices == nil {
		return rec, nil, err
	}
	if r.keptOut {
		return nil, ownField(refuseErased(r.keptOutKind)), nil
	}
	now, _ := x.Apply(make([]byte, 0, len(rec)), rec)
	return now, nil, nil
}
