package events

import (
	"strings"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/eventtypes"
)

// Operations are the calls about events and their types.
func (a *API) Operations() handler.Group {
	fields := func() []shape.Field {
		return []shape.Field{
			shape.Req("name", shape.Text("Item purchased", "Name for people; the key, where none was given.")),
			shape.Req("key", shape.Text("item_purchased", "The `event_type` of events.")),
			shape.Req("first_seen", shape.Instant("Time of the earliest event; null before the first.").OrNull()),
			shape.Req("last_seen", shape.Instant("Time of the latest event; null before the first, and while there was none since a version of the server that did not note it.").OrNull()),
			shape.Req("count", shape.Count(210, "Events recorded.")),
			shape.Req("property_count", shape.Count(7, "Properties of its events that are known.")),
			shape.Req("description", shape.Text("Sent by the shop when an order is paid.", "What people say of it, \"\" for nothing.")),
			shape.Req("hidden", shape.Boolean(false, "Whether it is left out where event types are offered. What uses it keeps working.")),
		}
	}
	eventType := shape.Named("EventType", shape.Object(fields()...))
	details := shape.Named("EventTypeDetails", shape.Object(append(fields(),
		shape.Req("looked_at", shape.Count(210, "Events whose properties were looked at: the first 1,000, then one in 2, 4 and so on up to 64. Shares are of these.")),
		shape.Req("properties", shape.List(catalogFieldShape, "In order of their paths.")),
		shape.Req("more", shape.Count(0, "How often something was found that had no room among the properties: there can be 100, of 8 keys and 200 bytes at most, without dots in their keys.")),
	)...))
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: events", Title: "Events", About: "The catalog of event types, and events as they come."}, Routes: []handler.Route{
		{Handle: a.listCatalog, Operation: operation.Operation{Method: "GET", Path: "/catalog", Permission: "events:read", ID: "listCatalog", Summary: "List event types", About: "Those defined and those seen.", Data: shape.List(eventType, "")}},
		{Handle: a.getEventType, Operation: operation.Operation{Method: "GET", Path: "/catalog/{id}", Permission: "events:read", ID: "getEventType", Summary: "Read an event type with its properties",
			About: "By its key. What is known of the properties is kept with the state: nothing is scanned.", Data: details}},
		{Handle: a.defineEvent, Operation: operation.Operation{Method: "POST", Path: "/catalog", Permission: "events:write", ID: "defineEvent", Summary: "Define an event type", About: "The key is the name in snake case: \"Item purchased\" is `item_purchased`.",
			Body: shape.Object(shape.Req("name", shape.Text("Item purchased", "Name of the event type.").Bytes(1, 200))), Data: eventType}},
		{Handle: a.updateEventType, Operation: operation.Operation{Method: "PATCH", Path: "/catalog/{id}", Permission: "events:write", ID: "updateEventType", Summary: "Describe or hide an event type",
			About: "By its key. Omitted fields keep their values. Events of a hidden type are stored like any others, and conditions on them keep working.",
			Body: shape.Object(shape.Opt("description", shape.Text("Sent by the shop when an order is paid.", "For the people who work with it; at most 500 characters.").With("maxLength", 500)),
				shape.Opt("hidden", shape.Boolean(true, "Leave it out where event types are offered."))), Data: eventType}},
		a.liveRoute(),
		a.recentEventsRoute(),
	}}
}

// eventType is a line of the catalog as it is answered.
type eventType struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	// FirstSeen is the time of the earliest event, null before the first.
	FirstSeen *string `json:"first_seen"`
	// LastSeen is the time of the latest event, null where it is not known.
	LastSeen      *string `json:"last_seen"`
	Count         uint64  `json:"count"`
	PropertyCount int     `json:"property_count"`
	Description   string  `json:"description"`
	Hidden        bool    `json:"hidden"`
}

// eventTypeDetails is an event type with its properties.
type eventTypeDetails struct {
	eventType
	LookedAt   uint64         `json:"looked_at"`
	Properties []catalogField `json:"properties"`
	More       uint64         `json:"more"`
}

// newEventType names a type that was only seen by its key.
func newEventType(t eventtypes.Type) eventType {
	out := eventType{Name: t.Name, Key: t.Key, Count: t.Count, LastSeen: record.TimeOrNull(t.LastSeenMs), Description: t.Description, Hidden: t.Hidden}
	if out.Name == "" {
		out.Name = t.Key
	}
	if t.Count > 0 {
		s := record.Time(t.FirstSeenMs)
		out.FirstSeen = &s
	}
	return out
}

// listCatalog answers GET /catalog. The number of types of an account is
// bounded, and each is short: the list comes in one page.
func (a *API) listCatalog(c *handler.Call) (any, error) {
	out := []eventType{}
	err := c.Read(func(v *resolver.View) error {
		for _, t := range v.EventTypes().List() {
			line := newEventType(t)
			if s := v.EventTypes().Properties(t.Key); s != nil {
				line.PropertyCount = s.Known()
			}
			out = append(out, line)
		}
		return nil
	})
	return out, err
}

// getEventType answers GET /catalog/{id}.
func (a *API) getEventType(c *handler.Call) (any, error) {
	var out eventTypeDetails
	err := c.Read(func(v *resolver.View) error {
		t := v.EventTypes().Get(c.PathID())
		if t == nil {
			return handler.NotFound("there is no event type with the key %s", c.PathID())
		}
		out.eventType = newEventType(*t)
		out.LookedAt, out.Properties, out.More = newCatalogFields(v.EventTypes().Properties(t.Key))
		out.PropertyCount = len(out.Properties)
		return nil
	})
	return out, err
}

// defineEvent answers POST /catalog.
func (a *API) defineEvent(c *handler.Call) (any, error) {
	var in struct {
		Name *string `json:"name"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.Name == nil || strings.TrimSpace(*in.Name) == "" {
		return nil, handler.BadField("name", "name is missing; name the event type, such as \"Item purchased\"")
	}
	var t eventtypes.Type
	if err := c.Command(eventtypes.CommandDefine, eventtypes.Define{Name: *in.Name}, &t); err != nil {
		return nil, err
	}
	return newEventType(t), nil
}

// updateEventType answers PATCH /catalog/{id}.
func (a *API) updateEventType(c *handler.Call) (any, error) {
	var in struct {
		Description *string `json:"description"`
		Hidden      *bool   `json:"hidden"`
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	var t eventtypes.Type
	if err := c.Command(eventtypes.CommandUpdate, eventtypes.Update{Key: c.PathID(), Description: in.Description, Hidden: in.Hidden}, &t); err != nil {
		return nil, err
	}
	out := newEventType(t)
	err := c.Read(func(v *resolver.View) error {
		if s := v.EventTypes().Properties(t.Key); s != nil {
			out.PropertyCount = s.Known()
		}
		return nil
	})
	return out, err
}
