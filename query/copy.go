package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
)

// Exporter is a history that can be read as a whole, to be moved elsewhere.
type Exporter interface {
	// Export calls fn with the rows of the partition's records from ≤ offset <
	// cut.UpTo, in batches of consecutive records that follow each other from
	// `from` to the cut. A batch is reused: it is valid during the call only. An
	// error of fn ends the export and is returned.
	Export(ctx context.Context, cut Cut, from int64, fn func(*Batch) error) error
	Counter
}

// Counter counts what a history has.
type Counter interface {
	// Counts counts the rows below the cut of the accounts whose number modulo
	// modulus is remainder.
	Counts(ctx context.Context, cut Cut, remainder, modulus int) (Counts, error)
}

// Counts are numbers of rows.
type Counts struct {
	Events, Aliases, Transitions int64
	// TextBytes are the bytes of the events' types, properties and keys.
	TextBytes int64
}

// Add adds other counts.
func (c *Counts) Add(d Counts) {
	c.Events += d.Events
	c.Aliases += d.Aliases
	c.Transitions += d.Transitions
	c.TextBytes += d.TextBytes
}

// The bounds of a copy. A store is given that many rows or bytes at once when
// there are as many.
const (
	copyRows     = 122_880
	copyBytes    = 32 << 20
	copyAllBytes = 256 << 20 // over all partitions
)

// CopyOptions say what [Copy] copies.
type CopyOptions struct {
	// UpTo is the end: all records below are copied.
	UpTo int64
	// Partitions are those of the log that To is the history of. An account's rows
	// go to the partition that is its number modulo Partitions.
	Partitions int
	// Rows is about how many rows a partition is given at once; default 122,880.
	Rows int
	// Progress is called with the offset up to which everything is stored; it may
	// be nil.
	Progress func(upTo int64)
}

// ErrCopyDiffers reports that what was copied is not what was there.
var ErrCopyDiffers = errors.New("the copy of history differs")

// Copy copies partition 0 of a history to one of several partitions, at the same
// offsets, and compares the counts. It continues where an earlier one was cut off;
// From must not have changed below UpTo meanwhile.
func Copy(ctx context.Context, from Exporter, to interface {
	History
	Counter
}, o CopyOptions) (total Counts, err error) {
	if o.Partitions < 1 {
		return total, fmt.Errorf("copy to %d partitions", o.Partitions)
	}
	c := copier{to: to, parts: make([]Batch, o.Partitions), positions: make([]int64, o.Partitions), rows: cmp.Or(o.Rows, copyRows), progress: o.Progress}
	start := o.UpTo
	for i := range c.parts {
		at, err := to.Position(ctx, i)
		if err != nil {
			return total, err
		}
		if at > o.UpTo {
			return total, fmt.Errorf("%w: partition %d has rows up to record %d, the log that is copied ends at %d", ErrCopyDiffers, i, at, o.UpTo)
		}
		c.positions[i] = at
		c.parts[i] = Batch{Partition: i, From: at, To: at}
		start = min(start, at)
	}
	if err := from.Export(ctx, Cut{UpTo: o.UpTo}, start, func(b *Batch) error { return c.take(ctx, b) }); err != nil {
		return total, err
	}
	for i := range c.parts {
		c.parts[i].To = o.UpTo
		if err := c.flush(ctx, i); err != nil {
			return total, err
		}
	}
	for i := range o.Partitions {
		want, err := from.Counts(ctx, Cut{UpTo: o.UpTo}, i, o.Partitions)
		if err != nil {
			return total, err
		}
		// All that is there, whosever it is.
		have, err := to.Counts(ctx, Cut{Partition: i, UpTo: o.UpTo}, 0, 1)
		if err != nil {
			return total, err
		}
		if have != want {
			return total, fmt.Errorf("%w: partition %d has %+v, should have %+v", ErrCopyDiffers, i, have, want)
		}
		total.Add(have)
	}
	return total, nil
}

// copier gathers rows by partition.
type copier struct {
	to        History
	parts     []Batch
	positions []int64 // what is stored already
	rows      int
	progress  func(int64)
}

func (c *copier) of(account uint64) int { return int(account % uint64(len(c.parts))) }

// take adds the rows that are not stored yet, and stores what has become large.
func (c *copier) take(ctx context.Context, b *Batch) error {
	for i := range b.Rows() {
		p := &c.parts[c.of(b.Account[i])]
		if b.Offset[i] < c.positions[p.Partition] {
			continue
		}
		p.Account, p.Offset, p.Index = append(p.Account, b.Account[i]), append(p.Offset, b.Offset[i]), append(p.Index, b.Index[i])
		p.Ordinal, p.TimeMs = append(p.Ordinal, b.Ordinal[i]), append(p.TimeMs, b.TimeMs[i])
		p.EventType.Append(b.EventType.At(i))
		p.Properties.Append(b.Properties.At(i))
		p.IdempotencyKey.Append(b.IdempotencyKey.At(i))
	}
	for _, a := range b.Aliases {
		if p := &c.parts[c.of(a.Account)]; a.Offset >= c.positions[p.Partition] {
			p.Aliases = append(p.Aliases, a)
		}
	}
	for _, t := range b.Transitions {
		if p := &c.parts[c.of(t.Account)]; t.Key.Offset >= c.positions[p.Partition] {
			p.Transitions = append(p.Transitions, t)
		}
	}
	bytes := 0 // of all
	for i := range c.parts {
		p := &c.parts[i]
		p.To = max(p.To, b.To)
		bytes += p.Bytes()
	}
	for i := range c.parts {
		p := &c.parts[i]
		if p.Rows()+len(p.Aliases)+len(p.Transitions) >= c.rows || p.Bytes() >= copyBytes || bytes > copyAllBytes {
			if err := c.flush(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush stores what was gathered of a partition.
func (c *copier) flush(ctx context.Context, i int) error {
	p := &c.parts[i]
	if p.To > p.From {
		if err := c.to.Append(ctx, p); err != nil {
			return err
		}
	}
	to := p.To
	p.Reset()
	p.From, p.To = to, to
	if c.progress != nil {
		least := to
		for j := range c.parts {
			least = min(least, c.parts[j].From)
		}
		c.progress(least)
	}
	return nil
}
