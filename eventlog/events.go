package eventlog

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Event is one behavioural event as a record carries it. Strings are valid
// UTF-8 without NUL. Geo, Attributes and Properties are JSON objects in
// canonical text: no insignificant white space, no duplicate keys, strings
// escaped only where JSON demands it, numbers as they were written. An empty
// slice means the field was absent.
type Event struct {
	Type       []byte
	Email      []byte
	ExternalID []byte
	Phone      []byte
	FirstName  []byte
	LastName   []byte
	Geo        []byte
	Attributes []byte
	Properties []byte
	// IdempotencyKey makes a retry safe.
	IdempotencyKey []byte
	// TimeMs is the event's own time in Unix milliseconds. It is read only
	// when HasTime is set; other events happen at log time.
	TimeMs  int64
	HasTime bool
	// Redacted says that the event was of an erased person: its identifiers are
	// masked or another's, and it is part of no history.
	Redacted bool
	// Refused says that the event was refused, or is to be, because of an identifier
	// of an erased person. RefusedKind is the identifier's kind; nothing else
	// is left of the event but its type and time.
	Refused     bool
	RefusedKind uint8

	// The fields below come from the tracking API alone, under rules 6 and later.

	// AnonymousID is what an SDK made up for a device: the fourth kind of identifier.
	// It ranks last and is never shown as an external id.
	AnonymousID []byte
	// PreviousID makes the event an alias: whom ExternalID was called before. It is looked
	// up as an anonymous id, then as an external id, and the profiles become one.
	PreviousID []byte
	// Public says that the event came under a key that everybody can read. It may attach
	// an anonymous profile to an identified one, and never joins two identified ones.
	Public bool
	// MessageID says that IdempotencyKey is the messageId of an SDK. Those have a
	// namespace of their own: an idempotency key of the events API with the same text is
	// another key.
	MessageID bool
	// Call says that the event is a call of an SDK, under rules 7 and later. Its time is
	// that of the call, a moment before it arrived, and calls arrive in any order: what it
	// says of a person is compared with the times of other calls, and not with that of the
	// profile's last event.
	Call bool
}

const (
	hasTimeBit   = 1 << 9
	redactedBit  = 1 << 10
	refusedBit   = 1 << 11
	anonymousBit = 1 << 12
	previousBit  = 1 << 13
	flagsBit     = 1 << 14
	knownBits    = flagsBit<<1 - 1
)

// The bits of the byte of flags, which is there with flagsBit alone.
const (
	publicFlag    = 1 << 0
	messageIDFlag = 1 << 1
	callFlag      = 1 << 2
	knownFlags    = callFlag<<1 - 1
)

// fields lists the optional byte fields in their order on disk; bit i of the
// presence mask is field i. Those of the tracking API stand behind the time and the
// kind of a refused event.
func (e *Event) fields() [9]*[]byte {
	return [9]*[]byte{
		&e.Email, &e.ExternalID, &e.Phone, &e.FirstName, &e.LastName,
		&e.Geo, &e.Attributes, &e.Properties, &e.IdempotencyKey,
	}
}

// userFields is how many of the fields, the first ones, say something of the user.
const userFields = 7

// AppendEvent appends one event of an events body to dst.
func AppendEvent(dst []byte, e *Event) []byte {
	var mask uint16
	fields := e.fields()
	for i, f := range fields {
		if len(*f) > 0 {
			mask |= 1 << i
		}
	}
	if e.HasTime {
		mask |= hasTimeBit
	}
	if e.Redacted {
		mask |= redactedBit
	}
	if e.Refused {
		mask |= refusedBit
	}
	if len(e.AnonymousID) > 0 {
		mask |= anonymousBit
	}
	if len(e.PreviousID) > 0 {
		mask |= previousBit
	}
	flags := e.flags()
	if flags != 0 {
		mask |= flagsBit
	}
	dst = binary.LittleEndian.AppendUint16(dst, mask)
	dst = appendBytes(dst, e.Type)
	for _, f := range fields {
		if len(*f) > 0 {
			dst = appendBytes(dst, *f)
		}
	}
	if e.HasTime {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.TimeMs))
	}
	if e.Refused {
		dst = append(dst, e.RefusedKind)
	}
	if len(e.AnonymousID) > 0 {
		dst = appendBytes(dst, e.AnonymousID)
	}
	if len(e.PreviousID) > 0 {
		dst = appendBytes(dst, e.PreviousID)
	}
	if flags != 0 {
		dst = append(dst, flags)
	}
	return dst
}

func (e *Event) flags() (flags byte) {
	if e.Public {
		flags |= publicFlag
	}
	if e.MessageID {
		flags |= messageIDFlag
	}
	if e.Call {
		flags |= callFlag
	}
	return flags
}

func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// EventRules is the version of the rules by which the state machine reads the events
// of a body. Each body carries the version it was written under, so that an old log
// keeps its meaning. The versions:
//
//	0  an identifier that is a placeholder or blank refuses the event
//	1  it is left out when the event has another one; a second e-mail or external id
//	   that a lower-ranked identifier attaches is noted as a conflict; an event with a
//	   time of its own that is too old is refused, and one that is older than a day
//	   starts no flow
//	2  the account has a catalog of properties and attributes from here on
//	3  event_count takes events of all types that are sent, also of those that the
//	   service records itself
//	4  an event changes no e-mail or phone that its profile has subscribed: another one is
//	   attached, and is not the one that is shown and sent to
//	5  likewise when profiles become one: the e-mail or phone of the one that is subscribed
//	   is shown and sent to
//	6  events may have anonymous ids, previous ids and flags; nothing else changes
//	7  an event under a public key attaches no second e-mail, external id or phone, and
//	   what it attaches to an identified profile is a claim until a server's event confirms it;
//	   it brings a bounded number of new event types; a profile that is full of anonymous
//	   ids gives up the oldest; those of erased persons are free for the next person;
//	   the previous id of an alias is recognised as an external id too, and the id that
//	   the person has now may be an e-mail
//	8  claims yield to servers: an event of a server that has an identifier of another
//	   profile, or another value of a kind that the claiming profile has, is not that
//	   profile's; whom it names is then joined with no other identified profile; claims
//	   alone do not confirm each other
//	9  order_placed, order_refunded and cart_updated with their documented properties are
//	   orders, refunds and carts; an order with the order_id of one before is a repeat
const EventRules = 9

// maxBodyEvents is how many events a body can count: the fourth byte of the count is
// the version of the rules.
const maxBodyEvents = 1<<24 - 1

// AppendEventCount appends the head of an events body: how many events follow, at most
// 16,777,215, and [EventRules]. It always takes four bytes, so that a writer can put it
// in front of events it has not counted yet (see [PutEventCount]).
func AppendEventCount(dst []byte, n int) []byte {
	return binary.LittleEndian.AppendUint32(dst, eventCount(n))
}

// PutEventCount overwrites a count that [AppendEventCount] wrote at b[0:4].
func PutEventCount(b []byte, n int) {
	binary.LittleEndian.PutUint32(b, eventCount(n))
}

func eventCount(n int) uint32 {
	if n < 0 || n > maxBodyEvents {
		panic(fmt.Sprintf("eventlog: a body of %d events", n))
	}
	return uint32(n) | EventRules<<24
}

// EventsReader reads an events body event by event.
type EventsReader struct {
	rest  []byte
	left  int
	rules uint8
	err   error

	user       []byte // see User
	userFields uint16
}

// NewEventsReader starts reading an events body. The error wraps [ErrFormat].
func NewEventsReader(body []byte) (EventsReader, error) {
	if len(body) < 4 {
		return EventsReader{}, fmt.Errorf("%w: events body of %d bytes", ErrFormat, len(body))
	}
	n := binary.LittleEndian.Uint32(body)
	rules := uint8(n >> 24)
	if n &= maxBodyEvents; rules > EventRules {
		return EventsReader{}, fmt.Errorf("%w: %w: version %d of the rules for events, this build has version %d", ErrFormat, ErrNewerRules, rules, EventRules)
	}
	// The smallest event takes three bytes: a count that cannot fit is damage,
	// and must not size anybody's slice.
	if int64(n)*3 > int64(len(body)-4) {
		return EventsReader{}, fmt.Errorf("%w: %d events in %d bytes", ErrFormat, n, len(body))
	}
	return EventsReader{rest: body[4:], left: int(n), rules: rules}, nil
}

// Rules is the version of the rules that the body was written under, at most
// [EventRules].
func (r *EventsReader) Rules() uint8 { return r.rules }

// Len is the number of events not read yet.
func (r *EventsReader) Len() int { return r.left }

// Next decodes the next event into e, whose slices then point into the body.
// It returns false at the end or at a fault; see [EventsReader.Err].
func (r *EventsReader) Next(e *Event) bool {
	if r.err != nil {
		return false
	}
	if r.left == 0 {
		if len(r.rest) != 0 {
			r.err = fmt.Errorf("%w: %d bytes behind the last event", ErrFormat, len(r.rest))
		}
		return false
	}
	if len(r.rest) < 2 {
		return r.fail("event without a mask")
	}
	mask := binary.LittleEndian.Uint16(r.rest)
	r.rest = r.rest[2:]
	if mask&^knownBits != 0 {
		return r.fail("unknown field in an event")
	}
	*e = Event{}
	if !r.bytes(&e.Type) {
		return false
	}
	user := r.rest
	for i, f := range e.fields() {
		if i == userFields {
			r.user, r.userFields = user[:len(user)-len(r.rest)], mask&(1<<userFields-1)
		}
		if mask&(1<<i) != 0 && !r.bytes(f) {
			return false
		}
	}
	if mask&hasTimeBit != 0 {
		if len(r.rest) < 8 {
			return r.fail("event time cut short")
		}
		e.HasTime = true
		e.TimeMs = int64(binary.LittleEndian.Uint64(r.rest))
		r.rest = r.rest[8:]
	}
	e.Redacted = mask&redactedBit != 0
	if e.Refused = mask&refusedBit != 0; e.Refused {
		if len(r.rest) < 1 {
			return r.fail("refused event cut short")
		}
		e.RefusedKind, r.rest = r.rest[0], r.rest[1:]
	}
	if mask&anonymousBit != 0 && !r.bytes(&e.AnonymousID) || mask&previousBit != 0 && !r.bytes(&e.PreviousID) {
		return false
	}
	if mask&flagsBit != 0 {
		if len(r.rest) < 1 || r.rest[0]&^knownFlags != 0 {
			return r.fail("flags of an event")
		}
		e.Public, e.MessageID, e.Call = r.rest[0]&publicFlag != 0, r.rest[0]&messageIDFlag != 0, r.rest[0]&callFlag != 0
		r.rest = r.rest[1:]
	}
	r.left--
	return true
}

// User is the encoding of what the event that was read last says of its user beside ids that
// SDKs made up: e-mail, external id, phone, names, geo and attributes. fields has a bit for each
// of them that is there, in this order. Events that say the same have the same of both. The
// bytes are the body's.
func (r *EventsReader) User() (encoded []byte, fields uint16) { return r.user, r.userFields }

// Rest is the number of bytes behind the events that were read.
func (r *EventsReader) Rest() int { return len(r.rest) }

// Err is the fault that ended reading, nil at a proper end. It wraps
// [ErrFormat].
func (r *EventsReader) Err() error { return r.err }

func (r *EventsReader) fail(reason string) bool {
	r.err = fmt.Errorf("%w: %s", ErrFormat, reason)
	return false
}

func (r *EventsReader) bytes(dst *[]byte) bool {
	n, w := binary.Uvarint(r.rest)
	if w <= 0 || n > math.MaxInt32 || int(n) > len(r.rest)-w {
		return r.fail("field longer than the record")
	}
	*dst = r.rest[w : w+int(n) : w+int(n)]
	r.rest = r.rest[w+int(n):]
	return true
}

// ImportHead precedes the events body of a [KindImport] record: rows
// [FirstRow, FirstRow+Rows) of the file with this content. Rows that were
// refused are counted in Rows but have no event.
type ImportHead struct {
	// File is the SHA-256 of the whole file's bytes.
	File [32]byte
	// FirstRow is the number of the chunk's first row, from 0.
	FirstRow uint64
	// Rows is how many rows of the file the chunk covers.
	Rows uint32
	// TriggerFlows lets the events enrol profiles into flows.
	TriggerFlows bool
	// ListsRefused says that Refused is known. Heads of earlier builds have no list.
	ListsRefused bool
	// Refused are the places in the chunk, ascending, of the rows that have no event.
	Refused []uint32
}

// importHeadSize is that of a head without a list.
const importHeadSize = 32 + 8 + 4 + 1

// The flags of an import head.
const (
	importTriggersFlows = 1 << 0
	importListsRefused  = 1 << 1
)

// Append appends the encoded head to dst.
func (h *ImportHead) Append(dst []byte) []byte {
	dst = append(dst, h.File[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, h.FirstRow)
	dst = binary.LittleEndian.AppendUint32(dst, h.Rows)
	var flags byte
	if h.TriggerFlows {
		flags = importTriggersFlows
	}
	if !h.ListsRefused {
		return append(dst, flags)
	}
	dst = append(dst, flags|importListsRefused)
	dst = binary.AppendUvarint(dst, uint64(len(h.Refused)))
	next := uint32(0)
	for _, place := range h.Refused {
		dst = binary.AppendUvarint(dst, uint64(place-next))
		next = place + 1
	}
	return dst
}

// DecodeImportHead reads the head of an import record's body and returns the
// events body behind it. The error wraps [ErrFormat].
func DecodeImportHead(body []byte) (ImportHead, []byte, error) {
	var h ImportHead
	if len(body) < importHeadSize {
		return h, nil, fmt.Errorf("%w: import head cut short", ErrFormat)
	}
	copy(h.File[:], body)
	h.FirstRow = binary.LittleEndian.Uint64(body[32:])
	h.Rows = binary.LittleEndian.Uint32(body[40:])
	flags := body[44]
	if flags > importTriggersFlows|importListsRefused || h.FirstRow > math.MaxInt64 {
		return h, nil, fmt.Errorf("%w: import head", ErrFormat)
	}
	h.TriggerFlows, h.ListsRefused = flags&importTriggersFlows != 0, flags&importListsRefused != 0
	if body = body[importHeadSize:]; !h.ListsRefused {
		return h, body, nil
	}
	n, w := binary.Uvarint(body)
	if w <= 0 || n > uint64(h.Rows) || n > uint64(len(body)-w) {
		return h, nil, fmt.Errorf("%w: import head: list of refused rows", ErrFormat)
	}
	body = body[w:]
	if n > 0 {
		h.Refused = make([]uint32, 0, n)
	}
	for next := uint64(0); n > 0; n-- {
		gap, w := binary.Uvarint(body)
		if w <= 0 || gap >= uint64(h.Rows)-next {
			return h, nil, fmt.Errorf("%w: import head: list of refused rows", ErrFormat)
		}
		h.Refused = append(h.Refused, uint32(next+gap))
		next, body = next+gap+1, body[w:]
	}
	return h, body, nil
}

// AppendCommand appends the body of a [KindCommand] record: the command's name
// and its arguments as a JSON object.
func AppendCommand(dst []byte, name string, args []byte) []byte {
	dst = appendBytes(dst, []byte(name))
	return append(dst, args...)
}

// DecodeCommand reads the body of a [KindCommand] record. The error wraps
// [ErrFormat].
func DecodeCommand(body []byte) (name string, args []byte, err error) {
	r := EventsReader{rest: body}
	var n []byte
	if !r.bytes(&n) {
		return "", nil, fmt.Errorf("%w: command without a name", ErrFormat)
	}
	return string(n), r.rest, nil
}
