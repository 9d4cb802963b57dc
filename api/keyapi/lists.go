package keyapi

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
)

func (a *API) listOperations() group {
	return group{operation.Group{Surface: operation.SurfaceA, Tag: "Lists", Title: "Lists", About: "A list is static: it has the contacts that were added to it."}, []route{
		{a.createList, operation.Operation{Method: "POST", Path: "/lists", Permission: "lists:write", ID: "createList", Summary: "Create a list", About: "An account has at most 10,000 lists.",
			Body: shapes.ListBody(true), Data: shapes.List, Fails: []string{"name Field required"}}},
		{a.lists, operation.Operation{Method: "GET", Path: "/lists", Permission: "lists:read", ID: "listLists", Summary: "List lists", About: "The oldest first.", Data: shape.List(shapes.List, ""), Paged: true}},
		{a.getList, operation.Operation{Method: "GET", Path: "/lists/{id}", Permission: "lists:read", ID: "getList", Summary: "Read a list", Data: shapes.List, Fails: []string{"list_id: there is no such list"}}},
		{a.updateList, operation.Operation{Method: "PATCH", Path: "/lists/{id}", Permission: "lists:write", ID: "updateList", Summary: "Change a list", About: "Omitted fields keep their values.",
			Body: shapes.ListBody(false), Data: shapes.List, Fails: []string{"list_id: there is no such list"}}},
		{a.deleteList, operation.Operation{Method: "DELETE", Path: "/lists/{id}", Permission: "lists:write", ID: "deleteList", Summary: "Delete a list",
			About: "Refused while a segment or a campaign that was not sent uses it; the message names them. Its contacts stay.",
			Fails: []string{"list_id: there is no such list"}}},
		{a.addToList, operation.Operation{Method: "POST", Path: "/lists/{id}/contacts", Permission: "lists:write", ID: "addToList", Summary: "Add a contact to a list",
			About: "The contact is made if its e-mail is not on file. Of a contact on file, names that are missing are filled in and nothing is changed; a `warning` names identifiers that it has not got.",
			Body:  shape.Object(append([]shape.Field{shape.Req("email", shape.Text("ann@example.com", "Whom to put on the list.").Bytes(1, 512))}, shapes.ContactFields()[1:]...)...), Instead: toMake,
			Data: contactShape, Fails: []string{"email Field required"}}},
		{a.removeFromList, operation.Operation{Method: "DELETE", Path: "/lists/{id}/contacts/{contact}", Permission: "lists:write", ID: "removeFromList", Summary: "Remove a contact from a list",
			Fails: []string{"There is no contact with this id"}}},
	}}
}

func (c *call) listOf(id string) (x record.List, err error) {
	err = c.read(func(v *resolver.View) error {
		l, ok := v.Contacts().Find(id)
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
	var l contacts.List
	if err := c.command(contacts.CommandListCreate, contacts.ListSave{Name: *in.Name, Description: in.Description}, &l); err != nil {
		return nil, err
	}
	return c.listOf(l.ID)
}

// lists answers GET /lists, the oldest first.
func (a *API) lists(c *call) (any, error) {
	out, next, err := aged(c, c.read, func(v *resolver.View) []contacts.List { return v.Contacts().Lists() }, func(l *contacts.List) paging.Age { return paging.Age{CreatedMs: l.CreatedMs, ID: l.ID} }, record.NewList)
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
	args := contacts.ListSave{ID: old.ID, Name: old.Name, Description: old.Description}
	if in.Name != nil {
		args.Name = *in.Name
	}
	if in.Description != nil {
		args.Description = *in.Description
	}
	if err := c.command(contacts.CommandListUpdate, args, nil); err != nil {
		return nil, err
	}
	return c.listOf(old.ID)
}

func (a *API) deleteList(c *call) (any, error) {
	return nil, c.command(contacts.CommandListDelete, contacts.ListDelete{ID: c.param("id")}, nil)
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
	args := contacts.ListAdd{ListID: c.param("id"), Create: in.create()}
	args.Create.ListID = ""
	var out contacts.Reply
	if err := c.command(contacts.CommandListAdd, args, &out); err != nil {
		return nil, err
	}
	x, err := c.contactMade(&out)
	if err == nil && !out.Created && x.Warning == "" {
		x.Warning, err = c.leftOut(&in, out.ID)
	}
	return x, err
}

// leftOut warns of identifiers that a contact on file has not got by being put on a list.
func (c *call) leftOut(in *contactFields, id string) (warning string, err error) {
	err = c.read(func(v *resolver.View) error {
		o, ok := v.ResolveText(id)
		if !ok {
			return errNoContact
		}
		p, err := v.Profile(o)
		if err != nil {
			return err
		}
		lacks := func(given *string, kind resolver.IdentityKind, normal func(string) string) bool {
			return given != nil && *given != "" && !slices.ContainsFunc(p.Identities, func(x resolver.Identity) bool {
				return x.Kind == kind && normal(x.Value) == normal(*given)
			})
		}
		var fields []string
		if lacks(in.ExternalID, resolver.IdentityExternalID, strings.TrimSpace) {
			fields = append(fields, "external_id")
		}
		if lacks(in.Phone, resolver.IdentityPhone, identity.NormalizePhone) {
			fields = append(fields, "phone")
		}
		if len(fields) > 0 {
			warning = strings.Join(fields, " and ") + " left out: the e-mail is on file; change the contact by PATCH /contacts/{id}"
		}
		return nil
	})
	return warning, err
}

func (a *API) removeFromList(c *call) (any, error) {
	return nil, c.command(contacts.CommandListRemove, contacts.ListRemove{ListID: c.param("id"), Profile: c.param("contact")}, nil)
}
