package profiles

import (
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/view"
)

// Lists are the calls about lists of profiles.
func (a *API) Lists() handler.Group {
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: lists", Title: "Lists", About: "Static lists of contacts."}, Routes: []handler.Route{
		{Handle: a.listLists, Operation: operation.Operation{Method: "GET", Path: "/lists", Permission: "lists:read", ID: "consoleListLists", Summary: "List lists", About: "The oldest first.", Data: shape.List(shapes.List, ""), Paged: true}},
		{Handle: a.createList, Operation: operation.Operation{Method: "POST", Path: "/lists", Permission: "lists:write", ID: "consoleCreateList", Summary: "Create a list", Body: shapes.ListBody(true), Data: shapes.List}},
		{Handle: a.getList, Operation: operation.Operation{Method: "GET", Path: "/lists/{id}", Permission: "lists:read", ID: "consoleGetList", Summary: "Read a list", Data: shapes.List}},
		{Handle: a.updateList, Operation: operation.Operation{Method: "PUT", Path: "/lists/{id}", Permission: "lists:write", ID: "consoleUpdateList", Summary: "Replace a list's name and description", About: "What people see of the list stays as it is where it is left out.", Body: shapes.ListBody(true), Data: shapes.List}},
		{Handle: a.deleteList, Operation: operation.Operation{Method: "DELETE", Path: "/lists/{id}", Permission: "lists:write", ID: "consoleDeleteList", Summary: "Delete a list", About: "Refused while a segment or a campaign that was not sent uses it."}},
		handler.UsedInRoute("/lists", "lists:read", "listUsedIn", "a list", handler.KeepsFromDeletion, view.UsedIn.List, errNoList),
		{Handle: a.listMembers, Operation: operation.Operation{Method: "GET", Path: "/lists/{id}/members", Permission: "lists:read", ID: "consoleListMembers", Summary: "List the members of a list",
			Query: operation.PageQuery(), Data: shape.Object(shape.Req("members", shape.List(shape.ProfileID(""), "Profiles, in the order in which they were made.")), shape.Req("next", shape.NextCursor.OrNull()))}},
		{Handle: a.removeMember, Operation: operation.Operation{Method: "DELETE", Path: "/lists/{id}/members/{profile}", Permission: "lists:write", ID: "consoleRemoveMember", Summary: "Remove a profile from a list"}},
	}}
}

var errNoList = handler.NotFound("there is no list with this id")

func (a *API) listLists(c *handler.Call) (any, error) {
	return handler.OldestFirst(c, func(v *resolver.View) []contacts.List { return v.Contacts().Lists() }, func(l *contacts.List) paging.Age { return paging.Age{CreatedMs: l.CreatedMs, ID: l.ID} }, record.NewList)
}

func (a *API) listOf(c *handler.Call, id string) (out record.List, err error) {
	err = c.Read(func(v *resolver.View) error {
		l, ok := v.Contacts().Find(id)
		if !ok {
			return errNoList
		}
		out = record.NewList(v, &l)
		return nil
	})
	return out, err
}

func (a *API) getList(c *handler.Call) (any, error) { return a.listOf(c, c.PathID()) }

type listBody struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	contacts.TopicSave
}

func (a *API) createList(c *handler.Call) (any, error) {
	var in listBody
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	var l contacts.List
	if err := c.Command(contacts.CommandListCreate, contacts.ListSave{Name: in.Name, Description: in.Description, TopicSave: in.TopicSave}, &l); err != nil {
		return nil, err
	}
	return a.listOf(c, l.ID)
}

func (a *API) updateList(c *handler.Call) (any, error) {
	var in listBody
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if err := c.Command(contacts.CommandListUpdate, contacts.ListSave{ID: c.PathID(), Name: in.Name, Description: in.Description, TopicSave: in.TopicSave}, nil); err != nil {
		return nil, err
	}
	return a.getList(c)
}

func (a *API) deleteList(c *handler.Call) (any, error) {
	return nil, c.Command(contacts.CommandListDelete, contacts.ListDelete{ID: c.PathID()}, nil)
}

// listMembers answers GET /lists/{id}/members.
func (a *API) listMembers(c *handler.Call) (any, error) {
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	from, err := paging.DecodeOrdinal(c.QueryArgs().Peek("cursor"))
	if err != nil {
		return nil, handler.CursorFault(err)
	}
	members := []string{}
	next := ""
	err = c.Read(func(v *resolver.View) error {
		l, ok := v.Contacts().Find(c.PathID())
		if !ok {
			return errNoList
		}
		ordinals := v.Contacts().MembersPage(l, from, limit)
		for _, o := range ordinals {
			members = append(members, v.Profiles().ID(o).String())
		}
		next = paging.NextOrdinal(ordinals, limit)
		return nil
	})
	return map[string]any{"members": members, "next": handler.CursorOrNull(next)}, err
}

func (a *API) removeMember(c *handler.Call) (any, error) {
	return nil, c.Command(contacts.CommandListRemove, contacts.ListRemove{ListID: c.PathID(), Profile: c.Param("profile")}, nil)
}
