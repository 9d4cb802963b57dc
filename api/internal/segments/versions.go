package segments

import (
	"encoding/json"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/audit"
)

func (a *API) versionsRoute() handler.Route {
	return handler.Route{Handle: a.versions, Operation: operation.Operation{Method: "GET", Path: "/segments/{id}/versions", Permission: "segments:read", ID: "versions", Summary: "List the versions of a segment",
		About: "The newest first, as far as the audit log reaches, with the definition as of each change that was made.",
		Data: shape.List(shape.Named("SegmentVersion", shape.Object(shape.Req("_id", shape.Count(17, "")), shape.Req("at", shape.Instant("")), shape.Req("by", handler.ChangedByShape), shape.Req("name", shape.Text("Customers", "")),
			shape.Req("definition", shapes.Definition.OrNull()))), ""), Paged: true}}
}

// segmentVersion is a definition that a segment had, as it is answered.
type segmentVersion struct {
	ID         uint64            `json:"_id"`
	At         string            `json:"at"`
	By         handler.ChangedBy `json:"by"`
	Name       string            `json:"name"`
	Definition json.RawMessage   `json:"definition"` // null for one that is too long to be kept
}

// versions answers GET /segments/{id}/versions.
func (a *API) versions(c *handler.Call) (any, error) {
	list := []segmentVersion{}
	next, err := c.Changes("segment", c.PathID(), func(v *resolver.View) error {
		if _, ok := v.Segments().Get(c.PathID()); !ok {
			return handler.ErrNoSegment
		}
		return nil
	}, func(v *resolver.View, x *audit.Change) {
		list = append(list, segmentVersion{x.Seq, record.Time(x.AtMs), handler.NewChangedBy(v, x.By), x.Name, x.Definition})
	})
	return handler.Page{Items: list, Next: next}, err
}
