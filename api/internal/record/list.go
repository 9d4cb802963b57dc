package record

import (
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
)

// List is a list.
type List struct {
	ID          string `json:"_id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Contacts    uint64 `json:"contacts"` // how many are on it
	CreatedAt   string `json:"created_at"`
	UpdatedAt   string `json:"updated_at"`
	contacts.Topic
}

// NewList is a list of the view's state.
func NewList(v *resolver.View, l *contacts.List) List {
	out := List{ID: l.ID, Name: l.Name, Description: l.Description, Contacts: v.Contacts().Members(*l).GetCardinality(), CreatedAt: Time(l.CreatedMs), UpdatedAt: Time(l.UpdatedMs)}
	if l.Topic != nil {
		out.Topic = *l.Topic
	}
	return out
}
