package resolver

import (
	"encoding/hex"
	"encoding/json"
)

// ProfileID names a profile for good: a merged profile's id stays valid as an
// alias of the winner's.
type ProfileID [16]byte

const profilePrefix = "prf_"

// AppendText appends the id as clients see it: "prf_" and 32 hexadecimal digits.
func (id ProfileID) AppendText(dst []byte) []byte {
	dst = append(dst, profilePrefix...)
	return hex.AppendEncode(dst, id[:])
}

// String is the id as clients see it.
func (id ProfileID) String() string { return string(id.AppendText(nil)) }

// ParseProfileID reads an id as clients send it; ok is false when it is none.
func ParseProfileID(s string) (id ProfileID, ok bool) {
	if len(s) != len(profilePrefix)+32 || s[:len(profilePrefix)] != profilePrefix {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s[len(profilePrefix):]))
	return id, err == nil
}

// EventStatus says what became of one event.
type EventStatus uint8

// What can become of an event.
const (
	// EventAccepted means the event was recorded against Profile.
	EventAccepted EventStatus = iota + 1
	// EventDuplicate means an event with this idempotency key was recorded
	// before; Profile is the first answer and nothing was changed.
	EventDuplicate
	// EventRefused means nothing was stored; Refusal says why.
	EventRefused
)

// EventOutcome is the answer to one event.
type EventOutcome struct {
	Status EventStatus
	// NotAdded are identifiers that the profile had no room for; the event was stored
	// all the same, and the profile's conflicts have them.
	NotAdded KindSet
	// Dropped are identifiers that are none, such as placeholders; the event was stored
	// by the others.
	Dropped KindSet
	// Erased are identifiers of persons who were erased; the event was stored by one
	// that ranks higher.
	Erased  KindSet
	Profile ProfileID
	Refusal *Refusal
}

// Refusal is a reason the caller can act on.
type Refusal struct {
	// Code classifies the refusal: "invalid", "not_found", "conflict",
	// "limit", "forbidden".
	Code string
	// Field is the field at fault, as the caller wrote it; empty if none is.
	Field string
	// Message names the fault and the remedy in a sentence.
	Message string
}

// Error makes a refusal an error.
func (r *Refusal) Error() string { return r.Message }

// Outcome is the answer to one record. A caller may pass the same Outcome to
// Submit again; its Events slice is then reused.
type Outcome struct {
	// Offset is where the record stands in its partition.
	Offset int64
	// Events has one entry per event of the record, in order.
	Events []EventOutcome
	// Reply is the answer to a command: a JSON value, or nil.
	Reply json.RawMessage
	// Refusal is set when the whole record was refused and changed nothing.
	Refusal *Refusal
	// NextRow is, for an import record, the first row of the file that is not
	// stored yet.
	NextRow uint64
	// enrolments is behind what the record put into the queue of enrolments.
	enrolments queuePosition
}
