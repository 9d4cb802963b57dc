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
}

// NewList is a list of the view's state.
func NewList(v *resolver.View, l *contacts.List) List {
	return List{l.ID, l.Name, l.Description, v.Contacts().Members(*l).GetCardinality(), Time(l.CreatedMs), Time(l.UpdatedMs)}
}
