package api

import (
	"encoding/json"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
)

func (a *API) versionsRoute() route {
	return route{a.segmentVersions, operation.Operation{Method: "GET", Path: "/segments/{id}/versions", Permission: "segments:read", ID: "segmentVersions", Summary: "List the versions of a segment",
		About: "The newest first, as far as the audit log reaches, with the definition as of each change that was made.",
		Data: shape.List(shape.Named("SegmentVersion", shape.Object(shape.Req("_id", shape.Count(17, "")), shape.Req("at", shape.Instant("")), shape.Req("by", changedByShape), shape.Req("name", shape.Text("Customers", "")),
			shape.Req("definition", shapes.Definition.OrNull()))), ""), Paged: true}}
}

// segmentVersion is a definition that a segment had, as it is answered.
type segmentVersion struct {
	ID         uint64          `json:"_id"`
	At         string          `json:"at"`
	By         changedBy       `json:"by"`
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"` // null for one that is too long to be kept
}

// segmentVersions answers GET /segments/{id}/versions.
func (a *API) segmentVersions(c *call) (any, error) {
	list := []segmentVersion{}
	next, err := c.changes("segment", c.id(), func(v *resolver.View) error {
		if _, ok := v.Segment(c.id()); !ok {
			return errNoSegment
		}
		return nil
	}, func(v *resolver.View, x *resolver.Change) {
		list = append(list, segmentVersion{x.Seq, record.Time(x.AtMs), newChangedBy(v, x.By), x.Name, x.Definition})
	})
	return page{items: list, next: next}, err
}
