package api

import (
	"strings"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
)

func (a *API) eventOperations() group {
	eventType := shape.Named("EventType", shape.Object(
		shape.Req("name", shape.Text("Item purchased", "Name for people; the key, where none was given.")),
		shape.Req("key", shape.Text("item_purchased", "The `event_type` of events.")),
		shape.Req("first_seen", shape.Instant("Time of the earliest event; null before the first.").OrNull()),
		shape.Req("count", shape.Count(210, "Events recorded.")),
	))
	return group{operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: events", Title: "Events", About: "The catalog of event types, and events as they come."}, []route{
		{a.listCatalog, operation.Operation{Method: "GET", Path: "/catalog", Permission: "events:read", ID: "listCatalog", Summary: "List event types", About: "Those defined and those seen.", Data: shape.List(eventType, "")}},
		{a.defineEvent, operation.Operation{Method: "POST", Path: "/catalog", Permission: "events:write", ID: "defineEvent", Summary: "Define an event type", About: "The key is the name in snake case: \"Item purchased\" is `item_purchased`.",
			Body: shape.Object(shape.Req("name", shape.Text("Item purchased", "Name of the event type.").Bytes(1, 200))), Data: eventType}},
		a.liveRoute(),
	}}
}

// eventType is a line of the catalog as it is answered.
type eventType struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	// FirstSeen is the time of the earliest event, null before the first.
	FirstSeen *string `json:"first_seen"`
	Count     uint64  `json:"count"`
}

// newEventType names a type that was only seen by its key.
func newEventType(t resolver.EventType) eventType {
	out := eventType{Name: t.Name, Key: t.Key, Count: t.Count}
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
func (a *API) listCatalog(c *call) (any, error) {
	out := []eventType{}
	err := a.read(c, func(v *resolver.View) error {
		for _, t := range v.Catalog() {
			out = append(out, newEventType(t))
		}
		return nil
	})
	return out, err
}

// defineEvent answers POST /catalog.
func (a *API) defineEvent(c *call) (any, error) {
	var in struct {
		Name *string `json:"name"`
	}
	if err := a.decode(c, &in); err != nil {
		return nil, err
	}
	if in.Name == nil || strings.TrimSpace(*in.Name) == "" {
		return nil, badField("name", "name is missing; name the event type, such as \"Item purchased\"")
	}
	var t resolver.EventType
	if err := a.command(c, resolver.CommandCatalogDefine, resolver.CatalogDefine{Name: *in.Name}, &t); err != nil {
		return nil, err
	}
	return newEventType(t), nil
}
