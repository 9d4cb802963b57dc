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
	"time": "timestamp", "ts": "timestamp", "createdat": "timestamp", "occurredat": "timestamp", "eventtime": "timestamp", "date": "timestamp", "sentat": "timestamp",
	"messageid": "idempotency_key", "eventid": "idempotency_key", "insertid": "idempotency_key", "idempotency": "idempotency_key",
}

// suggestion is the field that an unknown name most likely stands for, "" if none does.
func suggestion(name string) string {
	if field, ok := meant[plainName(name)]; ok {
		return field
	}
	return jsonform.Near(name, eventFields)
}

// plainName is a name in lower case and without separators.
func plainName(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", "$", "").Replace(strings.ToLower(name))
}

// userFields are the fields of user.
var userFields = []string{"email", "external_id", "phone", "first_name", "last_name", "geo", "attributes"}

// meantOfUser are names that others give to what user has, as in meant.
var meantOfUser = map[string]string{
	"mail": "email", "emailaddress": "email", "id": "external_id", "uid": "external_id", "customerid": "external_id", "uuid": "external_id",
	"tel": "phone", "phonenumber": "phone", "mobile": "phone", "surname": "last_name", "country": "geo.country", "city": "geo.city",
	"traits": "attributes", "customfields": "attributes", "properties": "attributes",
}

// suggestionOfUser is the field of user that the unknown one of the event at hand most
// likely stands for, "" if none does that the user does not have.
func (d *Decoder) suggestionOfUser() string {
	name := string(d.unknownUser)
	field, ok := meantOfUser[plainName(name)]
	if !ok {
		if field, ok = strings.CutPrefix(meant[plainName(name)], "user."); !ok {
			field = jsonform.Near(name, userFields)
		}
	}
	if m := userMember([]byte(field)); field == "" || m != memberUnknown && d.userSeen&(1<<m) != 0 {
		return ""
	}
	return "user." + field
}

// unknownOfUser says that a field of user was left out of the event at hand.
func (d *Decoder) unknownOfUser() string {
	text := fmt.Sprintf("user.%s left out: it is not a field of user; ", jsonscan.Clip(d.unknownUser, 80))
	if field := d.suggestionOfUser(); field != "" {
		return text + "did you mean " + field + "?"
	}
	return text + "put it into user.attributes"
}

// UnknownField says that a name is not a field of an event, and which one was meant. One
// that the event has already is named only where the name is a misspelling of it.
func UnknownField(name string, has func(field string) bool) string {
	text := fmt.Sprintf("%s is not a field of an event", jsonscan.Clip([]byte(name), 80))
	switch field := suggestion(name); {
	case field != "" && !has(field):
		return text + "; did you mean " + field + "?"
	case field != "" && field == jsonform.Near(name, eventFields):
		return text + "; did you mean " + field + "? The event has that field, too: put everything into it"
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
	d.unknownName = append(d.unknownName[:0], name...)
	d.refuse("%s is unknown", d.unknownName) // sayUnknown has the words
}

// sayUnknown finds the words for the unknown field of an event whose fields are all known
// by now.
func (d *Decoder) sayUnknown(seen uint) {
	if len(d.unknownName) == 0 {
		return
	}
	text := UnknownField(string(d.unknownName), func(field string) bool {
		m := eventMember([]byte(field))
		return m != memberUnknown && seen&(1<<m) != 0
	})
	d.unknownText = append(append(d.unknownText[:0], "; "...), text...)
	if !d.fault.malformed {
		d.dropFault()
		d.refuse("%s", text)
	}
}
