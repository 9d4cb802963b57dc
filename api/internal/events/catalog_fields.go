package events

import (
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/catalog"
)

// Attributes are the calls about the attributes of profiles.
func (a *API) Attributes() handler.Group {
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: attributes", Title: "Attributes", About: "What profiles' `geo` and `attributes` look like."}, Routes: []handler.Route{
		{Handle: a.listAttributes, Operation: operation.Operation{Method: "GET", Path: "/attributes", Permission: "contacts:read", ID: "listAttributes", Summary: "List the attributes of profiles",
			About: "By the paths that conditions name, such as `attributes.plan`. What is known of them is kept with the state: nothing is scanned.",
			Data: shape.Object(
				shape.Req("looked_at", shape.Count(812, "Changes of profiles' `geo` or `attributes` that were looked at: the first 1,000, then one in 2, 4 and so on up to 64. Shares are of these.")),
				shape.Req("attributes", shape.List(catalogFieldShape, "In order of their paths.")),
				shape.Req("more", shape.Count(0, "How often something was found that had no room among the attributes: there can be 200, of 8 keys and 200 bytes at most, without dots in their keys.")),
			)}},
	}}
}

func kindShape(about string) *shape.Schema { return shape.Word(about, catalog.KindNames[:]...) }

// catalogFieldShape is a property or an attribute with its figures.
var catalogFieldShape = shape.Named("CatalogField", shape.Object(
	shape.Req("path", shape.Text("plan", "As conditions name it: keys joined by dots.")),
	shape.Req("share", shape.Share("Share of those looked at that have it. A null is as good as nothing.")),
	shape.Req("first_seen", shape.Instant("Time of the earliest one looked at that has it.")),
	shape.Req("last_seen", shape.Instant("Time of the latest one looked at that has it.")),
	shape.Req("types", shape.List(shape.Object(
		shape.Req("type", kindShape("JSON type.")),
		shape.Req("share", shape.Share("Share of what was seen there, nulls included.")),
	), "The types of the values, the most frequent first.")),
	shape.Req("element_types", shape.List(kindShape("JSON type."), "Types of the elements of lists that conditions compare with.")),
	shape.Req("values", shape.List(shape.Object(
		shape.Req("value", shape.Text("pro", "The value as text; its type is beside it.")),
		shape.Req("type", kindShape("JSON type: text, number or boolean.")),
		shape.Req("share", shape.Share("Share of those that have the property, at least.")),
	), "The most frequent values, the most frequent first: 20 at most, of 64 bytes at most.")),
	shape.Req("more_values", shape.Boolean(false, "Whether there are more values.")),
))

type catalogField struct {
	Path         string         `json:"path"`
	Share        float64        `json:"share"`
	FirstSeen    string         `json:"first_seen"`
	LastSeen     string         `json:"last_seen"`
	Types        []catalogType  `json:"types"`
	ElementTypes []string       `json:"element_types"`
	Values       []catalogValue `json:"values"`
	MoreValues   bool           `json:"more_values"`
}

type catalogType struct {
	Type  string  `json:"type"`
	Share float64 `json:"share"`
}

type catalogValue struct {
	Value string  `json:"value"`
	Type  string  `json:"type"`
	Share float64 `json:"share"`
}

// newCatalogFields are the fields of a sketch, which may be nil.
func newCatalogFields(s *catalog.Sketch) (looked uint64, fields []catalogField, more uint64) {
	fields = []catalogField{}
	if s == nil {
		return 0, fields, 0
	}
	for _, f := range s.Fields() {
		seen := f.Seen()
		x := catalogField{
			Path: f.Path, Share: float64(seen) / float64(s.Looked()), FirstSeen: record.Time(f.FirstMs), LastSeen: record.Time(f.LastMs),
			Types: []catalogType{}, ElementTypes: []string{}, Values: []catalogValue{}, MoreValues: f.Lost > 0,
		}
		for _, k := range f.ByKind() {
			x.Types = append(x.Types, catalogType{k.Kind.String(), k.Share})
		}
		for k, n := range f.Elements {
			if n > 0 {
				x.ElementTypes = append(x.ElementTypes, catalog.KindNames[k])
			}
		}
		for _, v := range f.Top() {
			x.Values = append(x.Values, catalogValue{v.Text, v.Kind.String(), float64(v.AtLeast) / float64(seen)})
		}
		fields = append(fields, x)
	}
	return s.Looked(), fields, s.More()
}

// listAttributes answers GET /attributes. The number of attributes is bounded: the list
// comes in one page.
func (a *API) listAttributes(c *handler.Call) (any, error) {
	var out struct {
		LookedAt   uint64         `json:"looked_at"`
		Attributes []catalogField `json:"attributes"`
		More       uint64         `json:"more"`
	}
	err := c.Read(func(v *resolver.View) error {
		out.LookedAt, out.Attributes, out.More = newCatalogFields(v.EventTypes().Attributes())
		return nil
	})
	if err == nil {
		a.opts.Evaluation.PrepareColumns(c.Account) // conditions on them come next
	}
	return out, err
}
