package muster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Event is something that a person did. Lengths are bytes of UTF-8.
type Event struct {
	// Type says what happened, as a key in snake case of at most 128 bytes, such as
	// "item_purchased". Required.
	Type string
	// User says who did it. Required.
	User User
	// Properties say more about the event, such as "value" or "currency"; at most 64 KiB
	// of JSON, and 32 levels deep.
	Properties map[string]any
	// IdempotencyKey makes a repeat harmless: the server records one event for each key
	// within 72 hours or longer. At most 256 bytes. Empty: Send makes a random one. Give
	// one of your own, such as "order-1001", where the same event may be sent by
	// another process or after a restart.
	IdempotencyKey string
	// Timestamp is when it happened; not in the future by the server's clock, and by
	// default at most 720 hours ago. Milliseconds are kept. Zero: when it reaches the
	// server. Set it for events of the past only: such an event fills gaps of the
	// profile and overwrites nothing, and starts no flow when it is older than a day.
	Timestamp time.Time
}

// User is the person of an event. At least one of Email, ExternalID and Phone is
// required; the server looks for the profile in this order. Each text has at most 512
// bytes; empty ones are left out.
type User struct {
	Email      string
	ExternalID string // your own identifier of the person
	Phone      string
	FirstName  string
	LastName   string
	Geo        map[string]any // updates the profile, such as "country"; at most 64 KiB of JSON
	Attributes map[string]any // updates the profile; at most 64 KiB of JSON
}

// wireEvent is an event as it is sent.
type wireEvent struct {
	Type           string         `json:"event_type"`
	User           wireUser       `json:"user"`
	Properties     map[string]any `json:"properties,omitempty"`
	IdempotencyKey string         `json:"idempotency_key"`
	Timestamp      string         `json:"timestamp,omitempty"`
}

type wireUser struct {
	Email      string         `json:"email,omitempty"`
	ExternalID string         `json:"external_id,omitempty"`
	Phone      string         `json:"phone,omitempty"`
	FirstName  string         `json:"first_name,omitempty"`
	LastName   string         `json:"last_name,omitempty"`
	Geo        map[string]any `json:"geo,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

// timeLayout is RFC 3339 with the milliseconds that the server keeps. Formatting cuts
// off what is smaller, so that no time gets later.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// check reports what the server would refuse for certain. Other rules are the
// server's alone: its answer says more about them.
func (e *Event) check() error {
	switch {
	case e.Type == "":
		return errors.New(`muster: Event.Type is empty; name what happened, such as "item_viewed"`)
	case e.User.Email == "" && e.User.ExternalID == "" && e.User.Phone == "":
		return errors.New("muster: Event.User has no identifier; set at least one of Email, ExternalID and Phone")
	}
	return nil
}

// encode returns the event's JSON text.
func (e *Event) encode() ([]byte, error) {
	wire := wireEvent{Type: e.Type, User: wireUser(e.User), Properties: e.Properties, IdempotencyKey: e.IdempotencyKey}
	if !e.Timestamp.IsZero() {
		wire.Timestamp = e.Timestamp.UTC().Format(timeLayout)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&wire); err != nil {
		return nil, fmt.Errorf("muster: the event cannot be written as JSON: %w", err)
	}
	if n := depth(b.Bytes()); n > maxDepth {
		return nil, fmt.Errorf("muster: the event is nested %d levels deep, and %d is the most; flatten its properties", n, maxDepth)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// maxDepth is how many levels the JSON of an event may have. The server takes far fewer,
// and says so of an event that is beyond; what is beyond this cannot be read again for
// OnDropped.
const maxDepth = 1000

// depth returns how many levels a JSON text has.
func depth(text []byte) (most int) {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			most = max(most, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return most
}

// decodeEvent returns the event of a text that encode made. Numbers become
// [json.Number], which keeps them as they were sent.
func decodeEvent(text []byte) Event {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var wire wireEvent
	if err := dec.Decode(&wire); err != nil {
		panic("muster: an event of the queue is not what encode made: " + err.Error())
	}
	e := Event{Type: wire.Type, User: User(wire.User), Properties: wire.Properties, IdempotencyKey: wire.IdempotencyKey}
	if wire.Timestamp != "" {
		e.Timestamp, _ = time.Parse(timeLayout, wire.Timestamp)
	}
	return e
}
