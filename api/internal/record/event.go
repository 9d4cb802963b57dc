package record

import (
	"encoding/json"

	"github.com/musterhq/muster/query"
)

// Event is an event of a profile.
type Event struct {
	EventType      string          `json:"event_type"`
	Timestamp      string          `json:"timestamp"`
	Properties     json.RawMessage `json:"properties"`
	IdempotencyKey *string         `json:"idempotency_key"`
}

// Events are a profile's events of history, in the same order.
func Events(entries []query.TimelineEntry) []Event {
	out := make([]Event, len(entries))
	for i, e := range entries {
		out[i] = Event{e.EventType, Time(e.Key.TimeMs), Object(e.Properties), TextOrNull(e.IdempotencyKey)}
	}
	return out
}
