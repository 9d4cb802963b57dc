package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"

	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/eventlog"
)

// Bounds implements [eventlog.Log]: the leader is asked. Callers who wait at
// once share a question, but only one that was asked after they came.
func (l *Log) Bounds(ctx context.Context, partition int) (start, end int64, err error) {
	p, err := l.partition(partition)
	if err != nil {
		return 0, 0, err
	}
	if l.isClosing() {
		return 0, 0, eventlog.ErrClosed
	}
	a, err := p.barrier.wait(ctx, l.spawn)
	if err == nil {
		err = a.err
	}
	if err != nil {
		if l.isClosing() {
			err = eventlog.ErrClosed
		}
		return 0, 0, err
	}
	return a.start, a.end, nil
}

type bounds struct {
	start, end int64
	err        error
}

// question is answered for all who wait for it. bounds is written before done
// is closed.
type question struct {
	done chan struct{}
	bounds
}

// barrier lets callers share questions. While one is under way, those who come
// wait for the next, which is asked when that one was answered: an answer under
// way may have been given before they came.
type barrier struct {
	ask func() bounds
	mu  struct {
		sync.Mutex
		// next is not asked yet.
		next   *question
		asking bool
	}
}

// wait joins the question that is asked next. spawn runs the asking goroutine, or
// refuses.
func (b *barrier) wait(ctx context.Context, spawn func(func()) bool) (bounds, error) {
	b.mu.Lock()
	q := b.mu.next
	if q == nil {
		q = &question{done: make(chan struct{})}
		b.mu.next = q
	}
	if !b.mu.asking {
		b.mu.asking = spawn(b.run)
		if !b.mu.asking {
			b.mu.next = nil
			b.mu.Unlock()
			return bounds{}, eventlog.ErrClosed
		}
	}
	b.mu.Unlock()
	select {
	case <-q.done:
		return q.bounds, nil
	case <-ctx.Done():
		return bounds{}, ctx.Err()
	}
}

// run asks until there are no waiters.
func (b *barrier) run() {
	for {
		b.mu.Lock()
		q := b.mu.next
		b.mu.next = nil
		if q == nil {
			b.mu.asking = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		q.bounds = b.ask()
		close(q.done)
	}
}

// askBounds asks the leader for the partition's bounds, and again while
// brokers are lost, for as long as an append would try.
func (p *partition) askBounds() bounds {
	l := p.log
	ctx, cancel := context.WithTimeout(l.ctx, l.opts.AppendTimeout)
	defer cancel()
	var wait backoff
	for {
		known := p.known.Load()
		start, end, err := p.listOffsets(ctx)
		if err == nil && end < known {
			// A broker that was frozen, and does not know yet that it does not
			// lead any more, says where it ended then.
			err = fmt.Errorf("it ends at offset %d, but records below %d were acknowledged: either broker %s no longer leads it, or records were lost (unclean leader election, a topic that was deleted)",
				end, known, p.leader.present().addr)
		}
		var o *origin
		if err == nil {
			p.atLeast(end)
			if end > known {
				p.own.news() // others may have written
			}
			l.trouble.over(p.id, onOffsets)
			if o, err = p.originNow(ctx); err != nil {
				return bounds{err: err}
			}
			p.counters.questions.Add(1)
			// Retention may have taken the base record.
			return bounds{start: max(start, o.first) + o.shift, end: max(end, o.first) + o.shift}
		}
		l.trouble.met(p.id, onOffsets, err)
		if refused(err) || p.pause(ctx, &wait) != nil {
			return bounds{err: fmt.Errorf("bounds of topic %s, partition %d: %w", l.opts.Topic, p.id, err)}
		}
	}
}

func (p *partition) listOffsets(ctx context.Context) (start, end int64, err error) {
	l := p.log
	lead := p.leader.present()
	if lead.err != nil {
		return 0, 0, lead.err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(lead.ctx, func() { cancel(errLeaderChanged) })()
	res, err := l.client.ListOffsets(ctx, &kgo.ListOffsetsRequest{
		Topics: map[string][]kgo.OffsetRequest{l.opts.Topic: {kgo.FirstOffsetOf(p.id), kgo.LastOffsetOf(p.id)}},
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return 0, 0, err
	}
	for _, at := range res.Topics[l.opts.Topic] {
		if at.Partition != p.id {
			continue
		}
		if at.Error != nil {
			return 0, 0, at.Error
		}
		if at.FirstOffset < 0 || at.LastOffset < at.FirstOffset {
			return 0, 0, fmt.Errorf("%w: the partition begins at %d and ends at %d", errMalformed, at.FirstOffset, at.LastOffset)
		}
		return at.FirstOffset, at.LastOffset, nil
	}
	return 0, 0, fmt.Errorf("%w: it does not name the partition", errMalformed)
}
