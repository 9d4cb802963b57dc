package handler

import (
	"encoding/json"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/audit"
)

// ChangedByShape describes a [ChangedBy].
var ChangedByShape = shape.Named("ChangedBy", shape.Object(
	shape.Req("kind", shape.Word("", audit.ByUser, audit.ByKey)), shape.Req("_id", shape.UserID("")),
	shape.Req("name", shape.Text("Ada", "Present name, or e-mail of a user without one; empty for one that was deleted."))))

// ChangedBy is the person or the API key that made a change, as it is answered.
type ChangedBy struct {
	Kind string `json:"kind"`
	ID   string `json:"_id"`
	Name string `json:"name"`
}

// Changes reads a page of the audit log.
func (c *Call) Changes(kind, id string, check func(*resolver.View) error, add func(*resolver.View, *audit.Change)) (next string, err error) {
	limit, err := c.Limit()
	if err != nil {
		return "", err
	}
	before, err := c.NumberCursor(paging.Audit)
	if err != nil {
		return "", err
	}
	err = c.Read(func(v *resolver.View) error {
		if err := check(v); err != nil {
			return err
		}
		list, err := v.Audit().Changes(kind, id, before, limit+1)
		if err != nil {
			return err
		}
		if len(list) > limit {
			list = list[:limit]
			next = EncodeNumberCursor(paging.Audit, list[limit-1].Seq)
		}
		for i := range list {
			add(v, &list[i])
		}
		return nil
	})
	return next, err
}

// NewChangedBy names the author of a change.
func NewChangedBy(v *resolver.View, by audit.Author) ChangedBy {
	return ChangedBy{by.Kind, by.ID, v.ChangerName(by)}
}

// Version is the content of something as of a change, as it is answered.
type Version struct {
	ID      uint64          `json:"_id"`
	At      string          `json:"at"`
	By      ChangedBy       `json:"by"`
	Action  string          `json:"action"`
	Name    string          `json:"name"`
	Content json.RawMessage `json:"content"` // null for one that is not kept
}

// ContentVersionsRoute is the call that lists what something was. exists refuses an id
// that there is not; shown, if any, makes what is answered of a content.
func ContentVersionsRoute(path, permission, id, schema, noun, kind string, content *shape.Schema, shown func(json.RawMessage) (json.RawMessage, error), exists func(*resolver.View, string) error) Route {
	handle := func(c *Call) (any, error) {
		limit, err := c.Limit()
		if err != nil {
			return nil, err
		}
		before, err := c.NumberCursor(paging.Audit)
		if err != nil {
			return nil, err
		}
		out, next, n := []Version{}, "", 0
		err = c.Read(func(v *resolver.View) error {
			if err := exists(v, c.Param("id")); err != nil {
				return err
			}
			list, err := v.Audit().Versions(kind, c.Param("id"), before, limit+1)
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
				r := Version{x.Seq, record.Time(x.AtMs), NewChangedBy(v, x.By), x.Action, x.Name, x.Content}
				if len(out) == limit || !room.Take(r) {
					next = EncodeNumberCursor(paging.Audit, list[i-1].Seq)
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
		return Page{Items: out, Next: next}, c.Hold(n)
	}
	return Route{handle, operation.Operation{Method: "GET", Path: path + "/versions", Permission: permission, ID: id, Summary: "List the versions of " + noun,
		About: "The newest first, as far as the audit log reaches, with the content as of each change that made it another. Contents are kept up to 256 KiB each and 8 MiB together in a company, the newest; others are null.",
		Data: shape.List(shape.Named(schema, shape.Object(shape.Req("_id", shape.Count(17, "Number of the change in the audit log.")), shape.Req("at", shape.Instant("")), shape.Req("by", ChangedByShape), shape.Req("action", shape.Text(kind+".update", "")),
			shape.Req("name", shape.Text("Welcome", "Empty for settings.")), shape.Req("content", content.OrNull()))), ""), Paged: true}}
}
