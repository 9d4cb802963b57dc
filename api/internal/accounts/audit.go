package accounts

import (
	"slices"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/audit"
)

// Audit is the call that lists the audit log.
func (a *API) Audit() handler.Group {
	change := shape.Named("Change", shape.Object(
		shape.Req("_id", shape.Count(17, "From 1, in the order of changes.")), shape.Req("at", shape.Instant("")), shape.Req("by", handler.ChangedByShape),
		shape.Req("action", shape.Text("segment.update", "")), shape.Req("kind", shape.Word("What was changed.", resolver.ChangeKinds()...)),
		shape.Req("target_id", shape.Text("seg_9c1f0e7ad24b4f6c8f3b5a2d7e60c481", "Its id; empty for settings.")), shape.Req("name", shape.Text("Customers", "How it was called then.")),
		shape.Req("fields", shape.List(shape.Text("definition", ""), "The names of what was set; of settings and segments what is other than before. Values are not in the audit log; see the versions of segments, flows, templates and settings."))))
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: audit log", Title: "Audit log", About: "Who changed what, and when: by people and by API keys. The newest 2,000 changes of a company are kept."}, Routes: []handler.Route{
		{Handle: a.listChanges, Operation: operation.Operation{Method: "GET", Path: "/audit", Permission: "settings:read", ID: "listChanges", Summary: "List changes", About: "The newest first.",
			Query: []operation.Parameter{operation.Query("kind", shape.Word("Changes of this kind of thing alone.", resolver.ChangeKinds()...)), operation.Query("target_id", shape.Text("seg_9c1f0e7ad24b4f6c8f3b5a2d7e60c481", "Changes of one thing alone."))},
			Data:  shape.List(change, ""), Paged: true}},
	}}
}

// Change is an entry of the audit log, as it is answered.
type Change struct {
	ID       uint64            `json:"_id"`
	At       string            `json:"at"`
	By       handler.ChangedBy `json:"by"`
	Action   string            `json:"action"`
	Kind     string            `json:"kind"`
	TargetID string            `json:"target_id"`
	Name     string            `json:"name"`
	Fields   []string          `json:"fields"`
}

// listChanges answers GET /audit.
func (a *API) listChanges(c *handler.Call) (any, error) {
	kind := string(c.QueryArgs().Peek("kind"))
	if kind != "" && !slices.Contains(resolver.ChangeKinds(), kind) {
		return nil, handler.BadField("kind", "kind is none of those that the audit log has")
	}
	list := []Change{}
	next, err := c.Changes(kind, string(c.QueryArgs().Peek("target_id")), func(*resolver.View) error { return nil }, func(v *resolver.View, x *audit.Change) {
		list = append(list, Change{x.Seq, record.Time(x.AtMs), handler.NewChangedBy(v, x.By), x.Action, x.Kind, x.ID, x.Name, append([]string{}, x.Fields...)})
	})
	return handler.Page{Items: list, Next: next}, err
}
