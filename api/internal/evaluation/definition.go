package evaluation

import (
	"encoding/json"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// ParseDefinition reads the definition of a request. What is saved of it is written, with
// the fields that it means now.
func ParseDefinition(raw json.RawMessage) (root *segment.Node, written json.RawMessage, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil, handler.BadField("definition", "definition is missing; send a group or a condition")
	}
	root, err = segment.Parse(raw, segment.Limits{})
	if err != nil {
		return nil, nil, handler.BadField("definition", "%s", err)
	}
	if root.UseCurrentFields() {
		raw = root.Canonical()
	}
	return root, raw, nil
}

// CheckDefinition refuses one that refers to what is not there.
func (q *Question) CheckDefinition(v *resolver.View, root *segment.Node) error {
	if err := segment.CheckRefs("", root, q.Lookup); err != nil {
		return handler.BadField("definition", "%s", err)
	}
	if err := segment.CheckLists(root, func(id string) bool { _, ok := v.Contacts().Find(id); return ok }); err != nil {
		return handler.BadField("definition", "%s", err)
	}
	return nil
}
