package resolver

import (
	"encoding/json"

	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/resolution"
)

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
	NotAdded resolution.KindSet
	// Dropped are identifiers that are none, such as placeholders; the event was stored
	// by the others.
	Dropped resolution.KindSet
	// Erased are identifiers of persons who were erased; the event was stored by one
	// that ranks higher.
	Erased resolution.KindSet
	// Foreign says of a duplicate that none of its identifiers leads to Profile: the key
	// was used for another person's event, and this one is not stored. It is a hint to
	// the sender and no part of the recorded outcome, which golden logs hold.
	Foreign bool `json:"-"`
	// NotTaken says what of the event the feature that reads its type did not take over, see
	// [feature.Reader.Warning], likewise as a hint.
	NotTaken string `json:"-"`
	Profile  ProfileID
	Refusal  *Refusal
}

// Refusal is a reason the caller can act on.
type Refusal = refuse.Refusal

// EventsFrom is what sent the events of a record through the tracking API.
type EventsFrom struct {
	SourceID, SourceName string
	// Calls has the call of each event.
	Calls []string
}

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
	// RefusedRows are, for an import record without rows, the rows of the file that
	// were refused, from its first row on, ascending: at most 10,000.
	RefusedRows []uint32 `json:",omitempty"`
	// From says what sent the events, for people who watch; the submitter sets it before the
	// record is submitted. It is no part of what became of them.
	From *EventsFrom `json:"-"`
	// enrolments is behind what the record put into the queue of enrolments.
	enrolments automation.Position
}

// Enrols reports whether the record left people to enrol in flows to later records: see
// [Machine.Enrolled].
func (out *Outcome) Enrols() bool { return out.enrolments != automation.Position{} }

// foreignKey is the warning of a key that was used for another person's event.
const foreignKey = "not recorded: the idempotency_key was used before, for the event of another person, and this answer repeats the first one; give each event a key of its own"

// Warning says what of a stored event was not taken over, "" when all was.
func (o *EventOutcome) Warning() string {
	if o.Foreign {
		return foreignKey
	}
	w := resolution.Warning(o.NotAdded, o.Dropped, o.Erased)
	switch {
	case w == "":
		return o.NotTaken
	case o.NotTaken != "":
		return w + "; " + o.NotTaken
	}
	return w
}

func (o *Outcome) Reset(offset int64) {
	*o = Outcome{Offset: offset, Events: o.Events[:0], From: o.From}
}
