package api

import (
	"strings"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver"
)

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
