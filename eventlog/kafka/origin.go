package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/musterhq/muster/eventlog"
)

// originNow returns the partition's origin. It finds it out the first time, for as
// long as ctx allows.
func (p *partition) originNow(ctx context.Context) (*origin, error) {
	if o := p.origin.Load(); o != nil {
		return o, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.log.ctx, cancel)()
	var wait backoff
	for {
		o, err := p.findOrigin(ctx)
		if err == nil {
			p.log.trouble.over(p.id, onOffsets)
			// A concurrent call has found the same.
			p.origin.CompareAndSwap(nil, o)
			return p.origin.Load(), nil
		}
		if ctx.Err() == nil {
			p.log.trouble.met(p.id, onOffsets, err)
		}
		var damage *eventlog.CorruptError
		if p.log.ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", eventlog.ErrClosed, err)
		}
		if errors.As(err, &damage) || errors.Is(err, errOtherBase) || refused(err) || p.pause(ctx, &wait) != nil {
			return nil, fmt.Errorf("find where topic %s, partition %d begins: %w", p.log.opts.Topic, p.id, err)
		}
	}
}

// errOtherBase: a topic is not the one that was there before.
var errOtherBase = errors.New("the topic was created again since, or is another one")

func (p *partition) findOrigin(ctx context.Context) (*origin, error) {
	start, end, err := p.listOffsets(ctx)
	if err != nil {
		return nil, err
	}
	expected := p.log.opts.Base
	if start == end {
		if end > 0 && expected != nil && *expected > 0 {
			// Retention took everything.
			return originOf(*expected), nil
		}
		if expected != nil && *expected > 0 {
			return nil, fmt.Errorf("%w: partition %d is empty, this directory knows it with records from %d on", errOtherBase, p.id, *expected)
		}
		return &origin{}, nil
	}
	r := &Reader{p: p, raw: true, next: start}
	r.scan.inflateLimit = p.log.inflateLimit()
	defer r.Close()
	if _, err := r.Next(ctx); err != nil {
		return nil, err
	}
	base, found, err := decodeBase(r.scan.key)
	switch {
	case err != nil:
		return nil, p.corrupt(0, &fault{reason: err.Error()})
	case expected != nil && base != *expected:
		return nil, fmt.Errorf("%w: its records count from %d, this directory knows it with records from %d on", errOtherBase, base, *expected)
	case found:
		return originOf(base), nil
	}
	return &origin{}, nil
}

// Base is the offset that a topic's records count from when the log was moved
// there, 0 for one that began there. All partitions have the same.
func (l *Log) Base(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.opts.AppendTimeout)
	defer cancel()
	var base int64
	for i, p := range l.partitions {
		o, err := p.originNow(ctx)
		if err != nil {
			return 0, err
		}
		if i > 0 && o.base() != base {
			return 0, fmt.Errorf("partition %d of topic %s counts from record %d, partition 0 from %d: the log was not moved to it completely. Run muster migrate again", p.id, l.opts.Topic, o.base(), base)
		}
		base = o.base()
	}
	return base, nil
}

// ErrNotEmpty says that a topic has records, so that no log can be moved there.
var ErrNotEmpty = errors.New("the topic has records")

// Begin makes base the offset of the first record of every partition. The topic
// must have no records but those that an earlier Begin with the same base left;
// else the error is [ErrNotEmpty], and nothing is written. No other program may use
// the topic before.
func (l *Log) Begin(ctx context.Context, base int64) error {
	if base < 0 {
		return fmt.Errorf("base %d is negative", base)
	}
	ctx, cancel := context.WithTimeout(ctx, l.opts.AppendTimeout)
	defer cancel()
	empty, err := l.empty(ctx, base)
	if err != nil {
		return err
	}
	for _, p := range empty {
		p.origin.Store(originOf(base))
		off, err := l.Append(ctx, p.id, baseRecord(base))
		switch {
		case err != nil:
			p.origin.Store(nil)
			return fmt.Errorf("write where topic %s, partition %d begins: %w", l.opts.Topic, p.id, err)
		case off != base-1 && off != base: // the second when the request was repeated
			p.origin.Store(nil)
			return fmt.Errorf("%w: another program has written to topic %s, partition %d, meanwhile", ErrNotEmpty, l.opts.Topic, p.id)
		}
	}
	return nil
}

// CanBegin reports whether Begin would find what it needs. A base below 0 is none:
// then the topic must have no records at all. The error is as that of Begin.
func (l *Log) CanBegin(ctx context.Context, base int64) error {
	ctx, cancel := context.WithTimeout(ctx, l.opts.AppendTimeout)
	defer cancel()
	_, err := l.empty(ctx, base)
	return err
}

// empty lists the partitions without a record. The others begin with the base.
func (l *Log) empty(ctx context.Context, base int64) (list []*partition, err error) {
	for _, p := range l.partitions {
		begun, err := p.begun(ctx, base)
		if err != nil {
			return nil, err
		}
		if !begun {
			list = append(list, p)
		}
	}
	return list, nil
}

// begun reports whether the partition begins with the base already. It fails with
// ErrNotEmpty when there is anything else.
func (p *partition) begun(ctx context.Context, base int64) (bool, error) {
	// A topic made just now may have no leader yet.
	o, err := p.originNow(ctx)
	if err != nil {
		return false, err
	}
	start, end, err := p.listOffsets(ctx)
	if err != nil {
		return false, fmt.Errorf("topic %s, partition %d: %w", p.log.opts.Topic, p.id, err)
	}
	if end == 0 {
		return false, nil
	}
	if start > 0 || end > 2 || o.key == nil || o.base() != base {
		return false, fmt.Errorf("%w: partition %d of topic %s ends at offset %d", ErrNotEmpty, p.id, p.log.opts.Topic, end)
	}
	if end == 2 {
		r := &Reader{p: p, raw: true, next: 1}
		r.scan.inflateLimit = p.log.inflateLimit()
		defer r.Close()
		e, err := r.Next(ctx)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(e.Data, baseRecord(base)) {
			return false, fmt.Errorf("%w: partition %d of topic %s has one behind its base record", ErrNotEmpty, p.id, p.log.opts.Topic)
		}
	}
	return true, nil
}
