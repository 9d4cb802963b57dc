package feature

import (
	"bytes"
	"encoding/json"
)

// Event is an event that the service records itself on a profile. It is one like any other:
// in histories, in conditions, in the catalog.
type Event struct {
	Type       string
	Properties Properties
}

// NewEvent returns an event of a type.
func NewEvent(typ string, p Properties) Event { return Event{Type: typ, Properties: p} }

// Recorded is an event that the service records itself, on a profile and at an instant.
type Recorded struct {
	Ordinal uint32 // of the profile
	AtMs    int64  // the event's own time, Unix ms
	Event   Event
}

// Properties are those of an event that the service records itself.
type Properties map[string]any

// Encode is the properties in canonical text.
func (p Properties) Encode() []byte {
	if len(p) == 0 {
		return nil
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(p); err != nil {
		panic(err) // texts and numbers encode
	}
	return bytes.TrimSpace(buf.Bytes())
}
