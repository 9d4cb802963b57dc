package api

import (
	"encoding/json"
	"slices"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/audit"
)

var changedByShape = shape.Named("ChangedBy", shape.Object(
	shape.Req("kind", shape.Word("", audit.ByUser, audit.ByKey)), shape.Req("_id", shape.UserID("")),
	shape.Req("name", shape.Text("Ada", "Present name, or e-mail of a user without one; empty for one that was deleted."))))

func (a *API) auditOperations() group {
	change := shape.Named("Change", shape.Object(
		shape.Req("_id", shape.Count(17, "From 1, in the order of changes.")), shape.Req("at", shape.Instant("")), shape.Req("by", changedByShape),
		shape.Req("action", shape.Text("segment.update", "")), shape.Req("kind", shape.Word("What was changed.", resolver.ChangeKinds()...)),
		shape.Req("target_id", shape.Text("seg_9c1f0e7ad24b4f6c8f3b5a2d7e60c481", "Its id; empty for settings.")), shape.Req("name", shape.Text("Customers", "How it was called then.")),
		shape.Req("fields", shape.List(shape.Text("definition", ""), "The names of what was set; of settings and segments what is other than before. Values are not in the audit log; see the versions of segments, flows, templates and settings."))))
	return group{operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: audit log", Title: "Audit log", About: "Who changed what, and when: by people and by API keys. The newest 2,000 changes of a company are kept."}, []route{
		{a.listChanges, operation.Operation{Method: "GET", Path: "/audit", Permission: "settings:read", ID: "listChanges", Summary: "List changes", About: "The newest first.",
			Query: []operation.Parameter{operation.Query("kind", shape.Word("Changes of this kind of thing alone.", resolver.ChangeKinds()...)), operation.Query("target_id", shape.Text("seg_9c1f0e7ad24b4f6c8f3b5a2d7e60c481", "Changes of one thing alone."))},
			Data:  shape.List(change, ""), Paged: true}},
	}}
}

func (a *API) versionsRoute() route {
	return route{a.segmentVersions, operation.Operation{Method: "GET", Path: "/segments/{id}/versions", Permission: "segments:read", ID: "segmentVersions", Summary: "List the versions of a segment",
		About: "The newest first, as far as the audit log reaches, with the definition as of each change that was made.",
		Data: shape.List(shape.Named("SegmentVersion", shape.Object(shape.Req("_id", shape.Count(17, "")), shape.Req("at", shape.Instant("")), shape.Req("by", changedByShape), shape.Req("name", shape.Text("Customers", "")),
			shape.Req("definition", shapes.Definition.OrNull()))), ""), Paged: true}}
}

// change is an entry of the audit log, as it is answered.
type change struct {
	ID       uint64    `json:"_id"`
	At       string    `json:"at"`
	By       changedBy `json:"by"`
	Action   string    `json:"action"`
	Kind     string    `json:"kind"`
	TargetID string    `json:"target_id"`
	Name     string    `json:"name"`
	Fields   []string  `json:"fields"`
}

type changedBy struct {
	Kind string `json:"kind"`
	ID   string `json:"_id"`
	Name string `json:"name"`
}

// segmentVersion is a definition that a segment had, as it is answered.
type segmentVersion struct {
	ID         uint64          `json:"_id"`
	At         string          `json:"at"`
	By         changedBy       `json:"by"`
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"` // null for one that is too long to be kept
}

// changes reads a page of the audit log.
func (a *API) changes(c *call, kind, id string, check func(*resolver.View) error, add func(*resolver.View, *audit.Change)) (next string, err error) {
	limit, err := c.limit()
	if err != nil {
		return "", err
	}
	before, err := c.numberCursor(paging.Audit)
	if err != nil {
		return "", err
	}
	err = a.read(c, func(v *resolver.View) error {
		if err := check(v); err != nil {
			return err
		}
		list, err := v.Audit().Changes(kind, id, before, limit+1)
		if err != nil {
			return err
		}
		if len(list) > limit {
			list = list[:limit]
			next = encodeNumberCursor(paging.Audit, list[limit-1].Seq)
		}
		for i := range list {
			add(v, &list[i])
		}
		return nil
	})
	return next, err
}

func newChangedBy(v *resolver.View, by audit.Author) changedBy {
	return changedBy{by.Kind, by.ID, v.ChangerName(by)}
}

// listChanges answers GET /audit.
func (a *API) listChanges(c *call) (any, error) {
	kind := string(c.QueryArgs().Peek("kind"))
	if kind != "" && !slices.Contains(resolver.ChangeKinds(), kind) {
		return nil, badField("kind", "kind is none of those that the audit log has")
	}
	list := []change{}
	next, err := a.changes(c, kind, string(c.QueryArgs().Peek("target_id")), func(*resolver.View) error { return nil }, func(v *resolver.View, x *audit.Change) {
		list = append(list, change{x.Seq, record.Time(x.AtMs), newChangedBy(v, x.By), x.Action, x.Kind, x.ID, x.Name, append([]string{}, x.Fields...)})
	})
	return page{items: list, next: next}, err
}

// segmentVersions answers GET /segments/{id}/versions.
func (a *API) segmentVersions(c *call) (any, error) {
	list := []segmentVersion{}
	next, err := a.changes(c, "segment", c.id(), func(v *resolver.View) error {
		if _, ok := v.Segment(c.id()); !ok {
			return errNoSegment
		}
		return nil
	}, func(v *resolver.View, x *audit.Change) {
		list = append(list, segmentVersion{x.Seq, record.Time(x.AtMs), newChangedBy(v, x.By), x.Name, x.Definition})
	})
	return page{items: list, next: next}, err
}
