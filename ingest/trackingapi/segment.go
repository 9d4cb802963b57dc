package trackingapi

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/sources"
)

// The types of events that calls are recorded as, but for track.
var (
	typePage     = []byte("page_viewed")
	typeScreen   = []byte("screen_viewed")
	typeIdentify = []byte("identified")
	typeGroup    = []byte("group_identified")
	typeAlias    = []byte("aliased")
)

// Call is one of the calls of an SDK.
type Call int

// The calls.
const (
	CallTrack Call = iota
	CallIdentify
	CallPage
	CallScreen
	CallGroup
	CallAlias
	CallMerge // RudderStack's
	calls
	// callOfBody is the one that the body names.
	callOfBody
)

var callNames = [calls]string{"track", "identify", "page", "screen", "group", "alias", "merge"}

func (c Call) String() string { return callNames[c] }

// callNamed is the call that a message's type names.
func callNamed(kind []byte) (Call, bool) {
	for c, name := range callNames {
		if string(kind) == name {
			return Call(c), true
		}
	}
	return 0, false
}

const (
	// maxMessageID is how many characters of a messageId are kept as they are; of a longer
	// one its hash is.
	maxMessageID = 100
	// maxMessageIDBytes bounds these characters in bytes.
	maxMessageIDBytes = 256
)

// limits bound one event, in bytes. See [ingest.Limits].
type limits struct{ identifier, name, object int }

// mapper turns the messages of a request into events.
type mapper struct {
	// request is the source of the request, source that of the message at hand.
	request, source *sources.Access
	receivedMs      int64
	limits          limits
	names           *typeNames
	// around is what stands around the messages.
	around *envelope
	// room is where objects are built; it is used again for the next message.
	room []byte

	// What is found of the message at hand, beside its event.
	call Call
	// original is the name of the event in the application, nil where it is its type.
	original []byte
	// undated says that the event's timestamp could not be read.
	undated bool
	// context is that of the message with that of its batch under it.
	context []byte
}

// segment makes an event of a message of Segment's or RudderStack's. The event is valid until
// the next message is read.
func (p *mapper) segment(m *message, call Call, ev *eventlog.Event) *rejection {
	*ev = eventlog.Event{Public: p.source.Public}
	p.room, p.original = p.room[:0], nil
	if call == callOfBody {
		kind, _ := unquote(m.kind)
		known := false
		if call, known = callNamed(kind); !known {
			return invalidEvent("type must be track, identify, page, screen, group or alias, not %s", shown(m.kind))
		}
	}
	p.call = call
	for _, f := range []struct {
		name  string
		value []byte
	}{{"properties", m.properties}, {"traits", m.traits}, {"context", m.context}} {
		if f.value != nil && !isObject(f.value) {
			return invalidEvent(`%s must be a JSON object such as {"key": "value"}; send one, or leave it out`, f.name)
		}
	}
	p.when(m, ev)
	if bad := p.messageID(m.messageID, ev); bad != nil {
		return bad
	}
	p.context = m.context
	if around := p.around.context; isObject(around) {
		p.context = p.build(func(dst []byte) []byte { return merged(dst, m.context, around) })
	}
	user, bad := p.identifier("userId", m.userID)
	if bad != nil {
		return bad
	}
	if ev.AnonymousID, bad = p.identifier("anonymousId", m.anonymousID); bad != nil {
		return bad
	}
	if p.source.UserIDIs == sources.UserIDIsEmail {
		ev.Email = user
	} else {
		ev.ExternalID = user
	}
	switch call {
	case CallAlias:
		bad = p.alias(m, ev)
	case CallMerge:
		bad = p.merge(m, ev)
	case CallIdentify:
		bad = p.identify(m, ev)
	default:
		if bad = p.traits(member(p.context, "traits"), ev, false); bad == nil {
			bad = p.activity(m, call, ev)
		}
	}
	if bad != nil {
		return bad
	}
	return p.finish(ev)
}

// finish adds what all events have and checks what was built.
func (p *mapper) finish(ev *eventlog.Event) *rejection {
	if len(ev.Email)+len(ev.ExternalID)+len(ev.Phone)+len(ev.AnonymousID) == 0 {
		return invalidEvent("the event has no identifier; send userId or anonymousId, not empty")
	}
	if p.source.KeepContext && len(p.context) > len("{}") && member(ev.Properties, "context") == nil {
		under := p.build(func(dst []byte) []byte {
			b := build(dst)
			b.raw([]byte("context"), p.context)
			return b.object()
		})
		properties := ev.Properties
		ev.Properties = p.build(func(dst []byte) []byte { return merged(dst, properties, under) })
	}
	for _, f := range []struct {
		name  string
		value []byte
	}{{"properties", ev.Properties}, {"traits", ev.Attributes}, {"address", ev.Geo}} {
		if len(f.value) > p.limits.object {
			return &rejection{codeTooLarge, f.name + " is too long; send less, or spread it over several events"}
		}
	}
	return nil
}

// build lets fn append an object to the room and return it.
func (p *mapper) build(fn func(dst []byte) []byte) []byte {
	begin := len(p.room)
	object := fn(p.room[begin:])
	// Whatever fn has used of the room, also if it had to grow, is not used again.
	if len(object) > 0 && cap(p.room)-begin >= len(object) && begin < cap(p.room) && &object[0] == &p.room[begin : begin+1][0] {
		p.room = p.room[:begin+len(object)]
	}
	return object
}

// when sets the event's time. A timestamp that cannot be read loses no event: it counts as
// absent.
func (p *mapper) when(m *message, ev *eventlog.Event) {
	var original, sent moment
	for _, value := range [][]byte{m.timestamp, m.original} {
		if value == nil || original.has {
			continue
		}
		var ok bool
		if original, ok = parseMoment(value); !ok {
			p.undated = true
		}
	}
	for _, value := range [][]byte{m.sent, p.around.sent} {
		// A time of sending that cannot be read corrects nothing.
		if value != nil && !sent.has {
			sent, _ = parseMoment(value)
		}
	}
	ev.TimeMs, ev.HasTime = happened(p.receivedMs, original, sent), true
	if ev.TimeMs < 0 {
		ev.TimeMs, p.undated = p.receivedMs, true
	}
}

func (p *mapper) messageID(value []byte, ev *eventlog.Event) *rejection {
	if value == nil {
		return nil
	}
	text, ok := textOf(value)
	if !ok {
		return invalidEvent("messageId must be a string, not %s", shown(value))
	}
	if len(text) > maxMessageIDBytes || utf8.RuneCount(text) > maxMessageID {
		sum := sha256.Sum256(text)
		text = hex.AppendEncode(nil, sum[:])
	}
	ev.IdempotencyKey, ev.MessageID = text, len(text) > 0
	return nil
}

// identifier reads an identifier, nil where there is none.
func (p *mapper) identifier(name string, value []byte) ([]byte, *rejection) {
	if value == nil {
		return nil, nil
	}
	text, ok := textOf(value)
	switch {
	case !ok:
		return nil, invalidEvent("%s must be a string or a number, not %s", name, shown(value))
	case len(text) > p.limits.identifier:
		return nil, invalidEvent("%s is longer than %d bytes; shorten it", name, p.limits.identifier)
	case len(text) == 0:
		return nil, nil
	}
	return text, nil
}

// geoFields are the members of traits.address that become geo.
var geoFields = map[string]string{"city": "city", "state": "state", "country": "country", "postalCode": "postal_code", "postal_code": "postal_code"}

// traits takes the identifiers out of traits, and with all of them what else is known of a
// person.
func (p *mapper) traits(traits []byte, ev *eventlog.Event, all bool) *rejection {
	if !isObject(traits) {
		return nil
	}
	var address []byte
	attributes := builder{}
	if all {
		attributes = build(make([]byte, 0, len(traits)))
	}
	for m := membersOf(traits); ; {
		key, value, ok := m.next()
		if !ok {
			break
		}
		var to *[]byte
		limit := p.limits.name
		switch string(key) {
		case "email":
			to, limit = &ev.Email, p.limits.identifier
		case "phone":
			to, limit = &ev.Phone, p.limits.identifier
		case "firstName", "first_name":
			to = &ev.FirstName
		case "lastName", "last_name":
			to = &ev.LastName
		case "address":
			if all && isObject(value) {
				address = value
				continue
			}
		}
		if !all && to != &ev.Email && to != &ev.Phone {
			continue
		}
		var text []byte
		if to != nil {
			if text, ok = unquote(value); !ok && to == &ev.Phone {
				text, ok = textOf(value)
			}
			switch {
			case !ok:
				to = nil // no text: one trait among others
			case len(text) > limit:
				return invalidEvent("traits.%s is longer than %d bytes; shorten it", key, limit)
			}
		}
		switch {
		case to == nil && all:
			attributes.raw(key, value)
		case to == nil || len(text) == 0:
		case len(*to) == 0:
			*to = text
		}
	}
	if address != nil {
		geo, rest := build(nil), build(nil)
		for m := membersOf(address); ; {
			key, value, ok := m.next()
			if !ok {
				break
			}
			if name := geoFields[string(key)]; name != "" {
				geo.once(name, value) // postalCode and postal_code are one
			} else {
				rest.raw(key, value)
			}
		}
		ev.Geo = geo.object()
		if other := rest.object(); other != nil {
			attributes.raw([]byte("address"), other)
		}
	}
	if all {
		ev.Attributes = attributes.object()
	}
	return nil
}

// identify updates the profile.
func (p *mapper) identify(m *message, ev *eventlog.Event) *rejection {
	ev.Type = typeIdentify
	traits, other := m.traits, member(p.context, "traits")
	if isObject(other) {
		traits = p.build(func(dst []byte) []byte { return merged(dst, m.traits, other) })
	}
	return p.traits(traits, ev, true)
}

// alias says whom the user was called before.
func (p *mapper) alias(m *message, ev *eventlog.Event) *rejection {
	if p.source.Public {
		return &rejection{codeNotAllowed, "a browser's key may not alias; send alias from a server, with the key of a server source"}
	}
	ev.Type = typeAlias
	var bad *rejection
	if ev.PreviousID, bad = p.identifier("previousId", m.previousID); bad != nil {
		return bad
	}
	if len(ev.PreviousID) == 0 {
		ev.PreviousID = ev.AnonymousID
	}
	switch ev.AnonymousID = nil; {
	case len(ev.PreviousID) == 0:
		return invalidEvent("previousId is missing; say whom the user was called before")
	case len(ev.ExternalID)+len(ev.Email) == 0:
		return invalidEvent("userId is missing; say whom previousId is called now")
	}
	return nil
}

// merge is RudderStack's call that two identifiers are of one person.
func (p *mapper) merge(m *message, ev *eventlog.Event) *rejection {
	if p.source.Public {
		return &rejection{codeNotAllowed, "a browser's key may not merge; send merge from a server, with the key of a server source"}
	}
	ev.Type = typeAlias
	if len(m.mergeProperties) == 0 || m.mergeProperties[0] != '[' {
		return invalidEvent(`mergeProperties must be a list of two identifiers, such as [{"type": "email", "value": "ann@example.com"}, {"type": "mobile", "value": "+491701234567"}]`)
	}
	n := 0
	for rest := m.mergeProperties[1 : len(m.mergeProperties)-1]; len(rest) > 0; n++ {
		end := valueEnd(rest)
		one := rest[:end]
		if rest = rest[end:]; len(rest) > 0 {
			rest = rest[1:]
		}
		kind, _ := unquote(member(one, "type"))
		value, bad := p.identifier("mergeProperties.value", member(one, "value"))
		if bad != nil {
			return bad
		}
		var to *[]byte
		switch string(kind) {
		case "email":
			to = &ev.Email
		case "mobile", "phone":
			to = &ev.Phone
		case "userId", "user_id", "external_id":
			to = &ev.ExternalID
		case "anonymousId", "anonymous_id":
			to = &ev.AnonymousID
		default:
			return invalidEvent("mergeProperties.type must be email, mobile, user_id or anonymous_id, not %s", shown(member(one, "type")))
		}
		switch {
		case len(value) == 0:
			return invalidEvent("mergeProperties.value is missing; send two identifiers of one person")
		case len(*to) == 0:
			*to = value
		case to == &ev.ExternalID && len(ev.PreviousID) == 0:
			ev.PreviousID = value
		default:
			return invalidEvent("mergeProperties: two identifiers of the type %s cannot be of one person here", kind)
		}
	}
	if n != 2 {
		return invalidEvent("mergeProperties must have two identifiers, not %d", n)
	}
	return nil
}

// pageFields are taken from context.page where the properties of a page lack them.
var pageFields = [...]string{"url", "path", "referrer", "title", "search"}

// campaignFields are what context.campaign becomes among the properties of a page.
var campaignFields = [...][2]string{{"name", "utm_campaign"}, {"source", "utm_source"}, {"medium", "utm_medium"}, {"term", "utm_term"}, {"content", "utm_content"}}

// activity sets type and properties of what a person did.
func (p *mapper) activity(m *message, call Call, ev *eventlog.Event) *rejection {
	ev.Properties = m.properties
	if len(ev.Properties) == len("{}") {
		ev.Properties = nil
	}
	switch call {
	case CallTrack:
		name, ok := unquote(m.event)
		if !ok || len(name) == 0 {
			return invalidEvent(`event is missing; name what happened, such as "Item Viewed"`)
		}
		return p.track(name, ev)
	case CallPage, CallScreen:
		ev.Type = typePage
		if call == CallScreen {
			ev.Type = typeScreen
		}
		if under := p.viewed(m); under != nil {
			ev.Properties = p.build(func(dst []byte) []byte { return merged(dst, m.properties, under) })
		}
	case CallGroup:
		ev.Type = typeGroup
		group, bad := p.identifier("groupId", m.groupID)
		switch {
		case bad != nil:
			return bad
		case group == nil:
			return invalidEvent("groupId is missing; say which group the user belongs to")
		}
		ev.Attributes = p.build(func(dst []byte) []byte {
			b := build(dst)
			b.text("group_id", group)
			return b.object()
		})
		ev.Properties = p.build(func(dst []byte) []byte { return merged(dst, ev.Attributes, m.traits) })
	}
	return nil
}

// track sets the type that the name of an event gives.
func (p *mapper) track(name []byte, ev *eventlog.Event) *rejection {
	ev.Type = p.names.typeOf(name)
	if string(ev.Type) != string(name) {
		p.original = name
	}
	return nil
}

// viewed is what a page or screen has beside its properties.
func (p *mapper) viewed(m *message) []byte {
	return p.build(func(dst []byte) []byte {
		b := build(dst)
		for _, f := range []struct {
			name  string
			value []byte
		}{{"name", m.name}, {"category", m.category}} {
			if f.value != nil {
				b.raw([]byte(f.name), f.value)
			}
		}
		if page := member(p.context, "page"); isObject(page) {
			for _, name := range pageFields {
				if v := member(page, name); v != nil {
					b.raw([]byte(name), v)
				}
			}
		}
		if campaign := member(p.context, "campaign"); isObject(campaign) {
			for _, f := range campaignFields {
				if v := member(campaign, f[0]); v != nil {
					b.raw([]byte(f[1]), v)
				}
			}
		}
		return b.object()
	})
}

// shown is a value as an error shows it.
func shown(value []byte) string {
	const most = 60
	switch {
	case value == nil:
		return "missing"
	case len(value) > most:
		for n := most; n > 0; n-- {
			if utf8.RuneStart(value[n]) {
				return string(value[:n]) + "…"
			}
		}
	}
	return string(value)
}
