package api

import (
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
)

func (a *API) listOperations() group {
	return group{operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: lists", Title: "Lists", About: "Static lists of contacts."}, []route{
		{a.listLists, operation.Operation{Method: "GET", Path: "/lists", Permission: "lists:read", ID: "consoleListLists", Summary: "List lists", About: "The oldest first.", Data: shape.List(shapes.List, ""), Paged: true}},
		{a.createList, operation.Operation{Method: "POST", Path: "/lists", Permission: "lists:write", ID: "consoleCreateList", Summary: "Create a list", Body: shapes.ListBody(true), Data: shapes.List}},
		{a.getList, operation.Operation{Method: "GET", Path: "/lists/{id}", Permission: "lists:read", ID: "consoleGetList", Summary: "Read a list", Data: shapes.List}},
		{a.updateList, operation.Operation{Method: "PUT", Path: "/lists/{id}", Permission: "lists:write", ID: "consoleUpdateList", Summary: "Replace a list's name and description", Body: shapes.ListBody(true), Data: shapes.List}},
		{a.deleteList, operation.Operation{Method: "DELETE", Path: "/lists/{id}", Permission: "lists:write", ID: "consoleDeleteList", Summary: "Delete a list", About: "Refused while a segment or a campaign that was not sent uses it."}},
		usedInRoute("/lists", "lists:read", "listUsedIn", "a list", keepsFromDeletion, (*resolver.View).ListUsedIn, errNoList),
		{a.listMembers, operation.Operation{Method: "GET", Path: "/lists/{id}/members", Permission: "lists:read", ID: "consoleListMembers", Summary: "List the members of a list",
			Query: operation.PageQuery(), Data: shape.Object(shape.Req("members", shape.List(shape.ProfileID(""), "Profiles, in the order in which they were made.")), shape.Req("next", shape.NextCursor.OrNull()))}},
		{a.removeMember, operation.Operation{Method: "DELETE", Path: "/lists/{id}/members/{profile}", Permission: "lists:write", ID: "consoleRemoveMember", Summary: "Remove a profile from a list"}},
	}}
}

var errNoList = missing("there is no list with this id")

func (a *API) listLists(c *call) (any, error) {
	return aged(c, (*resolver.View).Lists, func(l *resolver.List) paging.Age { return paging.Age{CreatedMs: l.CreatedMs, ID: l.ID} }, record.NewList)
}

func (a *API) listOf(c *call, id string) (out record.List, err error) {
	err = c.read(func(v *resolver.View) error {
		l, ok := v.List(id)
		if !ok {
			return errNoList
		}
		out = record.NewList(v, &l)
		return nil
	})
	return out, err
}

func (a *API) getList(c *call) (any, error) { return a.listOf(c, c.id()) }

type listBody struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

func (a *API) createList(c *call) (any, error) {
	var in listBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	var l resolver.List
	if err := c.command(resolver.CommandListCreate, resolver.ListSave{Name: in.Name, Description: in.Description}, &l); err != nil {
		return nil, err
	}
	return a.listOf(c, l.ID)
}

func (a *API) updateList(c *call) (any, error) {
	var in listBody
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if err := c.command(resolver.CommandListUpdate, resolver.ListSave{ID: c.id(), Name: in.Name, Description: in.Description}, nil); err != nil {
		return nil, err
	}
	return a.getList(c)
}

func (a *API) deleteList(c *call) (any, error) {
	return nil, c.command(resolver.CommandListDelete, resolver.ListDelete{ID: c.id()}, nil)
}

// listMembers answers GET /lists/{id}/members.
func (a *API) listMembers(c *call) (any, error) {
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	from, err := paging.DecodeOrdinal(c.QueryArgs().Peek("cursor"))
	if err != nil {
		return nil, cursorFault(err)
	}
	members := []string{}
	next := ""
	err = c.read(func(v *resolver.View) error {
		l, ok := v.List(c.id())
		if !ok {
			return errNoList
		}
		ordinals := v.ListMembersPage(l, from, limit)
		for _, o := range ordinals {
			members = append(members, v.ProfileID(o).String())
		}
		next = paging.NextOrdinal(ordinals, limit)
		return nil
	})
	return map[string]any{"members": members, "next": cursorOrNull(next)}, err
}

func (a *API) removeMember(c *call) (any, error) {
	return nil, c.command(resolver.CommandListRemove, resolver.ListRemove{ListID: c.id(), Profile: c.param("profile")}, nil)
}
