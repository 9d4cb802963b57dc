package api

import (
	"encoding/json"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
)

// version is what something was as of a change, as it is answered.
type version struct {
	ID      uint64          `json:"_id"`
	At      string          `json:"at"`
	By      changedBy       `json:"by"`
	Action  string          `json:"action"`
	Name    string          `json:"name"`
	Content json.RawMessage `json:"content"` // null for one that is not kept
}

// contentVersionsRoute is the call that lists what something was. exists refuses an id
// that there is not; shown, if any, makes what is answered of a content.
func (a *API) contentVersionsRoute(path, permission, id, schema, noun, kind string, content *shape.Schema, shown func(json.RawMessage) (json.RawMessage, error), exists func(*resolver.View, string) error) route {
	handle := func(c *call) (any, error) {
		limit, err := c.limit()
		if err != nil {
			return nil, err
		}
		before, err := c.numberCursor(paging.Audit)
		if err != nil {
			return nil, err
		}
		out, next, n := []version{}, "", 0
		err = a.read(c, func(v *resolver.View) error {
			if err := exists(v, c.param("id")); err != nil {
				return err
			}
			list, err := v.Audit().Versions(kind, c.param("id"), before, limit+1)
			if err != nil {
				return err
			}
			var room paging.Room
			for i := range list {
				x := &list[i]
				if shown != nil && x.Content != nil {
					if x.Content, err = shown(x.Content); err != nil {
						return err
					}
				}
				r := version{x.Seq, record.Time(x.AtMs), newChangedBy(v, x.By), x.Action, x.Name, x.Content}
				if len(out) == limit || !room.Take(r) {
					next = encodeNumberCursor(paging.Audit, list[i-1].Seq)
					break
				}
				out = append(out, r)
			}
			n = room.Bytes
			return nil
		})
		if err != nil {
			return nil, err
		}
		return page{items: out, next: next}, a.hold(c, n)
	}
	return route{handle, operation.Operation{Method: "GET", Path: path + "/versions", Permission: permission, ID: id, Summary: "List the versions of " + noun,
		About: "The newest first, as far as the audit log reaches, with the content as of each change that made it another. Contents are kept up to 256 KiB each and 8 MiB together in a company, the newest; others are null.",
		Data: shape.List(shape.Named(schema, shape.Object(shape.Req("_id", shape.Count(17, "Number of the change in the audit log.")), shape.Req("at", shape.Instant("")), shape.Req("by", changedByShape), shape.Req("action", shape.Text(kind+".update", "")),
			shape.Req("name", shape.Text("Welcome", "Empty for settings.")), shape.Req("content", content.OrNull()))), ""), Paged: true}}
}

func (a *API) flowVersionsRoute() route {
	return a.contentVersionsRoute("/flows/{id}", "flows:read", "flowVersions", "FlowVersion", "a flow", "flow",
		shape.FreeObject(shape.Pairs("name", "Welcome", "trigger", nil, "reentry", "once", "steps", []any{}), "The definition, as saving a draft takes it."), nil,
		func(v *resolver.View, id string) error {
			if _, ok := v.Flows().Find(id); !ok {
				return errNoFlow
			}
			return nil
		})
}

func (a *API) templateVersionsRoute() route {
	return a.contentVersionsRoute("/templates/{id}", "templates:read", "templateVersions", "TemplateVersion", "a template", "template",
		shape.Named("TemplateContent", shape.Object(shape.Req("name", shape.Text("Order confirmation", "")), shape.Req("source", shape.Word("", "LIST", "DRAFT")), shape.Req("subject", shape.Text("Your order {{order}}", "")),
			shape.Req("html", shape.Text("<p>Hello {{first_name}}</p>", "")), shape.Req("text", shape.Text("Hello {{first_name}}", "")), shape.Req("transactional", shape.Boolean(true, "")))), nil,
		func(v *resolver.View, id string) error {
			if _, ok := v.Campaigns().Template(id); !ok {
				return errNoTemplate
			}
			return nil
		})
}

func (a *API) settingsVersionsRoute(settings *shape.Schema) route {
	return a.contentVersionsRoute("/settings", "settings:read", "settingsVersions", "SettingsVersion", "the settings", "settings", settings, wholeSettings,
		func(*resolver.View, string) error { return nil })
}

// wholeSettings are settings as they are kept, with those that have their defaults.
func wholeSettings(content json.RawMessage) (json.RawMessage, error) {
	var s resolver.Settings
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, err
	}
	return json.Marshal(shownSettings(s))
}
