package ingest

import (
	"fmt"
	"strings"

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
	best, least := "", 3
	for _, field := range eventFields {
		// A name of few letters is not like another of which half are different.
		if n := distance(strings.ToLower(name), field); n < least && 3*n <= len(field) {
			best, least = field, n
		}
	}
	return best
}

// distance is how many letters must be put in, taken out or changed to make b of a.
func distance(a, b string) int {
	const longest = 40
	if len(a) > longest {
		return longest
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
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
