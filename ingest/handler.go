package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/deadline"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/resolver"
)

// Submitter appends a record and waits until it is applied. rec starts with an
// [eventlog.Envelope]; out takes what became of it. Neither they nor ctx are
// used after Submit has returned. An error that wraps [eventlog.ErrQueueFull]
// or [resolver.ErrOverloaded] means that nothing was stored; after any other
// the record may have been.
type Submitter interface {
	Submit(ctx context.Context, account uint64, rec []byte, out *resolver.Outcome) error
}

// Handler answers the endpoints of Surface B. Its methods may be called from
// several goroutines at once.
type Handler struct {
	submitter Submitter
	apps      Apps
	opts      Options
	counters  *counters
	memory    *Memory
	ids       idSource
	limit     *deadline.Shared // how long a record may take until it is applied
	refusals  refusals         // nil if refusals are not reported
	works     sync.Pool        // *work
	gzips     sync.Pool        // *gzip.Reader
	zstds     chan *zstd.Decoder
	retry     []byte       // value of Retry-After
	logged    atomic.Int64 // Unix second of the last fault logged
}

// New returns a handler. The error names the option at fault.
func New(submitter Submitter, apps Apps, opts Options) (*Handler, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	h := &Handler{submitter: submitter, apps: apps, opts: opts, limit: deadline.NewShared(opts.Timeout)}
	if h.memory = opts.Memory; h.memory == nil {
		h.memory = NewMemory(opts.InFlightBytes)
	}
	h.refusals, _ = submitter.(refusals)
	h.counters = newCounters(opts.Metrics, h.memory)
	h.ids.mu.r = opts.Rand
	h.retry = strconv.AppendInt(nil, max(1, int64((opts.RetryAfter+time.Second-1)/time.Second)), 10)
	var err error
	if h.zstds, err = newZstds(); err != nil {
		return nil, err
	}
	return h, nil
}

// Event answers POST /api/v1/events.
func (h *Handler) Event(ctx *fasthttp.RequestCtx) { h.serve(ctx, endpointEvent) }

// Batch answers POST /api/v1/events/batch.
func (h *Handler) Batch(ctx *fasthttp.RequestCtx) { h.serve(ctx, endpointBatch) }

// Import answers POST /api/v1/events/import.
func (h *Handler) Import(ctx *fasthttp.RequestCtx) { h.serve(ctx, endpointImport) }

const (
	// keepBytes is the size up to which a buffer is kept for the next request.
	keepBytes = 1 << 20
	// copyBytes is the size up to which an answer is copied into the response.
	copyBytes = 64 << 10
	// outcomeBytes is the memory of one event's outcome and answer.
	outcomeBytes = 256
)

// work is what one request uses, kept for the next.
type work struct {
	dec      *Decoder
	lease    lease
	received []byte       // the body as it was sent
	unpacked []byte       // the body decompressed
	packed   bytes.Reader // over received
	answer   []byte
	out      resolver.Outcome
	ids      idBuffer
}

func (h *Handler) acquire() *work {
	if w, ok := h.works.Get().(*work); ok {
		return w
	}
	w := &work{dec: newDecoder(h.opts.Limits)}
	w.lease.memory = h.memory
	return w
}

// release gives the work back. Nothing of the request may be in use any more.
func (h *Handler) release(w *work) {
	w.lease.shrink(0)
	w.packed.Reset(nil)
	w.dec.shrink(keepBytes)
	for _, b := range []*[]byte{&w.received, &w.unpacked, &w.answer} {
		if cap(*b) > keepBytes {
			*b = nil
		}
	}
	events := w.out.Events
	clear(events)
	if cap(events) > keepBytes/64 {
		events = nil
	}
	w.out = resolver.Outcome{Events: events[:0]}
	h.works.Put(w)
}

// grow makes the capacity of buf at least size, of which was bytes are leased
// already; ok is false when there is no room for more.
func (l *lease) grow(buf []byte, was, size int) (_ []byte, ok bool) {
	if !l.need(l.held + int64(size-was)) {
		return buf, false
	}
	return slices.Grow(buf, size-len(buf)), true
}

// largeAnswer is an answer that is not copied into the response: it is sent from
// the work, which is kept, with its lease, until a slow client has read it.
type largeAnswer struct {
	bytes.Reader
	h *Handler
	w *work
}

// Close gives the work back, once.
func (a *largeAnswer) Close() error {
	if a.w != nil {
		a.Reset(nil)
		a.h.release(a.w)
		a.w = nil
	}
	return nil
}

// serve runs one request through the chain.
func (h *Handler) serve(ctx *fasthttp.RequestCtx, e endpoint) {
	began := h.opts.Now()
	w := h.acquire()
	answered := false
	defer func() {
		if !answered { // it panicked: what it took is free, and what it used is no other's
			w.lease.shrink(0)
		}
	}()
	status := h.answer(ctx, w, e)
	answered = true
	if len(w.answer) <= copyBytes {
		ctx.Response.SetBody(w.answer)
		h.release(w)
	} else {
		body := &largeAnswer{h: h, w: w}
		body.Reset(w.answer)
		ctx.Response.SetBodyStream(body, len(w.answer))
	}
	h.counters.request(e, status, h.opts.Now().Sub(began))
}

// answer writes the response and returns its status.
func (h *Handler) answer(ctx *fasthttp.RequestCtx, w *work, e endpoint) int {
	status := 202
	enc, refused := checkHead(&ctx.Request.Header)
	if refused == nil {
		app, ok, err := h.current(&ctx.Request.Header)
		switch {
		case err != nil:
			refused = h.submitError(err)
		case ok:
			Authenticated(ctx)
			refused = h.process(ctx, w, e, enc, app)
		default:
			h.counters.authFailures.Inc()
			refusal.Mark(ctx, refusal.Unauthorized)
			text := invalidCredentials
			if hasAPIKey(&ctx.Request.Header) {
				text = keyCredentials
			}
			w.answer = appendDenied(w.answer[:0], e, text)
		}
	}
	if refused != nil {
		status = refused.status
		w.answer = appendFailure(w.answer[:0], refused.text)
		header := &ctx.Response.Header
		switch status {
		case 405:
			header.Set(fasthttp.HeaderAllow, fasthttp.MethodPost)
		case 415:
			header.Set(fasthttp.HeaderAcceptEncoding, "gzip, zstd")
		case 503:
			header.SetBytesV(fasthttp.HeaderRetryAfter, h.retry)
		}
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	return status
}

// process reads, decodes, submits and answers a request that may come in.
func (h *Handler) process(ctx *fasthttp.RequestCtx, w *work, e endpoint, enc encoding, app resolver.App) *requestError {
	body, refused := h.readBody(ctx, w, enc)
	if refused != nil {
		return refused
	}
	if !w.lease.need(w.lease.held + int64(len(body)+recordHead)) {
		return h.noMemory()
	}
	w.dec.IgnoreUnknown(app.IgnoreUnknownFields)
	nowMs := h.opts.Now().UnixMilli()
	switch e {
	case endpointEvent:
		refused = w.dec.single(body, nowMs)
	case endpointBatch:
		refused = w.dec.batch(body, eventlog.KindEvents, nowMs)
	case endpointImport:
		refused = w.dec.batch(body, eventlog.KindImport, nowMs)
	}
	if refused != nil {
		h.showRefused(e, app.Account, body, refused.text)
		return refused
	}
	if len(body) > keepBytes {
		body = nil // it is not kept for the wait
	}
	// The wait may be long, and the body is not needed for it.
	record := int64(len(body) + recordHead)
	w.lease.shrink(record)
	if !w.lease.need(record + int64(len(w.dec.results)*outcomeBytes+3*len(w.dec.texts))) {
		return h.noMemory()
	}
	if cap(w.received) > keepBytes {
		w.received = nil
	}
	if cap(w.unpacked) > keepBytes {
		w.unpacked = nil
	}
	if refused = h.submit(w, e, app.Account); refused != nil {
		return refused
	}
	h.showRefusals(w, e, app.Account, body)
	if h.answerOutcome(w, e) {
		refusal.Mark(ctx, refusal.NoEvents)
	}
	return nil
}

// submit sends the record through the log, if there is anything in it.
func (h *Handler) submit(w *work, e endpoint, account uint64) *requestError {
	if w.dec.events == 0 && e != endpointImport {
		return nil // An import's cursor moves over refused rows too.
	}
	id, err := h.ids.next(&w.ids)
	if err != nil {
		return h.submitError(err)
	}
	rec := w.dec.Finish(&eventlog.Envelope{Account: account, ID: id, StampMs: h.opts.Now().UnixMilli()})
	if len(rec) > h.opts.RecordBytes {
		return h.submitError(eventlog.ErrTooLarge)
	}
	err = h.submitter.Submit(h.limit.Context(), account, rec, &w.out)
	if err == nil && w.out.Refusal == nil && len(w.out.Events) != w.dec.events {
		err = fmt.Errorf("%w: %d outcomes for a record of %d events", resolver.ErrUnavailable, len(w.out.Events), w.dec.events)
	}
	if err != nil {
		// Should the submitter still hold them, against its contract, they must
		// not be another request's.
		w.dec.rec, w.out = nil, resolver.Outcome{}
		return h.submitError(err)
	}
	return nil
}

// submitError answers a record that was not applied. It is the one place where
// errors of the log and the state become statuses.
func (h *Handler) submitError(err error) *requestError {
	c := h.counters
	switch {
	case errors.Is(err, eventlog.ErrTooLarge):
		return &requestError{413, "the request makes a record larger than the log takes; send the events in several requests"}
	case errors.Is(err, eventlog.ErrNoSpace):
		c.noSpace.Inc()
		return &requestError{503, "the server's disk is full; nothing was stored, send the request again later"}
	case errors.Is(err, eventlog.ErrQueueFull), errors.Is(err, resolver.ErrOverloaded):
		c.queueFull.Inc()
		return &requestError{503, "the server is overloaded; nothing was stored, send the request again later"}
	case errors.Is(err, resolver.ErrNotOwner):
		c.unavailable.Inc()
		return &requestError{503, "the account is moving between nodes; nothing was stored, send the request again"}
	case errors.Is(err, context.DeadlineExceeded):
		c.timeout.Inc()
		return &requestError{503, "the request was not applied in time; send it again with the same idempotency_key"}
	}
	c.unavailable.Inc()
	// A log that has failed fails every request: one line a second is enough.
	if now := h.opts.Now().Unix(); h.logged.Swap(now) != now {
		h.opts.Logger.Error("record not applied", "error", err)
	}
	return &requestError{503, "the server cannot store events at present; send the request again later with the same idempotency_key"}
}

// answerOutcome writes the answer to a request that was applied, and reports whether
// all its events were refused.
func (h *Handler) answerOutcome(w *work, e endpoint) (none bool) {
	d, out := w.dec, &w.out
	results, t := appendResults(w.answer[:0], d, out)
	w.answer = results
	h.counters.accepted.Add(t.accepted)
	h.counters.duplicate.Add(t.duplicate)
	h.counters.refused.Add(t.refused)
	none = t.refused > 0 && t.refused == len(d.results)
	if e == endpointEvent {
		w.answer = results[1 : len(results)-1] // the one element of the array
		return none
	}
	// The head needs the counts that the results give.
	var head [96]byte
	accepted, total := t.accepted+t.duplicate, len(d.results)
	success := accepted == total && out.Refusal == nil
	w.answer = slices.Insert(results, 0, appendBatchHead(head[:0], success, accepted, total)...)
	if e == endpointImport {
		w.answer = appendImportTail(w.answer, total, out)
	} else {
		w.answer = append(w.answer, '}')
	}
	return none
}
