package api

import (
	"fmt"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// maxWarnings bounds the warnings of a definition.
const maxWarnings = 20

// definitionWarnings are what is probably a mistake in a definition, each with its place:
// types of events that there have never been. They are no errors, since the events may
// come yet.
func definitionWarnings(v *resolver.View, root *segment.Node) []string {
	out := []string{}
	var types []string
	known := map[string]bool{}
	for _, t := range v.Catalog() {
		types = append(types, t.Key)
		known[t.Key] = true
	}
	root.Walk(func(path string, n *segment.Node) {
		if n.Kind != segment.KindActivity || len(out) == maxWarnings {
			return
		}
		name := n.Activity.Event
		if known[name] || name == segment.AnyEvent || segment.OwnEvent(name) {
			return
		}
		text := fmt.Sprintf("%s: there has never been an event of the type %s", jsonform.Join(path, "event"), name)
		if near := jsonform.Near(name, types); near != "" {
			text += "; did you mean " + near + "?"
		}
		out = append(out, text)
	})
	return out
}
