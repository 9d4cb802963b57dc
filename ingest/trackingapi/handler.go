package trackingapi

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/deadline"
	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/sources"
	"github.com/musterhq/muster/segment"
)

// Handler answers the tracking API. Its methods may be called from several goroutines at once.
type Handler struct {
	opts     Options
	counters *counters
	// public is the part of the memory for requests that anybody could make.
	public *ingest.Memory
	works  sync.Pool // *work
	names  typeNames
	named  namedTypes
	uses   uses
	floods floods
	logged atomic.Int64 // Unix second of the last fault logged
	retry  string       // value of Retry-After
	ids    struct {
		sync.Mutex // guards reading of Options.Rand
	}
	limit         *deadline.Shared // how long a record may take until it is applied
	stop, flushed chan struct{}
}

// New returns a handler that [Handler.Close] must end. The error names the option at fault.
func New(opts Options) (*Handler, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &Handler{opts: opts, counters: newCounters(opts.Metrics), public: opts.Memory.Part(2), limit: deadline.NewShared(opts.Timeout), stop: make(chan struct{}), flushed: make(chan struct{})}
	h.retry = strconv.FormatInt(max(1, int64((opts.RetryAfter+time.Second-1)/time.Second)), 10)
	go h.flushLoop()
	return h, nil
}

// work is what one request uses, kept for the next.
type work struct {
	scan   *jsonscan.Scanner
	around envelope
	mapper mapper
	// kept has what stands around the events while they are read.
	kept   []byte
	record []byte
	events int
	read   int // events of the request that were looked at
	// memory is what the request's bytes are counted in, and held how many of them are for
	// the record. built counts the bytes of all events that were built.
	memory      *ingest.Memory
	held, built int
	// keys has what was found of the write keys that single events carry.
	keys map[string]found
	// list has the events that are not in the record.
	list []rejected
	// sent has the events that are in the record.
	sent  []sent
	names []typeName
	out   resolver.Outcome
	// from is of the events in the record.
	from resolver.EventsFrom
}

// typeName is the name of an event type, as the event at a place of work.sent has it.
type typeName struct {
	sent int
	name eventtypes.Name
}

// found is the result of looking a write key up.
type found struct {
	source *sources.Access
	bad    *rejection
}

// maxKeys is how many write keys the events of one request may have: each is looked up, and
// an unknown one may cost a question to the log.
const maxKeys = 16

// sent is an event in the record.
type sent struct {
	index     int
	from, to  int // of the event in the body
	call      Call
	messageID []byte
}

// keepBytes is the size up to which a buffer is kept for the next request.
const keepBytes = 1 << 20

func (h *Handler) acquire() *work {
	w, ok := h.works.Get().(*work)
	if !ok {
		w = &work{scan: jsonscan.New(h.opts.Limits.Depth-1, h.opts.Limits.ObjectBytes)} // what is kept as context is one level deeper then
		w.mapper.room = make([]byte, 0, 16<<10)
	}
	return w
}

func (h *Handler) release(w *work) {
	w.scan.Shrink(keepBytes)
	w.around, w.kept, w.events = envelope{}, w.kept[:0], 0
	w.read, w.memory, w.held, w.built = 0, nil, 0, 0
	clear(w.keys)
	clear(w.list)
	clear(w.sent)
	clear(w.names)
	w.from = resolver.EventsFrom{Calls: w.from.Calls[:0]}
	w.list, w.sent, w.names = w.list[:0], w.sent[:0], w.names[:0]
	w.mapper = mapper{room: w.mapper.room[:0]}
	if cap(w.record) > keepBytes {
		w.record = nil
	}
	events := w.out.Events
	clear(events)
	if cap(events) > keepBytes/64 {
		events = nil
	}
	w.out = resolver.Outcome{Events: events[:0]}
	h.works.Put(w)
}

// serve answers a call.
func (h *Handler) serve(ctx *fasthttp.RequestCtx, e endpoint) {
	if ctx.IsOptions() {
		preflight(ctx)
		return
	}
	began := h.opts.Now()
	origin := ctx.Request.Header.Peek(fasthttp.HeaderOrigin)
	shareWith(ctx, origin) // also what is refused: the page is to learn why
	if f := h.take(ctx, e, began.UnixMilli(), string(origin)); f != nil {
		refusal.MarkStatus(ctx, f.status)
		if f == errMethod {
			ctx.Response.Header.Set(fasthttp.HeaderAllow, "POST, OPTIONS")
		}
		h.writeFailure(ctx, f)
	}
	h.counters.request(ctx.Response.StatusCode(), h.opts.Now().Sub(began))
}

func (h *Handler) writeFailure(ctx *fasthttp.RequestCtx, f *failure) {
	f.write(ctx)
	switch {
	case f.retryAfter > 0:
		h.counters.turnedAway.Inc()
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(f.retryAfter))
	case f.status == 503:
		h.counters.turnedAway.Inc()
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, h.retry)
	}
}

// take reads a request, records its events and answers it, or says why not.
func (h *Handler) take(ctx *fasthttp.RequestCtx, e endpoint, nowMs int64, origin string) *failure {
	if !ctx.IsPost() {
		return errMethod
	}
	if e.metrics {
		answer(ctx, nil, 0) // figures of the SDK itself, which the server throws away
		return nil
	}
	var source *sources.Access
	memory, limit := h.public, h.opts.BodyBytes
	if key := headerKey(&ctx.Request.Header); key != "" {
		var f *failure
		if source, f = h.authenticate(key); f != nil {
			return f
		}
		if memory, limit, f = h.admit(ctx, source, origin); f != nil {
			return f
		}
	}
	body, f := h.body(ctx, memory, limit)
	if f != nil {
		return f
	}
	// A record, and what is built for it, is rarely longer than the body; see grow.
	held := len(body) + recordHead
	if !memory.Hold(ctx, held) {
		return errNoMemory
	}
	w := h.acquire()
	w.memory, w.held = memory, held
	bad, reason := readEnvelope(w.scan, body, &w.around)
	if reason != "" {
		f := &failure{status: 400, code: codeInvalidJSON, message: "the body is " + reason + "; send JSON"}
		if w.around = (envelope{}); source != nil {
			h.show(source, callOfBody, body, f.message)
		}
		h.release(w)
		return f
	}
	if source == nil {
		// Whatever reads the first event uses the scanner's memory.
		w.keepAround()
		if source, f = h.authenticate(keyIn(w.scan, &w.around)); f == nil {
			_, limit, f = h.admit(ctx, source, origin)
		}
		if f == nil && len(body) > limit {
			f = tooLarge("the body is longer than %d bytes; send smaller batches", limit)
		}
		if f != nil {
			h.release(w)
			return f
		}
	}
	h.uses.note(source, nowMs)
	f = h.record(ctx, w, e, source, origin, body, bad, nowMs)
	if source.Public {
		// Whatever became of them: to read them is most of the work.
		h.floods.count(senderOf(ctx, source.Account), max(1, w.read), h.opts.Now())
	}
	if f != nil {
		if f.status != 503 {
			h.show(source, callOfBody, body, f.message)
		}
		h.release(w)
		return f
	}
	h.finish(ctx, w, source, body)
	h.release(w)
	return nil
}

// admit judges a request by its source: whether the page may send, from which memory its
// body comes and how long that may be.
func (h *Handler) admit(ctx *fasthttp.RequestCtx, source *sources.Access, origin string) (memory *ingest.Memory, limit int, f *failure) {
	if !source.Public {
		ingest.Authenticated(ctx)
		return h.opts.Memory, h.opts.BodyBytes, nil
	}
	// A public key authenticates no person, and a client that is no page sends no
	// origin.
	if origin != "" && !source.OriginAllowed(origin) {
		return nil, 0, errOrigin
	}
	if pause := h.floods.wait(senderOf(ctx, source.Account), h.opts.Now()); pause > 0 {
		return nil, 0, &failure{
			status: 429, code: codeTooManyEvents, retryAfter: int(pause / time.Second),
			message: fmt.Sprintf("this address sends more than %d events a second with browser keys; nothing was stored, send the request again later, or use the key of a server source", floodEvents),
		}
	}
	return h.public, min(publicBatchBytes, h.opts.BodyBytes), nil
}

// recordHead is at least the length of a record before its events.
const recordHead = 128

// record decodes the events of a body and has them applied. bad is what is wrong with what
// stands around them.
func (h *Handler) record(ctx *fasthttp.RequestCtx, w *work, e endpoint, source *sources.Access, origin string, body []byte, bad *rejection, nowMs int64) *failure {
	s := w.scan
	w.mapper = mapper{
		request: source, source: source, receivedMs: nowMs, names: &h.names, around: &w.around, room: w.mapper.room[:0],
		limits: limits{h.opts.Limits.IdentifierBytes, h.opts.Limits.NameBytes, h.opts.Limits.ObjectBytes},
	}
	if len(w.kept) == 0 {
		w.keepAround()
	}
	w.record = (&eventlog.Envelope{}).Append(w.record[:0])
	w.record = eventlog.AppendEventCount(w.record, 0)
	switch i := w.around.events; {
	case i < 0:
		if e.call == callOfBody && w.around.kind == nil && w.around.event == nil {
			return &failure{status: 400, code: codeInvalidJSON, message: `batch is missing; send {"batch": [...]}, or a call with its type`}
		}
		w.around.message = message{} // it is the event itself
		if _, f := h.one(ctx, w, e, origin, s.Space(0), 0); f != nil {
			return f
		}
	case bad != nil:
		return &failure{status: 400, code: codeInvalidJSON, message: bad.message}
	default:
		i = s.Space(i + 1)
		most := h.opts.Limits.Events
		if source.Public {
			most = min(most, publicEvents)
		}
		for n, more := 0, s.Byte(i) != ']'; more; n++ {
			if n == most {
				return tooLarge("the batch has more than %d events; send smaller batches", most)
			}
			var f *failure
			if i, f = h.one(ctx, w, e, origin, i, n); f != nil {
				return f
			}
			if i < 0 {
				return &failure{status: 400, code: codeInvalidJSON, message: "the body is " + s.Err().Error() + "; send JSON"}
			}
			if i, more = s.More(i, ']'); i < 0 {
				return &failure{status: 400, code: codeInvalidJSON, message: "the body is " + s.Err().Error() + "; send JSON"}
			}
		}
	}
	if w.events == 0 {
		return nil
	}
	return h.submit(ctx, w, source)
}

// keepAround copies what is used of the envelope: the scanner's memory is the events'.
func (w *work) keepAround() {
	m := &w.around.message
	for _, f := range []*[]byte{&m.context, &m.sent, &m.kind, &m.event} {
		if *f != nil {
			begin := len(w.kept)
			w.kept = append(w.kept, *f...)
			*f = w.kept[begin:len(w.kept):len(w.kept)]
		}
	}
}

// one reads the event at i of the body, the n-th of its batch, and adds it to the record or
// to the list of those that are refused. A failure is one of the whole request.
func (h *Handler) one(ctx *fasthttp.RequestCtx, w *work, e endpoint, origin string, i, n int) (next int, f *failure) {
	var m message
	next, bad := readMessage(w.scan, i, &m)
	if next < 0 {
		return next, nil
	}
	p := &w.mapper
	w.read++
	p.source, p.call, p.undated = p.request, e.call, false
	var ev eventlog.Event
	if key, given := m.key(); bad == nil && given && e.dialect == segmentDialect {
		bad = h.override(w, key, origin)
	}
	if bad == nil && p.source.Public && next-i > publicEventBytes {
		bad = &rejection{codeTooLarge, fmt.Sprintf("the event is longer than %d bytes; send less", publicEventBytes)}
	}
	switch {
	case bad != nil:
	case e.dialect == posthogDialect:
		bad = p.posthog(&m, &ev)
	default:
		bad = p.segment(&m, e.call, &ev)
	}
	size := bytesOf(&ev)
	if w.built += size; w.built > h.opts.RecordBytes {
		return next, tooLarge("the events have more than %d bytes with what context of the batch adds to each; send smaller batches", h.opts.RecordBytes)
	}
	switch {
	case bad != nil || !p.source.Public:
	case size > publicEventBytes:
		bad = &rejection{codeTooLarge, fmt.Sprintf("the event is longer than %d bytes with what context of the batch adds to it; send less", publicEventBytes)}
	case segment.OwnEvent(ev.Type):
		bad = &rejection{codeNotAllowed, fmt.Sprintf("the service records events of the type %s itself, and flows and statistics rely on them: a browser's key may not send them; choose another name", ev.Type)}
	}
	id, _ := textOf(m.messageID)
	if m.messageID == nil {
		id, _ = textOf(m.uuid)
	}
	if bad != nil {
		w.list = append(w.list, rejected{n, clipID(id), *bad})
		h.counters.event(p.source.Public, p.call, refused)
		if len(w.list) <= maxShown {
			h.show(p.source, p.call, w.scan.Source(i, next), bad.message)
		}
		return next, nil
	}
	if !w.grow(ctx, size+eventHead) {
		return next, errNoMemory
	}
	if p.undated {
		h.counters.undated.Inc()
	}
	ev.Call = true
	w.record = eventlog.AppendEvent(w.record, &ev)
	w.sent = append(w.sent, sent{n, i, next, p.call, clipID(id)})
	w.events++
	w.from.Calls = append(w.from.Calls, p.call.String())
	if p.original != nil && len(w.names) < eventtypes.MaxNames && h.named.isNew(p.source.Account, ev.Type) {
		w.names = append(w.names, typeName{len(w.sent) - 1, eventtypes.Name{Key: string(ev.Type), Name: string(p.original)}})
	}
	return next, nil
}

// eventHead is at least the length of an event in a record without its texts.
const eventHead = 64

// bytesOf is the length of an event's texts.
func bytesOf(ev *eventlog.Event) (n int) {
	for _, b := range [...][]byte{
		ev.Type, ev.Email, ev.ExternalID, ev.Phone, ev.FirstName, ev.LastName, ev.Geo, ev.Attributes, ev.Properties,
		ev.IdempotencyKey, ev.AnonymousID, ev.PreviousID,
	} {
		n += len(b)
	}
	return n
}

// grow sees to it that memory is held for n more bytes of the record: what stands around the
// events of a batch is in each of them, so the record may be much longer than the body.
func (w *work) grow(ctx *fasthttp.RequestCtx, n int) bool {
	need := len(w.record) + n
	if need <= w.held {
		return true
	}
	more := max(need-w.held, w.held) // as the record's buffer grows
	if !w.memory.Hold(ctx, more) {
		return false
	}
	w.held += more
	return true
}

// override judges the write key of one event, which stands for that of the request where it
// is one of the same account.
func (h *Handler) override(w *work, key, origin string) *rejection {
	of, known := w.keys[key]
	if !known {
		if len(w.keys) == maxKeys {
			return &rejection{codeInvalidKey, fmt.Sprintf("the events of the request have more than %d write keys; send them in several requests", maxKeys)}
		}
		of.source, of.bad = h.judge(w.mapper.request, key, origin)
		if w.keys == nil {
			w.keys = map[string]found{}
		}
		w.keys[key] = of
	}
	if of.bad == nil {
		w.mapper.source = of.source
	}
	return of.bad
}

// judge is override for a key that is met for the first time.
func (h *Handler) judge(request *sources.Access, key, origin string) (*sources.Access, *rejection) {
	account, ok := ParseKey(key)
	if !ok || account != request.Account {
		return nil, &rejection{codeInvalidKey, "the writeKey of the event is not one of the account that the request came for; send it in a request of its own"}
	}
	source, f := h.authenticate(key)
	if f != nil {
		return nil, &rejection{f.code, f.message}
	}
	if source.Public && origin != "" && !source.OriginAllowed(origin) {
		return nil, &rejection{errOrigin.code, errOrigin.message}
	}
	// What came under a public key stays public: the request may have come from a page.
	if request.Public && !source.Public {
		narrowed := *source
		narrowed.Public = true
		source = &narrowed
	}
	return source, nil
}

// clipID is a messageId as it is answered; the body may be gone then.
func clipID(id []byte) []byte {
	if id == nil {
		return nil
	}
	return append([]byte{}, jsonscan.Clip(id, maxMessageIDBytes)...)
}

// submit sends the record through the log.
func (h *Handler) submit(ctx *fasthttp.RequestCtx, w *work, source *sources.Access) *failure {
	id, err := h.recordID()
	if err != nil {
		return h.submitFailure(err)
	}
	env := &eventlog.Envelope{Kind: eventlog.KindEvents, Account: source.Account, ID: id, StampMs: max(w.mapper.receivedMs, h.opts.Now().UnixMilli())}
	eventlog.PutEventCount(w.record[len(env.Append(w.record[:0])):], w.events)
	if len(w.record) > h.opts.RecordBytes {
		return h.submitFailure(eventlog.ErrTooLarge)
	}
	w.from.SourceID, w.from.SourceName = source.SourceID, source.Name
	w.out.From = &w.from
	err = h.opts.Node.Submit(h.limit.Context(), source.Account, w.record, &w.out)
	if err == nil && w.out.Refusal == nil && len(w.out.Events) != w.events {
		err = fmt.Errorf("%w: %d outcomes for a record of %d events", resolver.ErrUnavailable, len(w.out.Events), w.events)
	}
	if err != nil {
		// Should the node still hold them, against its contract, they must not be another
		// request's.
		w.record, w.out, w.from = nil, resolver.Outcome{}, resolver.EventsFrom{}
		return h.submitFailure(err)
	}
	return nil
}

func (h *Handler) recordID() (id eventlog.RecordID, err error) {
	h.ids.Lock()
	defer h.ids.Unlock()
	if _, err := io.ReadFull(h.opts.Rand, id[:]); err != nil {
		return id, fmt.Errorf("randomness for a record id: %w", err)
	}
	return id, nil
}

// finish counts what became of the events, shows those that were refused and answers.
func (h *Handler) finish(ctx *fasthttp.RequestCtx, w *work, source *sources.Access, body []byte) {
	for i := range w.sent {
		s := &w.sent[i]
		o := resolver.EventOutcome{Status: resolver.EventRefused, Refusal: w.out.Refusal}
		if o.Refusal == nil {
			o = w.out.Events[i]
		}
		switch o.Status {
		case resolver.EventAccepted:
			h.counters.event(source.Public, s.call, accepted)
			continue
		case resolver.EventDuplicate:
			h.counters.event(source.Public, s.call, duplicate)
			continue
		}
		h.counters.event(source.Public, s.call, refused)
		text, code := "the event was refused", codeRefused
		if o.Refusal != nil {
			text = o.Refusal.Message
			if o.Refusal.Code == eventtypes.CodePublic {
				code = codeTooManyTypes
			}
		}
		if len(w.list) < maxShown {
			h.show(source, s.call, body[s.from:s.to], text)
		}
		w.list = append(w.list, rejected{s.index, s.messageID, rejection{code, text}})
	}
	slices.SortStableFunc(w.list, func(a, b rejected) int { return a.index - b.index })
	count, total := len(w.list), len(w.list)+w.accepted()
	if count > 0 && count == total {
		refusal.Mark(ctx, refusal.NoEvents)
	}
	h.nameTypes(source.Account, w)
	answer(ctx, w.list[:min(count, maxRejected)], count)
	h.opts.Memory.MustHold(ctx, len(ctx.Response.Body()))
}

// accepted is how many events of the record were taken, now or before.
func (w *work) accepted() (n int) {
	for i := range w.out.Events {
		if s := w.out.Events[i].Status; s == resolver.EventAccepted || s == resolver.EventDuplicate {
			n++
		}
	}
	return n
}

// nameTypes has the catalog show event types by the names that the application gives them.
// It happens once for each type, and a failure fails no request: the next event tries
// again. The type of an event that was refused may not be there, and is named by the next.
func (h *Handler) nameTypes(account uint64, w *work) {
	var names []eventtypes.Name
	for _, n := range w.names {
		if n.sent < len(w.out.Events) && w.out.Events[n.sent].Status != resolver.EventRefused {
			names = append(names, n.name)
		}
	}
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.opts.Timeout)
	defer cancel()
	if _, err := h.opts.Node.Command(ctx, account, eventtypes.CommandName, eventtypes.Names{Types: names}); err != nil {
		h.opts.Logger.Debug("event types are not named", "error", err)
		return
	}
	for _, n := range names {
		h.named.add(account, n.Key)
	}
}

// show shows people who watch an event that was refused.
func (h *Handler) show(source *sources.Access, call Call, raw []byte, reason string) {
	name := ""
	if call < calls {
		name = call.String()
	}
	h.opts.Node.NoteRefusedCall(source, name, raw, reason)
}
