package record

import "github.com/musterhq/muster/resolver"

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
func NewList(v *resolver.View, l *resolver.List) List {
	return List{l.ID, l.Name, l.Description, v.CountListMembers(*l), Time(l.CreatedMs), Time(l.UpdatedMs)}
}
