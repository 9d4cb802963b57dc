package api

import (
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/resolver"
)

// staticList is a list as it is answered.
type staticList struct {
	ID          string `json:"_id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Contacts    uint64 `json:"contacts"`
	CreatedAt   string `json:"created_at"`
	UpdatedAt   string `json:"updated_at"`
}

func newList(v *resolver.View, l *resolver.List) staticList {
	return staticList{l.ID, l.Name, l.Description, v.CountListMembers(*l), timeText(l.CreatedMs), timeText(l.UpdatedMs)}
}

var errNoList = missing("there is no list with this id")

func (a *API) listLists(c *call) (any, error) {
	return aged(a, c, (*resolver.View).Lists, func(l *resolver.List) paging.Age { return paging.Age{CreatedMs: l.CreatedMs, ID: l.ID} }, newList)
}

func (a *API) listOf(c *call, id string) (out staticList, err error) {
	err = a.read(c, func(v *resolver.View) error {
		l, ok := v.List(id)
		if !ok {
			return errNoList
		}
		out = newList(v, &l)
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
	if err := a.decode(c, &in); err != nil {
		return nil, err
	}
	var l resolver.List
	if err := a.command(c, resolver.CommandListCreate, resolver.ListSave{Name: in.Name, Description: in.Description}, &l); err != nil {
		return nil, err
	}
	return a.listOf(c, l.ID)
}

func (a *API) updateList(c *call) (any, error) {
	var in listBody
	if err := a.decode(c, &in); err != nil {
		return nil, err
	}
	if err := a.command(c, resolver.CommandListUpdate, resolver.ListSave{ID: c.id(), Name: in.Name, Description: in.Description}, nil); err != nil {
		return nil, err
	}
	return a.getList(c)
}

func (a *API) deleteList(c *call) (any, error) {
	return nil, a.command(c, resolver.CommandListDelete, resolver.ListDelete{ID: c.id()}, nil)
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
	err = a.read(c, func(v *resolver.View) error {
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
	return nil, a.command(c, resolver.CommandListRemove, resolver.ListRemove{ListID: c.id(), Profile: c.param("profile")}, nil)
}
