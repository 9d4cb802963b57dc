package api

import (
	"encoding/json"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
)

var changedByShape = shape.Named("ChangedBy", shape.Object(
	shape.Req("kind", shape.Word("", resolver.ByUser, resolver.ByKey)), shape.Req("_id", shape.UserID("")),
	shape.Req("name", shape.Text("Ada", "Present name, or e-mail of a user without one; empty for one that was deleted."))))

type changedBy struct {
	Kind string `json:"kind"`
	ID   string `json:"_id"`
	Name string `json:"name"`
}

// changes reads a page of the audit log.
func (c *call) changes(kind, id string, check func(*resolver.View) error, add func(*resolver.View, *resolver.Change)) (next string, err error) {
	limit, err := c.limit()
	if err != nil {
		return "", err
	}
	before, err := c.numberCursor(paging.Audit)
	if err != nil {
		return "", err
	}
	err = c.read(func(v *resolver.View) error {
		if err := check(v); err != nil {
			return err
		}
		list, err := v.Changes(kind, id, before, limit+1)
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

func newChangedBy(v *resolver.View, by resolver.ChangedBy) changedBy {
	return changedBy{by.Kind, by.ID, v.ChangerName(by)}
}

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
func contentVersionsRoute(path, permission, id, schema, noun, kind string, content *shape.Schema, shown func(json.RawMessage) (json.RawMessage, error), exists func(*resolver.View, string) error) route {
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
		err = c.read(func(v *resolver.View) error {
			if err := exists(v, c.param("id")); err != nil {
				return err
			}
			list, err := v.Versions(kind, c.param("id"), before, limit+1)
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
		return page{items: out, next: next}, c.hold(n)
	}
	return route{handle, operation.Operation{Method: "GET", Path: path + "/versions", Permission: permission, ID: id, Summary: "List the versions of " + noun,
		About: "The newest first, as far as the audit log reaches, with the content as of each change that made it another. Contents are kept up to 256 KiB each and 8 MiB together in a company, the newest; others are null.",
		Data: shape.List(shape.Named(schema, shape.Object(shape.Req("_id", shape.Count(17, "Number of the change in the audit log.")), shape.Req("at", shape.Instant("")), shape.Req("by", changedByShape), shape.Req("action", shape.Text(kind+".update", "")),
			shape.Req("name", shape.Text("Welcome", "Empty for settings.")), shape.Req("content", content.OrNull()))), ""), Paged: true}}
}
