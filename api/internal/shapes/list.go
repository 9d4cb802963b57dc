package shapes

import "github.com/musterhq/muster/api/shape"

// ListBody is what a list is made or changed with; named: its name must be given.
func ListBody(named bool) *shape.Schema {
	name := shape.Text("Newsletter", "Name of the list.").Bytes(1, 200)
	first := shape.Opt("name", name)
	if named {
		first = shape.Req("name", name)
	}
	return shape.Object(first, shape.Opt("description", shape.Text("Monthly news", "What the list is for.").Bytes(0, 2000)))
}

// List is a static list.
var List = shape.Named("List", shape.Object(
	shape.Req("_id", shape.ListID("Id of the list.")),
	shape.Req("name", shape.Text("Newsletter", "")),
	shape.Req("description", shape.Text("Monthly news", "")),
	shape.Req("contacts", shape.Count(1204, "How many are on it.")),
	shape.Req("created_at", shape.Instant("When it was made.")),
	shape.Req("updated_at", shape.Instant("When it was changed last.")),
))
