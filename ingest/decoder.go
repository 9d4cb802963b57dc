package ingest

import (
	"fmt"
	"slices"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/jsonscan"
)

// Decoder turns the JSON text of events into one record at a time. It is used
// by one goroutine and keeps its memory from record to record.
//
// The endpoints hand it whole bodies. The import command feeds it rows:
//
//	d.StartImport(fileHash, firstRow, triggerFlows)
//	for each row { err := d.AppendImportRow(row, nowMs) … }
//	record := d.Finish(&eventlog.Envelope{Account: …, ID: …, StampMs: …})
type Decoder struct {
	limits Limits
	scan   *jsonscan.Scanner

	// rec is the record so far: room for the envelope and, in an import, its
	// head, the count of events, and the events.
	rec  []byte
	kind eventlog.Kind
	head eventlog.ImportHead
	// refused and headText are memory for the head's list of refused rows and its text.
	refused  []uint32
	headText []byte
	events   int

	// results has an entry for each event read, also those refused.
	results []result
	// texts holds the error texts of results.
	texts []byte
	// fault is that of the event at hand.
	fault fault
	// eventNames and userNames hold the unknown keys of the event at hand.
	eventNames, userNames jsonscan.Object
	// nowMs is the present, which no event is later than.
	nowMs int64
	// ignoreUnknown lets events have top-level fields that are not understood.
	ignoreUnknown bool
	// unknownName is the first of them of the event at hand for which it is refused,
	// unknownText what is wrong with it.
	unknownName, unknownText []byte
	// unknownUser is the first field of user that is not understood, of the event at
	// hand; it is left out. userSeen are the members that its user has.
	unknownUser []byte
	userSeen    uint
	// warnings holds the texts of what was left out of results.
	warnings []byte
}

// result is what the decoder found of one event: without a text, it is in the
// record.
type result struct {
	start, end         int32 // of the text in texts
	from, to           int32 // of the event in the body
	warnStart, warnEnd int32 // of the text in warnings
}

// NewDecoder returns a decoder; zero limits mean the defaults.
func NewDecoder(limits Limits) (*Decoder, error) {
	limits = limits.withDefaults()
	if err := limits.validate(); err != nil {
		return nil, err
	}
	return newDecoder(limits), nil
}

func newDecoder(limits Limits) *Decoder {
	return &Decoder{limits: limits, scan: jsonscan.New(limits.Depth, limits.ObjectBytes)}
}

// IgnoreUnknown sets whether events may have top-level fields that are not understood;
// by default they are refused.
func (d *Decoder) IgnoreUnknown(ignore bool) { d.ignoreUnknown = ignore }

// RowError says why a row was refused, and what to do about it.
type RowError struct {
	// Message names the field at fault and the remedy.
	Message string
}

func (e *RowError) Error() string { return e.Message }

// StartImport begins an import record of the rows from firstRow on of the file
// whose content has this SHA-256. A record that was not finished is dropped.
func (d *Decoder) StartImport(file [32]byte, firstRow uint64, triggerFlows bool) {
	d.start(eventlog.KindImport)
	d.head = eventlog.ImportHead{File: file, FirstRow: firstRow, TriggerFlows: triggerFlows}
}

// AppendImportRow appends one row, the JSON text of an event with a timestamp,
// to the record. The timestamp must not be after nowMs (Unix milliseconds). A
// row that is refused makes a [*RowError]; it still counts as a row of the
// record, without an event. row is not kept.
func (d *Decoder) AppendImportRow(row []byte, nowMs int64) error {
	s := d.scan
	s.Reset(row)
	d.nowMs = nowMs
	mark, events := len(d.rec), d.events
	i := d.event(s.Space(0))
	if i >= 0 {
		i = s.End(i)
	}
	if i < 0 {
		d.rec, d.events = d.rec[:mark], events
		d.dropFault()
		d.refuse("the row is %s; write one JSON object in each row", s.Err())
	}
	d.endEvent()
	if text := d.errorText(len(d.results) - 1); len(text) > 0 {
		return &RowError{Message: string(text)}
	}
	return nil
}

// Rows is how many events were read for the record at hand, also those refused.
func (d *Decoder) Rows() int { return len(d.results) }

// Events is how many events the record at hand holds.
func (d *Decoder) Events() int { return d.events }

// Size is the length of the record at hand, in bytes, without an import's list of refused
// rows.
func (d *Decoder) Size() int { return len(d.rec) }

// Finish completes the record and returns it. The envelope's Kind is the
// decoder's to set. The record is valid until the next one is begun.
func (d *Decoder) Finish(e *eventlog.Envelope) []byte {
	e.Kind = d.kind
	at := len(e.Append(d.rec[:0]))
	if d.kind == eventlog.KindImport {
		at = d.finishImportHead(at)
	}
	eventlog.PutEventCount(d.rec[at:], d.events)
	return d.rec
}

// finishImportHead writes the head at a place of the record, makes room for the list of
// refused rows if there are any, and returns where the events begin.
func (d *Decoder) finishImportHead(at int) int {
	d.head.Rows, d.head.ListsRefused, d.head.Refused = uint32(len(d.results)), true, nil
	d.headText = d.head.Append(d.headText[:0])
	empty := len(d.headText)
	d.refused = d.refused[:0]
	for i := range d.results {
		if len(d.errorText(i)) > 0 {
			d.refused = append(d.refused, uint32(i))
		}
	}
	d.head.Refused = d.refused
	d.headText = d.head.Append(d.headText[:0])
	if more := len(d.headText) - empty; more > 0 {
		d.rec = slices.Insert(d.rec, at+empty, make([]byte, more)...)
	}
	return at + copy(d.rec[at:], d.headText)
}

// start begins a record with room for what Finish fills in.
func (d *Decoder) start(kind eventlog.Kind) {
	d.kind, d.events = kind, 0
	d.results, d.texts, d.warnings = d.results[:0], d.texts[:0], d.warnings[:0]
	d.dropFault()
	d.rec = (&eventlog.Envelope{}).Append(d.rec[:0])
	if kind == eventlog.KindImport {
		d.rec = (&eventlog.ImportHead{ListsRefused: true}).Append(d.rec)
	}
	d.rec = eventlog.AppendEventCount(d.rec, 0)
}

// reserve makes room for the record of a body in one piece: no record is longer
// than its body and a head.
func (d *Decoder) reserve(body []byte) {
	d.rec = slices.Grow(d.rec[:0], len(body)+recordHead)
}

// endEvent notes the result of the event at hand.
func (d *Decoder) endEvent() {
	r := result{start: int32(d.fault.start), end: int32(len(d.texts)), warnStart: int32(len(d.warnings))}
	if !d.fault.set && len(d.unknownUser) > 0 && !d.ignoreUnknown {
		d.warnings = append(d.warnings, d.unknownOfUser()...)
	}
	r.warnEnd = int32(len(d.warnings))
	d.results = append(d.results, r)
	d.fault = fault{start: len(d.texts)}
}

// spans notes where in the body the last event stands.
func (d *Decoder) spans(from, to int) {
	r := &d.results[len(d.results)-1]
	r.from, r.to = int32(from), int32(to)
}

// errorText is the error of the event in this place, empty if it has none.
func (d *Decoder) errorText(place int) []byte {
	r := d.results[place]
	return d.texts[r.start:r.end]
}

// warning says what of the event in this place was left out, empty for nothing.
func (d *Decoder) warning(place int) []byte {
	r := d.results[place]
	return d.warnings[r.warnStart:r.warnEnd]
}

// shrink frees memory beyond about limit bytes in each buffer.
func (d *Decoder) shrink(limit int) {
	d.scan.Shrink(limit)
	if cap(d.rec) > limit {
		d.rec = nil
	}
	if cap(d.results)*24 > limit {
		d.results = nil
	}
	if cap(d.warnings) > limit {
		d.warnings = nil
	}
	if cap(d.texts) > limit {
		d.texts = nil
	}
}

// fault is why the event at hand is refused.
type fault struct {
	set bool
	// malformed faults make a single request a bad one (400).
	malformed bool
	// start is where its text begins in texts.
	start int
}

// refuse notes why the event at hand is refused. The first reason stands.
func (d *Decoder) refuse(format string, args ...any) {
	if d.fault.set {
		return
	}
	d.fault.set = true
	d.texts = fmt.Appendf(d.texts, format, args...)
}

// malformed is refuse for what makes a single request a bad one. It takes the
// place of a reason that does not.
func (d *Decoder) malformed(format string, args ...any) {
	if d.fault.malformed {
		return
	}
	d.dropFault()
	d.fault.malformed = true
	d.refuse(format, args...)
}

func (d *Decoder) dropFault() {
	start := min(d.fault.start, len(d.texts))
	d.texts = d.texts[:start]
	d.fault = fault{start: start}
}

// refuseScanned turns the scanner's fault, if there is one, into the event's.
// field is what was scanned; empty for the event itself.
func (d *Decoder) refuseScanned(field string) bool {
	return d.scan.HasFault() && d.refuseFault(field)
}

func (d *Decoder) refuseFault(field string) bool {
	f := d.scan.Fault()
	where := field + string(f.Path)
	if where == "" {
		where = "the event"
	}
	switch f.Kind {
	case jsonscan.FaultDuplicate:
		d.refuse("%s.%s occurs twice; send each key of an object once", where, f.Key)
	case jsonscan.FaultDepth:
		d.refuse("%s is nested deeper than %d levels; flatten it", where, d.limits.Depth)
	case jsonscan.FaultRange:
		d.refuse("%s is a number beyond the range of a 64-bit floating point number; send it as a string", where)
	case jsonscan.FaultSurrogate:
		d.refuse(`%s holds a \u escape of half a character (a lone surrogate); send whole characters`, where)
	case jsonscan.FaultNUL:
		d.refuse(`%s holds the character NUL (\u0000); remove it`, where)
	case jsonscan.FaultSize:
		d.refuse("%s is longer than %d bytes; send less, or spread it over several events", where, d.limits.ObjectBytes)
	}
	d.scan.ClearFault()
	return true
}
