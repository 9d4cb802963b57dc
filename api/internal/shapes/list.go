package shapes

import "github.com/musterhq/muster/api/shape"

// ListBody is what a list is made or changed with; named: its name must be given.
func ListBody(named bool) *shape.Schema {
	name := shape.Text("Newsletter", "Name of the list.").Bytes(1, 200)
	first := shape.Opt("name", name)
	if named {
		first = shape.Req("name", name)
	}
	return shape.Object(first, shape.Opt("description", shape.Text("Monthly news", "What the list is for.").Bytes(0, 2000)),
		shape.Opt("public", shape.Boolean(true, "People see the list as a topic on their preference page, and join and leave it there. Left out, it stays as it is.")),
		shape.Opt("public_name", shape.Text("Monthly news", "What people read there; required where `public` is true.").Bytes(0, 200)),
		shape.Opt("public_description", shape.Text("What is new in the shop, once a month", "Likewise.").Bytes(0, 1000)))
}

// List is a static list.
var List = shape.Named("List", shape.Object(
	shape.Req("_id", shape.ListID("Id of the list.")),
	shape.Req("name", shape.Text("Newsletter", "")),
	shape.Req("description", shape.Text("Monthly news", "")),
	shape.Req("contacts", shape.Count(1204, "How many are on it.")),
	shape.Req("created_at", shape.Instant("When it was made.")),
	shape.Req("updated_at", shape.Instant("When it was changed last.")),
	shape.Req("public", shape.Boolean(true, "People see it as a topic on their preference page. Who leaves it there is not added to the list again by anybody else.")),
	shape.Req("public_name", shape.Text("Monthly news", "What people read there.")),
	shape.Req("public_description", shape.Text("What is new in the shop, once a month", "")),
))
