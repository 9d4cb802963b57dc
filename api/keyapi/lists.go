package keyapi

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/view"
)

func listOperations() keycall.Group {
	return keycall.Group{Group: operation.Group{Surface: operation.SurfaceA, Tag: "Lists", Title: "Lists", About: "A list is static: it has the contacts that were added to it."}, Routes: []keycall.Route{
		{Handle: createList, Operation: operation.Operation{Method: "POST", Path: "/lists", Permission: "lists:write", ID: "createList", Summary: "Create a list", About: "An account has at most 10,000 lists.",
			Body: shapes.ListBody(true), Data: shapes.List, Fails: []string{"name Field required"}}},
		{Handle: listLists, Operation: operation.Operation{Method: "GET", Path: "/lists", Permission: "lists:read", ID: "listLists", Summary: "List lists", About: "The oldest first.", Data: shape.List(shapes.List, ""), Paged: true}},
		{Handle: getList, Operation: operation.Operation{Method: "GET", Path: "/lists/{id}", Permission: "lists:read", ID: "getList", Summary: "Read a list", Data: shapes.List, Fails: []string{"list_id: there is no such list"}}},
		{Handle: updateList, Operation: operation.Operation{Method: "PATCH", Path: "/lists/{id}", Permission: "lists:write", ID: "updateList", Summary: "Change a list", About: "Omitted fields keep their values.",
			Body: shapes.ListBody(false), Data: shapes.List, Fails: []string{"list_id: there is no such list"}}},
		{Handle: deleteList, Operation: operation.Operation{Method: "DELETE", Path: "/lists/{id}", Permission: "lists:write", ID: "deleteList", Summary: "Delete a list",
			About: "Refused while a segment or a campaign that was not sent uses it; the message names them. Its contacts stay.",
			Fails: []string{"list_id: there is no such list"}}},
		{Handle: addToList, Operation: operation.Operation{Method: "POST", Path: "/lists/{id}/contacts", Permission: "lists:write", ID: "addToList", Summary: "Add a contact to a list",
			About: "The contact is made if its e-mail is not on file. Of a contact on file, names that are missing are filled in and nothing is changed; a `warning` names identifiers that it has not got.",
			Body:  shape.Object(append([]shape.Field{shape.Req("email", shape.Text("ann@example.com", "Whom to put on the list.").Bytes(1, 512))}, shapes.ContactFields()[1:]...)...), BodyRules: operation.BodyRules{Instead: toMake},
			Data: contactShape, Fails: []string{"email Field required"}}},
		{Handle: removeFromList, Operation: operation.Operation{Method: "DELETE", Path: "/lists/{id}/contacts/{contact}", Permission: "lists:write", ID: "removeFromList", Summary: "Remove a contact from a list",
			Fails: []string{"There is no contact with this id"}}},
	}}
}

func listOf(c *keycall.Call, id string) (x record.List, err error) {
	err = c.Read(func(v *resolver.View) error {
		l, ok := v.Contacts().Find(id)
		if !ok {
			return keycall.FailWith(keycall.CodeNotFound, "list_id: there is no such list")
		}
		x = record.NewList(v, &l)
		return nil
	})
	return x, err
}

// createList answers POST /lists.
func createList(c *keycall.Call) (any, error) {
	var in struct {
		Name        *string `json:"name"`
		Description string  `json:"description"`
		contacts.TopicSave
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.Name == nil {
		return nil, keycall.Fail("name Field required")
	}
	var l contacts.List
	if err := c.Command(contacts.CommandListCreate, contacts.ListSave{Name: *in.Name, Description: in.Description, TopicSave: in.TopicSave}, &l); err != nil {
		return nil, err
	}
	return listOf(c, l.ID)
}

// listLists answers GET /lists, the oldest first.
func listLists(c *keycall.Call) (any, error) {
	out, next, err := keycall.OldestFirst(c, c.Read, func(v *resolver.View) []contacts.List { return v.Contacts().Lists() }, func(l *contacts.List) paging.Age { return paging.Age{CreatedMs: l.CreatedMs, ID: l.ID} }, record.NewList)
	return keycall.Reply{Data: out, Next: next}, err
}

func getList(c *keycall.Call) (any, error) { return listOf(c, c.Param("id")) }

// updateList answers PATCH /lists/{id}.
func updateList(c *keycall.Call) (any, error) {
	var in struct {
		Name        *string `json:"name"`
		Description *string `json:"description"`
		contacts.TopicSave
	}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	old, err := listOf(c, c.Param("id"))
	if err != nil {
		return nil, err
	}
	args := contacts.ListSave{ID: old.ID, Name: old.Name, Description: old.Description, TopicSave: in.TopicSave}
	if in.Name != nil {
		args.Name = *in.Name
	}
	if in.Description != nil {
		args.Description = *in.Description
	}
	if err := c.Command(contacts.CommandListUpdate, args, nil); err != nil {
		return nil, err
	}
	return listOf(c, old.ID)
}

func deleteList(c *keycall.Call) (any, error) {
	return nil, c.Command(contacts.CommandListDelete, contacts.ListDelete{ID: c.Param("id")}, nil)
}

// addToList answers POST /lists/{id}/contacts: the contact is made if its e-mail
// is not on file.
func addToList(c *keycall.Call) (any, error) {
	var in contactFields
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	if in.Email == nil || *in.Email == "" {
		return nil, keycall.Fail("email Field required")
	}
	args := contacts.ListAdd{ListID: c.Param("id"), Create: in.create()}
	args.Create.ListID = ""
	var out contacts.Reply
	if err := c.Command(contacts.CommandListAdd, args, &out); err != nil {
		return nil, err
	}
	x, err := contactMade(c, &out)
	if err == nil && !out.Created && x.Warning == "" {
		x.Warning, err = leftOut(c, &in, out.ID)
	}
	return x, err
}

// leftOut warns of identifiers that a contact on file has not got by being put on a list.
func leftOut(c *keycall.Call, in *contactFields, id string) (warning string, err error) {
	err = c.Read(func(v *resolver.View) error {
		o, ok := v.Profiles().ResolveText(id)
		if !ok {
			return errNoContact
		}
		p, err := v.Profiles().Get(o)
		if err != nil {
			return err
		}
		lacks := func(given *string, kind resolver.IdentityKind, normal func(string) string) bool {
			return given != nil && *given != "" && !slices.ContainsFunc(p.Identities, func(x view.Identity) bool {
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

func removeFromList(c *keycall.Call) (any, error) {
	return nil, c.Command(contacts.CommandListRemove, contacts.ListRemove{ListID: c.Param("id"), Profile: c.Param("contact")}, nil)
}
