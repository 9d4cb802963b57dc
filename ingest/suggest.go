package ingest

import (
	"fmt"
	"strings"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/jsonscan"
)

// eventFields are the top-level fields of an event.
var eventFields = []string{"event_type", "user", "properties", "idempotency_key", "timestamp"}

// meant are names that others give to what an event has, without underscores and in
// lower case.
var meant = map[string]string{
	"event": "event_type", "eventname": "event_type", "type": "event_type", "name": "event_type", "action": "event_type",
	"props": "properties", "data": "properties", "payload": "properties", "params": "properties",
	"profile": "user", "contact": "user", "customer": "user", "identity": "user", "traits": "user.attributes",
	"email": "user.email", "externalid": "user.external_id", "userid": "user.external_id", "phone": "user.phone",
	"firstname": "user.first_name", "lastname": "user.last_name", "geo": "user.geo", "attributes": "user.attributes",
	"time": "timestamp", "ts": "timestamp", "occurredat": "timestamp", "eventtime": "timestamp", "date": "timestamp", "sentat": "timestamp",
	"messageid": "idempotency_key", "eventid": "idempotency_key", "insertid": "idempotency_key", "idempotency": "idempotency_key",
}

// suggestion is the field that an unknown name most likely stands for, "" if none does.
func suggestion(name string) string {
	plain := strings.NewReplacer("_", "", "-", "", " ", "", "$", "").Replace(strings.ToLower(name))
	if field, ok := meant[plain]; ok {
		return field
	}
	return jsonform.Near(name, eventFields)
}

// UnknownField says that a name is not a field of an event, and which one was meant.
func UnknownField(name string) string {
	text := fmt.Sprintf("%s is not a field of an event", jsonscan.Clip([]byte(name), 80))
	switch field := suggestion(name); {
	case field != "":
		return text + "; did you mean " + field + "?"
	case name == "events":
		return text + "; send several events to POST /api/v1/events/batch"
	}
	return text + "; put free-form data into properties, or let the settings ignore unknown fields"
}

// unknownOfBody says that a name is not a field of the body of a batch or of an import,
// and which one was meant.
func unknownOfBody(name string, kind eventlog.Kind) *requestError {
	what, fields := "a batch", []string{"events"}
	if kind == eventlog.KindImport {
		what, fields = "an import", []string{"events", "file", "first_row", "trigger_flows"}
	}
	text := fmt.Sprintf("%s is not a field of %s", jsonscan.Clip([]byte(name), 80), what)
	if field := jsonform.Near(name, fields); field != "" {
		return badRequest("%s; did you mean %s?", text, field)
	}
	return badRequest("%s; leave it out, or let the settings ignore unknown fields", text)
}

// refuseUnknown refuses the event at hand for a top-level field that is none of an
// event's.
func (d *Decoder) refuseUnknown(name []byte) {
	if d.fault.set {
		return
	}
	text := UnknownField(string(name))
	d.unknownText = append(append(d.unknownText[:0], "; "...), text...)
	d.refuse("%s", text)
}
