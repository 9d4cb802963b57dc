package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/eventlog"
)

// Reader is an [eventlog.Reader] of one partition. It has a connection of its
// own, with one request on the way while the records of the answer before are
// handed out. It rides out the loss of brokers: Next waits until one serves.
type Reader struct {
	p *partition
	// next is the offset of the record to come: Kafka's, once origin is set.
	next   int64
	origin *origin
	// raw readers know no origin and give Kafka's offsets.
	raw bool
	// err is a fault that stays: damage, a place that was trimmed, or Close.
	err error

	// buf holds an answer; scan reads its records.
	buf  []byte
	scan scanner

	link
	request
	// wait is the pause before the next attempt after a failure.
	wait backoff
	follower
}

// link is the reader's connection to the partition's leader.
type link struct {
	conn *brokerConn
	// dial is a connection being made, nil when none is.
	dial *dialing
	// watch ends the connection's bond to its leader.
	watch func() bool
	// connected is set after the first connection, usedAt when the present one was
	// last written to or read from.
	connected bool
	usedAt    time.Time
}

// request is the request on the way, and what has arrived of its answer.
type request struct {
	// asked is false when there is none. have is how many bytes of the answer have
	// arrived, need its size, or 4 before that is known: head holds the size.
	asked      bool
	head       [4]byte
	have, need int
	deadline   time.Time
	// askedAt is the offset asked for. Memory may have brought what it asks for by
	// the time of the answer.
	askedAt int64
}

// follower is how the reader takes batches from memory, see own.
type follower struct {
	// follows says that the reader is the partition's follower. hand is the batch
	// that scan reads if it came from memory, ownAt when one came last.
	follows bool
	hand    ownBatch
	ownAt   time.Time
	// woken has a token when there is news for the follower.
	woken chan struct{}
	timer *time.Timer
	// gapSince is when it was noticed that memory lacks what follows the batch from
	// there, fetching that the batch before was not from memory.
	gapSince time.Time
	fetching bool
}

// Read implements [eventlog.Log]. Where the brokers do not answer with the bounds
// in time, the reader finds out.
func (l *Log) Read(partition int, from int64) (eventlog.Reader, error) {
	p, err := l.partition(partition)
	if err != nil {
		return nil, err
	}
	if l.isClosing() {
		return nil, eventlog.ErrClosed
	}
	if from < 0 {
		return nil, fmt.Errorf("%w: offset %d of partition %d", eventlog.ErrTrimmed, from, partition)
	}
	ctx, cancel := l.opts.within(l.ctx)
	defer cancel()
	start, end, err := l.Bounds(ctx, partition)
	switch {
	case errors.Is(err, eventlog.ErrClosed):
		return nil, err
	case err != nil:
		l.opts.Logger.Warn("reading begins without the bounds of the partition", "partition", partition, "err", err)
	case from < start:
		return nil, p.trimmed(from, start)
	case from > end:
		return nil, fmt.Errorf("offset %d of partition %d is beyond the end of the log, %d", from, partition, end)
	}
	r := &Reader{p: p, next: from, follower: follower{woken: make(chan struct{}, 1)}}
	r.scan.inflateLimit = l.inflateLimit()
	return r, nil
}

// locate turns next into Kafka's offset, the first time.
func (r *Reader) locate(ctx context.Context) error {
	if r.origin != nil {
		return nil
	}
	if r.raw {
		r.origin = &origin{}
		return nil
	}
	o, err := r.p.originNow(ctx)
	if err != nil {
		return err
	}
	if first := o.first + o.shift; r.next < first {
		r.err = r.p.trimmed(r.next, first)
		return r.err
	}
	r.origin = o
	r.next -= o.shift
	return nil
}

func (p *partition) trimmed(offset, start int64) error {
	return fmt.Errorf("%w: offset %d of topic %s, partition %d, it starts at %d", eventlog.ErrTrimmed, offset, p.log.opts.Topic, p.id, start)
}

// Next implements [eventlog.Reader]. It waits while no broker serves the
// partition, and fails where Kafka refuses to.
func (r *Reader) Next(ctx context.Context) (eventlog.Entry, error) {
	for {
		if r.p.log.isClosing() && !r.raw {
			return eventlog.Entry{}, eventlog.ErrClosed
		}
		if lost := r.p.lost.Load(); lost != nil && r.err == nil {
			r.drop()
			r.err = lost
		}
		if r.err != nil {
			return eventlog.Entry{}, r.err
		}
		if err := r.locate(ctx); err != nil {
			return eventlog.Entry{}, err
		}
		data, err := r.scan.next(r.next)
		if err == nil && r.next == 0 && !r.raw && len(r.scan.key) == baseSize {
			if _, found, _ := decodeBase(r.scan.key); found {
				err = &fault{reason: "a log was moved to this topic after it was opened; restart this node"}
			}
		}
		if err == nil {
			e := eventlog.Entry{Offset: r.next + r.origin.shift, Data: data}
			r.next++
			r.p.atLeast(r.next)
			return e, nil
		}
		var flt *fault
		if errors.As(err, &flt) {
			r.drop()
			r.err = r.p.corrupt(r.next+r.origin.shift, flt)
			return eventlog.Entry{}, r.err
		}
		if err := r.advance(ctx); err != nil {
			return eventlog.Entry{}, err
		}
	}
}

// Close implements [eventlog.Reader].
func (r *Reader) Close() error {
	r.drop()
	if r.follows {
		r.follows = false
		r.p.own.leave(r.woken)
	}
	r.p.log.trouble.forget(r.p.id, onFetch)
	r.err, r.buf = eventlog.ErrClosed, nil
	r.scan.reset(nil)
	r.putBack()
	return nil
}

// advance gets the next answer. After nil there are records, or Next should
// look again.
func (r *Reader) advance(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l := r.p.log
	// What is left of the answer before is a batch that was cut.
	r.scan.reset(nil)
	r.putBack()
	if again, err := r.fromMemory(ctx); again || err != nil {
		return err
	}
	asking, interrupt := ctx, context.CancelFunc(nil)
	if r.follows {
		asking, interrupt = context.WithCancel(ctx)
		defer interrupt()
		if r.takeOwn(interrupt) {
			return nil
		}
		defer r.p.own.calm()
	}
	err := r.fetch(asking)
	if asking.Err() != nil && ctx.Err() == nil {
		return nil // memory has what was waited for
	}
	if err == nil {
		l.trouble.over(r.p.id, onFetch)
		r.wait.reset()
		return nil
	}
	if l.isClosing() && !r.raw {
		return eventlog.ErrClosed
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.drop()
	var give *giveUp
	if errors.As(err, &give) {
		return give.err
	}
	l.trouble.met(r.p.id, onFetch, err)
	if refused(err) {
		return fmt.Errorf("read topic %s, partition %d: %w", l.opts.Topic, r.p.id, err)
	}
	// The log's end ends it, too.
	return r.p.pause(ctx, &r.wait)
}

// giveUp is an error that the reader's user must see.
type giveUp struct{ err error }

func (g *giveUp) Error() string { return g.err.Error() }
func (g *giveUp) Unwrap() error { return g.err }

// fetch waits for an answer with records, or without.
func (r *Reader) fetch(ctx context.Context) error {
	if r.conn != nil && time.Since(r.usedAt) > staleAfter {
		r.drop()
		r.connected = false // this one was not lost
	}
	if r.conn == nil {
		if err := r.connect(ctx); err != nil {
			return err
		}
	}
	if !r.asked {
		if err := r.ask(r.next); err != nil {
			return err
		}
	}
	answer, err := r.receive(ctx)
	if err != nil {
		return err
	}
	r.asked, r.usedAt = false, time.Now()
	f, err := parseFetch(answer, r.conn.fetch, r.conn.id, r.p.log.opts.Topic, r.p.id)
	if err != nil {
		return err
	}
	switch code := kgo.Error(f.code); code {
	case 0:
	case kgo.OffsetOutOfRange:
		return r.outOfRange(ctx)
	default:
		return code
	}
	end := endOf(f.records, r.askedAt)
	if end > r.askedAt {
		r.p.counters.fetches.Add(1)
		r.p.counters.fetchedBytes.Add(uint64(len(f.records)))
	}
	if end > r.next {
		r.scan.reset(f.records)
		r.fetching = true
		if r.follows && end >= r.p.known.Load() {
			return nil // what comes now may come from memory
		}
		// The broker works on the next answer while this one is handed out.
		return r.ask(end)
	}
	if len(f.records) > 0 && end == r.askedAt {
		// What Kafka sends holds a whole batch, so this one is no batch.
		r.scan.reset(f.records)
		_, err := r.scan.next(r.next)
		var flt *fault
		if !errors.As(err, &flt) {
			flt = &fault{reason: fmt.Sprintf("an answer of %d bytes has no record from offset %d on", len(f.records), r.next)}
		}
		r.err = r.p.corrupt(r.next+r.origin.shift, flt)
		return &giveUp{r.err}
	}
	// There is nothing, or only what memory has brought meanwhile.
	return nil
}

// outOfRange finds out why Kafka does not know the offset.
func (r *Reader) outOfRange(ctx context.Context) error {
	ctx, cancel := r.p.log.opts.within(ctx)
	defer cancel()
	start, end, err := r.p.listOffsets(ctx)
	shift := r.origin.shift
	switch {
	case err != nil:
		return err
	case r.next < start:
		r.err = r.p.trimmed(r.next+shift, start+shift)
		return &giveUp{r.err}
	case r.next > end && end >= r.p.known.Load():
		// It is not known that there are records: Read did not know the bounds.
		r.err = fmt.Errorf("offset %d of partition %d is beyond the end of the log, %d", r.next+shift, r.p.id, end+shift)
		return &giveUp{r.err}
	}
	return kgo.OffsetOutOfRange
}

// dialing is a connection being made.
type dialing struct {
	lead   lead
	cancel context.CancelFunc
	done   chan dialed
}

type dialed struct {
	conn *brokerConn
	err  error
}

// connect makes a connection to the leader. When ctx ends it may be called
// again: the connection is made meanwhile.
func (r *Reader) connect(ctx context.Context) error {
	l := r.p.log
	if r.dial == nil {
		lead := r.p.leader.present()
		if lead.err != nil {
			return lead.err
		}
		d := &dialing{lead: lead, done: make(chan dialed, 1)}
		// The log's end, or another leader, ends it.
		var dial context.Context
		dial, d.cancel = context.WithCancel(lead.ctx)
		if !l.spawn(func() {
			conn, err := l.connect(dial, lead.addr)
			d.done <- dialed{conn, err}
		}) {
			d.cancel()
			return eventlog.ErrClosed
		}
		r.dial = d
	}
	var got dialed
	select {
	case got = <-r.dial.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	leads := r.dial.lead.ctx
	r.dial.cancel()
	r.dial = nil
	if got.err != nil {
		return got.err
	}
	r.conn, r.asked, r.usedAt = got.conn, false, time.Now()
	r.watch = context.AfterFunc(leads, func() { got.conn.Close() })
	if r.connected {
		r.p.counters.reconnects.Add(1)
	}
	r.connected = true
	return nil
}

// drop ends the connection. Records in hand stay valid.
func (r *Reader) drop() {
	if d := r.dial; d != nil {
		d.cancel()
		if got := <-d.done; got.conn != nil {
			got.conn.Close()
		}
		r.dial = nil
	}
	if r.conn == nil {
		return
	}
	r.watch()
	r.conn.Close()
	r.conn, r.asked = nil, false
}

// ask sends a request.
func (r *Reader) ask(offset int64) error {
	o := &r.p.log.opts
	r.deadline = time.Time{}
	if err := r.conn.SetWriteDeadline(time.Now().Add(o.RequestTimeout)); err != nil {
		return err
	}
	if err := r.conn.askFetch(o.Topic, r.p.id, offset, o.FetchBytes, o.ClientID); err != nil {
		return err
	}
	r.asked, r.have, r.need = true, 0, len(r.head)
	r.askedAt, r.usedAt = offset, time.Now()
	return nil
}

// receive returns the answer to the request on the way, without its size. When
// ctx ends it may be called again: what arrived is kept. It overwrites the
// records in hand.
func (r *Reader) receive(ctx context.Context) ([]byte, error) {
	if r.deadline.IsZero() {
		// Time that was spent on the records before is not the broker's.
		r.deadline = time.Now().Add(r.p.log.opts.RequestTimeout)
	}
	if err := r.conn.SetReadDeadline(r.deadline); err != nil {
		return nil, err
	}
	woken := make(chan struct{})
	conn := r.conn
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_ = conn.SetReadDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			// Or it would spoil the next deadline.
			<-woken
		}
	}()
	for r.have < len(r.head) {
		n, err := r.conn.Read(r.head[r.have:])
		r.have += n
		if err != nil {
			return nil, r.lost(ctx, err)
		}
		if r.have == len(r.head) {
			size := int64(binary.BigEndian.Uint32(r.head[:]))
			limit := largestAnswer(r.p.log.opts.FetchBytes, r.p.log.batchBytes)
			if size < 8 || size > int64(limit) {
				return nil, &giveUp{fmt.Errorf("read topic %s, partition %d: broker %s sends %d bytes, at most %d are expected; was max.message.bytes raised since the start?",
					r.p.log.opts.Topic, r.p.id, r.conn.addr, size, limit)}
			}
			r.need = len(r.head) + int(size)
			r.room(int(size))
		}
	}
	for r.have < r.need {
		n, err := r.conn.Read(r.buf[r.have-len(r.head) : r.need-len(r.head)])
		r.have += n
		if err != nil {
			return nil, r.lost(ctx, err)
		}
	}
	return r.buf[:r.need-len(r.head)], nil
}

// room makes buf large enough, and lets go of one that is far too large.
func (r *Reader) room(size int) {
	usual := r.p.log.opts.FetchBytes + 64<<10
	if cap(r.buf) < size || cap(r.buf) > 2*usual && size <= usual {
		r.buf = make([]byte, max(size, min(usual, 2*cap(r.buf), 4*size)))
	}
	r.buf = r.buf[:cap(r.buf)]
}

// lost is the error of a connection that ended, or ctx's.
func (r *Reader) lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("broker %s did not answer within %v", r.conn.addr, r.p.log.opts.RequestTimeout)
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("broker %s: %w", r.conn.addr, err)
}
