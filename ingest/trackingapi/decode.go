package trackingapi

import (
	"fmt"

	"github.com/musterhq/muster/internal/jsonscan"
)

// The codes of what is refused. They are part of the interface.
const (
	codeInvalidJSON     = "invalid_json"
	codeTooLarge        = "payload_too_large"
	codeInvalidKey      = "invalid_write_key"
	codeDisabled        = "source_disabled"
	codeOrigin          = "origin_not_allowed"
	codeInvalidEvent    = "invalid_event"
	codeNotAllowed      = "not_allowed"
	codeRefused         = "event_refused"
	codeTooManyTypes    = "too_many_event_types"
	codeTooManyEvents   = "too_many_events"
	codeMethod          = "method_not_allowed"
	codeOverloaded      = "overloaded"
	codeUnavailable     = "unavailable"
	codeRequestNotValid = "invalid_request"
)

// rejection is why one event is refused.
type rejection struct{ code, message string }

func invalidEvent(format string, args ...any) *rejection {
	return &rejection{codeInvalidEvent, fmt.Sprintf(format, args...)}
}

// message is one call as an SDK sends it. All values are canonical text of the scanner, or
// parts of the body, and nil where they are absent or null.
type message struct {
	kind, event, name, category []byte
	messageIdentity
	messageID, uuid             []byte // either makes it known that a call is repeated
	properties, traits, context []byte
	messageTimes
	writeKey, mergeProperties []byte
	messagePostHog
}

// messageIdentity says who did it.
type messageIdentity struct {
	userID, anonymousID, previousID, groupID []byte
}

// messageTimes are the clocks of the sender, from which the time of the event is worked
// out.
type messageTimes struct {
	timestamp, original, sent []byte
}

// messagePostHog has the members that SDKs of PostHog alone send.
type messagePostHog struct {
	distinctID, apiKey, token, set []byte
}

// field is where a member of a message is kept, nil for a name that means nothing here.
func (m *message) field(name []byte) *[]byte {
	switch string(name) {
	case "type":
		return &m.kind
	case "event":
		return &m.event
	case "name":
		return &m.name
	case "category":
		return &m.category
	case "userId":
		return &m.userID
	case "anonymousId":
		return &m.anonymousID
	case "previousId":
		return &m.previousID
	case "groupId":
		return &m.groupID
	case "messageId":
		return &m.messageID
	case "uuid":
		return &m.uuid
	case "properties":
		return &m.properties
	case "traits":
		return &m.traits
	case "context":
		return &m.context
	case "timestamp":
		return &m.timestamp
	case "originalTimestamp":
		return &m.original
	case "sentAt", "sent_at":
		return &m.sent
	case "writeKey":
		return &m.writeKey
	case "mergeProperties":
		return &m.mergeProperties
	case "distinct_id":
		return &m.distinctID
	case "api_key":
		return &m.apiKey
	case "token":
		return &m.token
	case "$set":
		return &m.set
	}
	return nil
}

// maxMembers bounds the members of a call, also those that mean nothing here.
const maxMembers = 1000

// readMessage reads the object at i. The position it returns is negative where the text is
// not JSON. Whatever is wrong with the message, it is read to its end.
func readMessage(s *jsonscan.Scanner, i int, m *message) (next int, bad *rejection) {
	*m = message{}
	s.DropText()
	if s.Byte(i) != '{' {
		return s.Skip(i), invalidEvent(`an event must be a JSON object such as {"type": "track", "event": "Item Viewed", "userId": "42"}`)
	}
	if i = s.Space(i + 1); s.Byte(i) == '}' {
		return i + 1, nil
	}
	n := 0
	for more := true; more; {
		name, v := s.Key(i)
		if v < 0 {
			return v, bad
		}
		n++
		field := m.field(name)
		switch {
		case s.HasFault():
			bad = first(bad, fault(s, ""))
			i = s.Skip(v)
		case n > maxMembers:
			bad = first(bad, invalidEvent("the event has more than %d fields; put free-form data into properties or traits", maxMembers))
			i = s.Skip(v)
		case field == nil:
			i = s.Skip(v)
		case *field != nil:
			bad = first(bad, invalidEvent("%s occurs twice; send each field of an event once", name))
			i = s.Skip(v)
		default:
			var value []byte
			if value, i = s.Value(v, 1); i >= 0 && s.HasFault() {
				bad = first(bad, fault(s, string(name)))
			} else if i >= 0 && string(value) != "null" {
				*field = value
			}
		}
		if i < 0 {
			return i, bad
		}
		if i, more = s.More(i, '}'); i < 0 {
			return i, bad
		}
	}
	return i, bad
}

func first(a, b *rejection) *rejection {
	if a != nil {
		return a
	}
	return b
}

// fault turns the scanner's fault into a rejection. field is what was scanned; empty for
// the event itself.
func fault(s *jsonscan.Scanner, field string) *rejection {
	f := s.Fault()
	where := field + string(f.Path)
	if where == "" {
		where = "the event"
	}
	defer s.ClearFault()
	switch f.Kind {
	case jsonscan.FaultDuplicate:
		return invalidEvent("%s.%s occurs twice; send each key of an object once", where, f.Key)
	case jsonscan.FaultDepth:
		return invalidEvent("%s is nested too deep; flatten it", where)
	case jsonscan.FaultRange:
		return invalidEvent("%s is a number beyond the range of a 64-bit floating point number; send it as a string", where)
	case jsonscan.FaultSurrogate:
		return invalidEvent(`%s holds a \u escape of half a character (a lone surrogate); send whole characters`, where)
	case jsonscan.FaultNUL:
		return invalidEvent(`%s holds the character NUL (\u0000); remove it`, where)
	case jsonscan.FaultSize:
		return &rejection{codeTooLarge, where + " is too long; send less, or spread it over several events"}
	}
	return invalidEvent("%s cannot be stored; send it otherwise", where)
}

// envelope is what stands around the events of a batch.
type envelope struct {
	message
	// events is the position of the array of events in the body, negative for none.
	events int
}

// readEnvelope checks that the whole body is JSON and reads what stands around its events.
// A body without a batch is a call of its own; reason says why text is no JSON.
func readEnvelope(s *jsonscan.Scanner, body []byte, e *envelope) (bad *rejection, reason string) {
	*e = envelope{events: -1}
	s.Reset(body)
	i := s.Space(0)
	switch s.Byte(i) {
	case '{':
	case '[':
		e.events = i
		if i = s.Skip(i); i >= 0 {
			i = s.End(i)
		}
		if i < 0 {
			return nil, s.Err().Error()
		}
		return nil, ""
	default:
		return nil, `no JSON object, such as {"batch": [...], "writeKey": "wk_..."}`
	}
	more := true
	if i = s.Space(i + 1); s.Byte(i) == '}' {
		i, more = i+1, false
	}
	for more {
		name, v := s.Key(i)
		if v < 0 {
			return nil, s.Err().Error()
		}
		var field *[]byte
		isBatch := string(name) == "batch"
		if !s.HasFault() && !isBatch {
			field = e.field(name)
		}
		s.ClearFault()
		switch {
		case isBatch && e.events < 0 && s.Byte(v) == '[':
			e.events = v
			i = s.Skip(v)
		case field == nil || *field != nil:
			i = s.Skip(v)
		default:
			var value []byte
			if value, i = s.Value(v, 1); i >= 0 && s.HasFault() {
				bad = first(bad, fault(s, string(name)))
			} else if i >= 0 && string(value) != "null" {
				*field = value
			}
		}
		if i < 0 {
			return nil, s.Err().Error()
		}
		if i, more = s.More(i, '}'); i < 0 {
			return nil, s.Err().Error()
		}
	}
	if i = s.End(i); i < 0 {
		return nil, s.Err().Error()
	}
	return bad, ""
}
