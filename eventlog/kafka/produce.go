package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"time"

	kgo "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/musterhq/muster/eventlog"
)

// run produces batches until the partition is closed.
func (p *partition) run() {
	for {
		// Let the appenders just told bring their next records, so that they
		// share a request instead of taking turns.
		runtime.Gosched()
		b := p.take()
		if b == nil {
			return
		}
		p.produce(b)
	}
}

// produce sends the batch until Kafka acknowledges it, refuses it for good, or
// its time is over.
func (p *partition) produce(b *batch) {
	l := p.log
	left := l.opts.AppendTimeout - l.opts.Now().Sub(b.since)
	if left <= 0 {
		p.finish(b, 0, fmt.Errorf("%w: topic %s, partition %d: not sent within %v: %w",
			eventlog.ErrUncertain, l.opts.Topic, p.id, l.opts.AppendTimeout, l.trouble.cause()), true)
		return
	}
	ctx, cancel := context.WithTimeout(l.ctx, left)
	defer cancel()
	o, err := p.originNow(ctx)
	if err != nil {
		p.finish(b, 0, fmt.Errorf("%w: not sent: %w", eventlog.ErrUncertain, err), true)
		return
	}
	if o.key != nil && !b.keyed {
		b.buf, b.keyed = rekeyed(b, o.key), true
	}
	set, err := sealBatch(b.buf, b.records, l.codec)
	if err != nil {
		p.finish(b, 0, err, true)
		return
	}
	var wait backoff
	for attempt := 0; ; attempt++ {
		floor := p.known.Load()
		base, err := p.attempt(ctx, set)
		if err == nil && base < floor {
			p.finish(b, 0, fmt.Errorf("%w: %w", eventlog.ErrUncertain, p.loses(base, floor)), false)
			return
		}
		if err == nil {
			l.trouble.over(p.id, onProduce)
			end := base + int64(b.records)
			// An attempt that was given up may still read the buffer.
			reuse := attempt == 0
			kept := p.own.add(ownBatch{base: base, end: end, buf: b.buf, reuse: reuse})
			p.atLeast(end)
			if kept {
				p.own.news() // first: the appender waits for the reader as well
			}
			p.finish(b, base, nil, reuse && !kept)
			if !kept {
				p.own.news()
			}
			return
		}
		p.counters.failures.Add(1)
		l.trouble.met(p.id, onProduce, err)
		if tooLarge(err) && b.records > 1 {
			p.produceHalves(b, len(set)-sizePrefix)
			return
		}
		if refused(err) {
			p.finish(b, 0, p.refusal(len(set)-sizePrefix, err), attempt == 0)
			return
		}
		if p.pause(ctx, &wait) != nil {
			reason := fmt.Sprintf("not acknowledged within %v", l.opts.AppendTimeout)
			if l.ctx.Err() != nil {
				reason = "not acknowledged before the log was closed"
			}
			p.finish(b, 0, fmt.Errorf("%w: topic %s, partition %d: %s, %d attempts: %w",
				eventlog.ErrUncertain, l.opts.Topic, p.id, reason, attempt+1, err), false)
			return
		}
		p.counters.retries.Add(1)
	}
}

// loses notes that Kafka has put a batch at base, below floor, the end of the partition when the
// batch was sent: records that were acknowledged are gone, and others take their place. Nothing
// more is read, since the state has applied what is gone.
func (p *partition) loses(base, floor int64) error {
	if o := p.origin.Load(); o != nil {
		base, floor = base+o.shift, floor+o.shift
	}
	err := &eventlog.CorruptError{
		File: fmt.Sprintf("topic %s, partition %d", p.log.opts.Topic, p.id), Offset: base,
		Reason: fmt.Sprintf("Kafka has stored a record there, and the records below %d were stored before: it lost them (a topic that was deleted, a loss of power, an unclean leader election)", floor),
		Remedy: "Stop all nodes and restore the topic",
	}
	p.lost.CompareAndSwap(nil, err)
	p.own.news()
	return p.lost.Load()
}

// attempt sends the batch once. It is given up when another broker leads.
func (p *partition) attempt(ctx context.Context, set []byte) (base int64, err error) {
	l := p.log
	lead := p.leader.present()
	if lead.err != nil {
		return 0, lead.err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(lead.ctx, func() { cancel(errLeaderChanged) })()
	begin := l.opts.Now()
	res, err := l.client.RawProduce(ctx, &kgo.RawProduceRequest{
		Topic: l.opts.Topic, Partition: p.id, RequiredAcks: kgo.RequireAll,
		RawRecords: protocol.RawRecordSet{Reader: bytes.NewReader(set)},
	})
	if err == nil {
		err = res.Error
	}
	if err == nil && res.BaseOffset < 0 {
		err = fmt.Errorf("%w: it puts the batch at offset %d", errMalformed, res.BaseOffset)
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return 0, err
	}
	took := max(l.opts.Now().Sub(begin), 0)
	p.counters.produces.Add(1)
	p.counters.produceNanos.Add(uint64(took))
	if l.opts.OnProduce != nil {
		l.opts.OnProduce(p.id, took)
	}
	return res.BaseOffset, nil
}

func tooLarge(err error) bool {
	return errors.Is(err, kgo.MessageSizeTooLarge) || errors.Is(err, kgo.RecordListTooLarge)
}

// produceHalves sends a batch as two: max.message.bytes was lowered since the
// start. Later batches are as small.
func (p *partition) produceHalves(b *batch, size int) {
	p.batchLimit.Store(int64(max(size/2, minBatchBytes)))
	p.mu.Lock()
	p.mu.inFlight++
	p.mu.Unlock()
	half := b.records / 2
	parts := [2]*batch{
		{buf: make([]byte, prefixSize), since: b.since, waiters: b.waiters[:half]},
		{buf: make([]byte, prefixSize), since: b.since, waiters: b.waiters[half:]},
	}
	i := 0
	for data := range b.all() {
		to := parts[0]
		if i >= half {
			to = parts[1]
		}
		to.buf = appendRecord(to.buf, to.records, nil, data)
		to.records++
		to.payload += len(data)
		i++
	}
	p.produce(parts[0])
	p.produce(parts[1])
}

// all are the records of a batch that is not sealed.
func (b *batch) all() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := scanner{body: b.buf[prefixSize:], left: b.records, end: int64(b.records)}
		for range b.records {
			_, data, err := s.record()
			if err != nil {
				panic(fmt.Sprintf("kafka: a batch of our own cannot be read: %v", err))
			}
			if !yield(data) {
				return
			}
		}
	}
}

// rekeyed is the batch's buffer with a key for the first record.
func rekeyed(b *batch, key []byte) []byte {
	buf := make([]byte, prefixSize, len(b.buf)+len(key))
	i := 0
	for data := range b.all() {
		buf = appendRecord(buf, i, key, data)
		key = nil
		i++
	}
	return buf
}

// refusal is the error of a record that Kafka does not take.
func (p *partition) refusal(size int, err error) error {
	if !tooLarge(err) {
		return fmt.Errorf("topic %s, partition %d: Kafka refuses the record: %w", p.log.opts.Topic, p.id, err)
	}
	p.counters.refusedTooLarge.Add(1)
	return fmt.Errorf("%w: %d bytes with framing; max.message.bytes of topic %s was lowered since the start: %w",
		eventlog.ErrTooLarge, size, p.log.opts.Topic, err)
}

// pause waits before a request is repeated, or until another broker leads. It
// returns ctx's error when that ends.
func (p *partition) pause(ctx context.Context, wait *backoff) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t := time.NewTimer(wait.step())
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.leader.present().ctx.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
