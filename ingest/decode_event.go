package ingest

import (
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/jsonscan"
)

// maxUnknown is how many unknown members an event, its user or a body may have.
const maxUnknown = 256

// The members of an event and of its user that are understood.
const (
	memberUnknown = iota
	memberType
	memberUser
	memberProperties
	memberKey
	memberTimestamp
	memberEmail
	memberExternalID
	memberPhone
	memberFirstName
	memberLastName
	memberGeo
	memberAttributes
)

func eventMember(name []byte) uint {
	switch string(name) {
	case "event_type":
		return memberType
	case "user":
		return memberUser
	case "properties":
		return memberProperties
	case "idempotency_key":
		return memberKey
	case "timestamp":
		return memberTimestamp
	}
	return memberUnknown
}

func userMember(name []byte) uint {
	switch string(name) {
	case "email":
		return memberEmail
	case "external_id":
		return memberExternalID
	case "phone":
		return memberPhone
	case "first_name":
		return memberFirstName
	case "last_name":
		return memberLastName
	case "geo":
		return memberGeo
	case "attributes":
		return memberAttributes
	}
	return memberUnknown
}

// event reads the event at i and appends it to the record, or notes why not;
// endEvent must follow. It returns the position behind the event, negative if
// the text is not JSON. Whatever the fault, the event is checked to its end.
func (d *Decoder) event(i int) int {
	s := d.scan
	s.DropText()
	d.unknownName, d.unknownText, d.unknownUser = d.unknownName[:0], d.unknownText[:0], d.unknownUser[:0]
	if s.Byte(i) != '{' {
		d.malformed(`an event must be a JSON object such as {"event_type": "item_viewed", "user": {"email": "…"}}`)
		return s.Skip(i)
	}
	var ev eventlog.Event
	var seen uint
	d.eventNames.Reset()
	more := true
	if i = s.Space(i + 1); s.Byte(i) == '}' {
		i, more = i+1, false
	}
	for more {
		name, v := s.Key(i)
		if v < 0 {
			return v
		}
		if s.HasFault() {
			d.refuseScanned("")
			i = s.Skip(v)
		} else {
			m := eventMember(name)
			if m != memberUnknown && seen&(1<<m) == 0 {
				seen |= 1 << m
			} else {
				if m == memberUnknown && !d.ignoreUnknown {
					d.refuseUnknown(name)
				}
				d.unknown(m, &d.eventNames, name, "")
				m = memberUnknown
			}
			switch m {
			case memberType:
				i = d.eventType(v, &ev.Type)
			case memberUser:
				i = d.user(v, &ev)
			case memberProperties:
				i = d.object(v, "properties", 1, &ev.Properties)
			case memberKey:
				i = d.text(v, "idempotency_key", d.limits.KeyBytes, &ev.IdempotencyKey)
			case memberTimestamp:
				i = d.timestamp(v, &ev)
			default:
				i = s.Skip(v)
			}
		}
		if i < 0 {
			return i
		}
		if i, more = s.More(i, '}'); i < 0 {
			return i
		}
	}
	d.sayUnknown(seen)
	switch {
	case seen&(1<<memberType) == 0:
		d.malformed(`event_type is missing; name what happened, such as "item_viewed"%s`, d.unknownText)
	case seen&(1<<memberUser) == 0:
		d.malformed(`user is missing; say who did it, such as {"email": "…"}%s`, d.unknownText)
	case d.fault.set:
	case len(ev.Email)+len(ev.ExternalID)+len(ev.Phone) == 0:
		d.refuse("user has no identifier; send at least one of user.email, user.external_id and user.phone, not empty")
		if field := d.suggestionOfUser(); len(d.unknownUser) > 0 && field != "" {
			d.texts = fmt.Appendf(d.texts, "; user.%s is not a field of user; did you mean %s?", jsonscan.Clip(d.unknownUser, 80), field)
		}
	case d.kind == eventlog.KindImport && !ev.HasTime:
		d.refuse(`timestamp is missing; say when it happened, in RFC 3339 ("2024-05-31T12:30:00Z") or in Unix milliseconds`)
	}
	if !d.fault.set {
		d.rec = eventlog.AppendEvent(d.rec, &ev)
		d.events++
	}
	return i
}

// unknown looks at a key that is not understood, or that is and stands a second
// time: its value is skipped.
func (d *Decoder) unknown(member uint, names *jsonscan.Object, name []byte, prefix string) {
	switch {
	case member == memberUnknown && names.Len() >= maxUnknown:
		d.refuse("the event has more than %d unknown fields; put free-form data into properties or user.attributes", maxUnknown)
	case member != memberUnknown || names.Add(name):
		d.refuse("%s%s occurs twice; send each key of an object once", prefix, jsonscan.Clip(name, 80))
	}
}

// user reads the object user at i.
func (d *Decoder) user(i int, ev *eventlog.Event) int {
	s := d.scan
	if s.Byte(i) != '{' {
		d.malformed(`user must be a JSON object; say who did it, such as {"email": "…"}`)
		return s.Skip(i)
	}
	var seen uint
	defer func() { d.userSeen = seen }()
	d.userNames.Reset()
	if i = s.Space(i + 1); s.Byte(i) == '}' {
		return i + 1
	}
	for more := true; more; {
		name, v := s.Key(i)
		if v < 0 {
			return v
		}
		if s.HasFault() {
			d.refuseScanned("user")
			i = s.Skip(v)
		} else {
			m := userMember(name)
			if m != memberUnknown && seen&(1<<m) == 0 {
				seen |= 1 << m
			} else {
				if m == memberUnknown && len(d.unknownUser) == 0 {
					d.unknownUser = append(d.unknownUser, name...)
				}
				d.unknown(m, &d.userNames, name, "user.")
				m = memberUnknown
			}
			switch m {
			case memberEmail:
				i = d.text(v, "user.email", d.limits.IdentifierBytes, &ev.Email)
			case memberExternalID:
				i = d.text(v, "user.external_id", d.limits.IdentifierBytes, &ev.ExternalID)
			case memberPhone:
				i = d.text(v, "user.phone", d.limits.IdentifierBytes, &ev.Phone)
			case memberFirstName:
				i = d.text(v, "user.first_name", d.limits.NameBytes, &ev.FirstName)
			case memberLastName:
				i = d.text(v, "user.last_name", d.limits.NameBytes, &ev.LastName)
			case memberGeo:
				i = d.object(v, "user.geo", 2, &ev.Geo)
			case memberAttributes:
				i = d.object(v, "user.attributes", 2, &ev.Attributes)
			default:
				i = s.Skip(v)
			}
		}
		if i < 0 {
			return i
		}
		if i, more = s.More(i, '}'); i < 0 {
			return i
		}
	}
	return i
}

// eventType reads the member event_type at i.
func (d *Decoder) eventType(i int, dst *[]byte) int {
	s := d.scan
	if s.Byte(i) != '"' {
		d.malformed(`event_type must be a string; name what happened, such as "item_viewed"`)
		return s.Skip(i)
	}
	name, next := s.Text(i)
	switch {
	case next < 0 || d.refuseScanned("event_type"):
	case len(name) > d.limits.TypeBytes:
		d.refuse("event_type is longer than %d bytes; shorten it", d.limits.TypeBytes)
	case !isSnakeCase(name):
		d.refuse(`event_type must be a key in snake case: lower-case letters a-z and digits in words joined by single underscores, such as "item_viewed"`)
	default:
		*dst = name
	}
	return next
}

// isSnakeCase matches ^[a-z0-9]+(_[a-z0-9]+)*$.
func isSnakeCase(name []byte) bool {
	word := false
	for _, c := range name {
		switch {
		case c-'a' < 26 || c-'0' < 10:
			word = true
		case c == '_' && word:
			word = false
		default:
			return false
		}
	}
	return word
}

// text reads an optional string at i; null is as good as absent.
func (d *Decoder) text(i int, field string, limit int, dst *[]byte) int {
	s := d.scan
	switch s.Byte(i) {
	case '"':
		text, next := s.Text(i)
		switch {
		case next < 0 || d.refuseScanned(field):
		case len(text) > limit:
			d.refuse("%s is longer than %d bytes; shorten it", field, limit)
		default:
			*dst = text
		}
		return next
	case 'n':
	default:
		d.refuse("%s must be a string; send it in quotation marks, or leave it out", field)
	}
	return s.Skip(i)
}

// object reads an optional free-form object at i, inside level containers; null
// is as good as absent.
func (d *Decoder) object(i int, field string, level int, dst *[]byte) int {
	s := d.scan
	switch s.Byte(i) {
	case '{':
		text, next := s.Value(i, level)
		if next >= 0 && !d.refuseScanned(field) {
			*dst = text
		}
		return next
	case 'n':
	default:
		d.refuse(`%s must be a JSON object such as {"key": "value"}; send one, or leave it out`, field)
	}
	return s.Skip(i)
}
