package trackingapi

import (
	"bytes"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/sources"
)

// posthog makes an event of a message of PostHog's. What a distinct_id is, a person's or one
// that was made up for a device, the properties of the SDK tell.
func (p *mapper) posthog(m *message, ev *eventlog.Event) *rejection {
	*ev = eventlog.Event{Public: p.source.Public}
	p.room, p.original, p.context, p.call = p.room[:0], nil, nil, CallTrack
	if m.properties != nil && !isObject(m.properties) {
		return invalidEvent(`properties must be a JSON object such as {"key": "value"}; send one, or leave it out`)
	}
	p.when(m, ev)
	id := m.uuid
	if id == nil {
		id = m.messageID
	}
	if bad := p.messageID(id, ev); bad != nil {
		return bad
	}
	value := m.distinctID
	if value == nil {
		value = member(m.properties, "distinct_id")
	}
	distinct, bad := p.identifier("distinct_id", value)
	if bad != nil {
		return bad
	}
	device, bad := p.identifier("properties.$device_id", member(m.properties, "$device_id"))
	if bad != nil {
		return bad
	}
	name, ok := unquote(m.event)
	if !ok || len(name) == 0 {
		return invalidEvent(`event is missing; name what happened, such as "item viewed"`)
	}
	user := func(id []byte) {
		if p.source.UserIDIs == sources.UserIDIsEmail {
			ev.Email = id
		} else {
			ev.ExternalID = id
		}
	}
	anonymous := string(member(m.properties, "$is_identified")) == "false" || string(member(m.properties, "$user_state")) == `"anonymous"` ||
		string(member(m.properties, "$process_person_profile")) == "false" || len(distinct) > 0 && bytes.Equal(distinct, device)
	switch {
	case string(name) == "$identify":
		user(distinct)
		if ev.AnonymousID, bad = p.identifier("properties.$anon_distinct_id", member(m.properties, "$anon_distinct_id")); bad != nil {
			return bad
		}
	case anonymous:
		ev.AnonymousID = distinct
	default:
		user(distinct)
		ev.AnonymousID = device
	}
	switch string(name) {
	case "$create_alias":
		p.call = CallAlias
		other := message{messageIdentity: messageIdentity{previousID: member(m.properties, "alias")}}
		ev.AnonymousID = nil
		if bad := p.alias(&other, ev); bad != nil {
			return bad
		}
	case "$identify", "$set":
		p.call = CallIdentify
		ev.Type = typeIdentify
	case "$pageview":
		p.call = CallPage
		ev.Type = typePage
	case "$screen":
		p.call = CallScreen
		ev.Type = typeScreen
	case "$groupidentify":
		// Its distinct_id is made of the group and identifies no person.
		return invalidEvent("$groupidentify is not taken: groups have no properties here; send $group_0 with the events of people")
	default:
		if bad := p.track(name, ev); bad != nil {
			return bad
		}
	}
	set := m.set
	if set == nil {
		set = member(m.properties, "$set")
	}
	if bad := p.traits(set, ev, true); bad != nil {
		return bad
	}
	if p.call != CallIdentify && p.call != CallAlias {
		ev.Properties = p.ownProperties(m.properties)
	}
	return p.finish(ev)
}

// posthogPage are the properties of a page view of PostHog's that have a name here.
var posthogPage = map[string]string{"$current_url": "url", "$pathname": "path", "$referrer": "referrer", "$title": "title", "title": "title", "$screen_name": "name", "$group_0": "group_id"}

// ownProperties are the properties that the application has set: what the SDK adds begins
// with a dollar sign.
func (p *mapper) ownProperties(properties []byte) []byte {
	viewed := p.call == CallPage || p.call == CallScreen
	renamed := build(nil)
	object := p.build(func(dst []byte) []byte {
		b := build(dst)
		for m := membersOf(properties); ; {
			key, value, ok := m.next()
			if !ok {
				return b.object()
			}
			switch name := posthogPage[string(key)]; {
			case viewed && name != "" || string(key) == "$group_0":
				renamed.once(name, value) // title and $title are one
			case len(key) > 0 && key[0] == '$', string(key) == "distinct_id", string(key) == "token":
			default:
				b.raw(key, value)
			}
		}
	})
	if under := renamed.object(); under != nil {
		return p.build(func(dst []byte) []byte { return merged(dst, object, under) })
	}
	return object
}
