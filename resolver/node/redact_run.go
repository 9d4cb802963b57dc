package node

import (
	"context"
	"errors"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/redact"
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
	// The scan of the log pauses for a while after so many bytes, so that it does not
	// keep a processor to itself.
	redactThrottleBytes = 8 << 20
	redactThrottlePause = 5 * time.Millisecond
)

// redact takes the persons of a batch out of the log, and what was refused because of
// erased persons. It reads the log from its start, since nothing tells where they are,
// and may be repeated.
func (p *partition) redact(ctx context.Context, log redactingLog, b *erasure.Batch) error {
	start, _, err := p.node.opts.Log.Bounds(ctx, p.id)
	if err != nil {
		return err
	}
	start, end := b.LogRange(start)
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
		if err := p.failed.Err(); err != nil {
			return err // r may have judged by what a record did in part
		}
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
		splices, err := r.Record(e.Offset, e.Data)
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
		if read += len(e.Data); read > redactThrottleBytes {
			read = 0
			p.pause(ctx, redactThrottlePause)
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
	var out resolver.Outcome
	return p.submit(ctx, env, env.Append(nil), &out)
}

// redactor is one for a batch, as of now. It looks at the partition while it is used.
func (p *partition) redactor(b *erasure.Batch) (*redact.Redactor, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.readable(); err != nil {
		return nil, err
	}
	return p.mu.m.Redactor(b, func(fn func()) { p.with(func(*resolver.Machine) { fn() }) })
}

// keepOut is [resolver.Machine.KeepOut] of a record that is about to be stored. If the
// person is erased in between, Apply notes the record: see [erasure.State.NoteRefused].
func (p *partition) keepOut(env eventlog.Envelope, rec []byte) ([]byte, *resolver.Refusal, error) {
	if p.published.stats.Load().Erased == 0 {
		return rec, nil, nil
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.mu.m == nil {
		return rec, nil, nil // told by who submits it
	}
	return p.mu.m.KeepOut(env, rec)
}
