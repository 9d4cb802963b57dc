package keyapi

import (
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver"
)

func (a *API) listRoutes() []route {
	return []route{
		{method: "POST", path: "/lists", permission: "lists:write", handle: a.createList},
		{method: "GET", path: "/lists", permission: "lists:read", handle: a.lists},
		{method: "GET", path: "/lists/{id}", permission: "lists:read", handle: a.getList},
		{method: "PATCH", path: "/lists/{id}", permission: "lists:write", handle: a.updateList},
		{method: "DELETE", path: "/lists/{id}", permission: "lists:write", handle: a.deleteList},
		{method: "POST", path: "/lists/{id}/contacts", permission: "lists:write", handle: a.addToList},
		{method: "DELETE", path: "/lists/{id}/contacts/{contact}", permission: "lists:write", handle: a.removeFromList},
	}
}

func (c *call) listOf(id string) (x record.List, err error) {
	err = c.read(func(v *resolver.View) error {
		l, ok := v.List(id)
		if !ok {
			return failWith(codeNotFound, "list_id: there is no such list")
		}
		x = record.NewList(v, &l)
		return nil
	})
	return x, err
}

// createList answers POST /lists.
func (a *API) createList(c *call) (any, error) {
	var in struct {
		Name        *string `json:"name"`
		Description string  `json:"description"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Name == nil {
		return nil, Fail("name Field required")
	}
	var l resolver.List
	if err := c.command(resolver.CommandListCreate, resolver.ListSave{Name: *in.Name, Description: in.Description}, &l); err != nil {
		return nil, err
	}
	return c.listOf(l.ID)
}

// lists answers GET /lists, the oldest first.
func (a *API) lists(c *call) (any, error) {
	out, next, err := aged(c, c.read, (*resolver.View).Lists, func(l *resolver.List) paging.Age { return paging.Age{CreatedMs: l.CreatedMs, ID: l.ID} }, record.NewList)
	return reply{data: out, next: next}, err
}

func (a *API) getList(c *call) (any, error) { return c.listOf(c.param("id")) }

// updateList answers PATCH /lists/{id}.
func (a *API) updateList(c *call) (any, error) {
	var in struct {
		Name        *string `json:"name"`
		Description *string `json:"description"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	old, err := c.listOf(c.param("id"))
	if err != nil {
		return nil, err
	}
	args := resolver.ListSave{ID: old.ID, Name: old.Name, Description: old.Description}
	if in.Name != nil {
		args.Name = *in.Name
	}
	if in.Description != nil {
		args.Description = *in.Description
	}
	if err := c.command(resolver.CommandListUpdate, args, nil); err != nil {
		return nil, err
	}
	return c.listOf(old.ID)
}

func (a *API) deleteList(c *call) (any, error) {
	return nil, c.command(resolver.CommandListDelete, resolver.ListDelete{ID: c.param("id")}, nil)
}

// addToList answers POST /lists/{id}/contacts: the contact is made if its e-mail
// is not on file.
func (a *API) addToList(c *call) (any, error) {
	var in contactFields
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	if in.Email == nil || *in.Email == "" {
		return nil, Fail("email Field required")
	}
	args := resolver.ListAdd{ListID: c.param("id"), Create: in.create()}
	args.Create.ListID = ""
	var out resolver.ContactReply
	if err := c.command(resolver.CommandListAdd, args, &out); err != nil {
		return nil, err
	}
	return c.contactMade(&out)
}

func (a *API) removeFromList(c *call) (any, error) {
	return nil, c.command(resolver.CommandListRemove, resolver.ListRemove{ListID: c.param("id"), Profile: c.param("contact")}, nil)
}
