package keyapi

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/resolver"
)

// eventCalls are the calls that record events.
type eventCalls struct{ events Events }

func (e eventCalls) operations() keycall.Group {
	return keycall.Group{Group: operation.Group{Surface: operation.SurfaceC, Tag: "Events (v1)", Title: "Events", About: "Events by e-mail. The rules are those of `POST /api/v1/events`."}, Routes: []keycall.Route{
		{Handle: e.record, Operation: operation.Operation{Method: "POST", Path: "/events", Permission: "events:write", ID: "v1RecordEvent", Summary: "Record an event",
			Body: shape.Object(
				shape.Req("email", shape.Text("ann@example.com", "Who did it.").Bytes(1, 512)),
				shape.Req("event", shape.Text("item_purchased", "What happened: a key in snake case.").Bytes(1, 128).With("pattern", "^[a-z0-9]+(_[a-z0-9]+)*$")),
				shape.Opt("properties", shape.FreeObject(shape.Pairs("value", 79.9), "What the event says. At most 64 KiB.")),
				shape.Opt("idempotency_key", shape.Text("order-1001", "Makes a repeat harmless.").Bytes(0, 256)), ingest.EventTime(),
			).Open(), Data: shape.Object(shape.Req("profile_id", shape.ProfileID("The profile it was recorded against.")),
				shape.Opt("warning", shape.Text("email not added: the profile may have no more identifiers; see its conflicts", "What of the event was not taken over. Absent when there is nothing to tell.")))}},
	}}
}

// record answers POST /events of Surface C: one event by e-mail, under the
// rules of Surface B.
func (e eventCalls) record(c *keycall.Call) (any, error) {
	var given map[string]json.RawMessage
	if err := c.Decode(&given); err != nil {
		return nil, err
	}
	if err := unknownEventField(c, given); err != nil {
		return nil, err
	}
	var in struct {
		Email      json.RawMessage `json:"email"`
		Event      json.RawMessage `json:"event"`
		Properties json.RawMessage `json:"properties"`
		// IdempotencyKey is our own: it makes a retry safe as it does on Surface B.
		IdempotencyKey json.RawMessage `json:"idempotency_key"`
		// Timestamp is our own, too: when the event happened, as on Surface B.
		Timestamp json.RawMessage `json:"timestamp"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name string
		raw  json.RawMessage
	}{{"email", in.Email}, {"event", in.Event}} {
		if len(f.raw) == 0 || string(f.raw) == "null" || string(f.raw) == `""` {
			return nil, keycall.Fail("%s Field required", f.name)
		}
	}
	event, err := json.Marshal(eventB{in.Event, userB{in.Email}, in.Properties, in.IdempotencyKey, in.Timestamp})
	if err != nil {
		return nil, err
	}
	profile, warning, err := e.events.Record(c.Key.Account, event)
	var refused *ingest.EventError
	if errors.As(err, &refused) {
		err = &ingest.EventError{Status: refused.Status, Message: fieldsOfC(refused.Message)}
	}
	if err != nil {
		return nil, err
	}
	data := map[string]string{"profile_id": profile.String()}
	if warning != "" {
		data["warning"] = fieldsOfC(warning)
	}
	return data, nil
}

// eventB is an event in the form of Surface B.
type eventB struct {
	Type           json.RawMessage `json:"event_type"`
	User           userB           `json:"user"`
	Properties     json.RawMessage `json:"properties,omitempty"`
	IdempotencyKey json.RawMessage `json:"idempotency_key,omitempty"`
	Timestamp      json.RawMessage `json:"timestamp,omitempty"`
}

// unknownEventField refuses a field that an event of Surface C does not have, unless the
// account's settings ignore those.
func unknownEventField(c *keycall.Call, given map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains([]string{"email", "event", "properties", "idempotency_key", "timestamp"}, name) {
			continue
		}
		ignore := false
		if err := c.Read(func(v *resolver.View) error { ignore = v.Settings().IgnoreUnknownFields; return nil }); err != nil || ignore {
			return err
		}
		if name == "event_type" {
			return keycall.Fail("event_type is not a field of an event; did you mean event?")
		}
		text := fieldsOfC(ingest.UnknownField(name, func(field string) bool {
			_, has := given[fieldsOfC(field)]
			return has
		}))
		if strings.Contains(text, "did you mean user") { // which this call does not have
			return keycall.Fail("%s is not a field of this call: of a user it takes the email alone; send what else is known to POST /api/v1/events", name)
		}
		return keycall.Fail("%s", text)
	}
	return nil
}

type userB struct {
	Email json.RawMessage `json:"email"`
}

// fieldsOfC names the field that a message begins with as Surface C does.
func fieldsOfC(message string) string {
	for b, c := range map[string]string{"event_type": "event", "user.email": "email"} {
		if rest, ok := strings.CutPrefix(message, b); ok {
			return c + rest
		}
		message = strings.Replace(message, "did you mean "+b+"?", "did you mean "+c+"?", 1)
	}
	return message
}
