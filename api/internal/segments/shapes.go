package segments

import (
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/shape"
)

var recordShape = shape.Named("Segment", shape.Object(
	shape.Req("_id", shape.SegmentID("Id of the segment.")),
	shape.Req("name", shape.Text("Customers", "")),
	shape.Req("definition", shapes.Definition),
	shape.Req("status", shape.Word("building until its members are kept up to date by the engine, live from then on.", "live", "building")),
	shape.Req("progress", shape.Number(1, "How much of that is done.").Between(0, 1)),
	shape.Req("count", shape.Count(512, "Members; null when they could not be counted in time, which the message says.").OrNull()),
	shape.Req("as_of", shape.Instant("The instant of the count.")),
	shape.Req("created_at", shape.Instant("When it was made.")),
	shape.Req("updated_at", shape.Instant("When it was changed last.")),
	shape.Req("version", shape.ContentVersion()),
	shape.Opt("warnings", definitionWarningsShape()),
))

func definitionWarningsShape() *shape.Schema {
	return shape.List(shape.Text("event: there has never been an event of the type bougth; did you mean bought?", ""), "What is probably a mistake in the definition: event types, properties and attributes that there have never been, and comparisons with values of another JSON type than there are; 20 at most. When a segment is read there are none.")
}

// explanationShape is why a profile is a member of a definition, or not.
var explanationShape = shape.Named("Explanation", shape.Object(
	shape.Req("profile_id", shape.ProfileID("The profile's present id.")), shape.Req("member", shape.Boolean(true, "Whether it would be a member.")),
	shape.Req("as_of", shape.Instant("")), shape.Req("definition", shapes.Explained),
))

var reachableShape = shape.Named("Reachable", shape.Object(
	shape.Req("email", shape.Count(480, "With an e-mail, and subscribed; without `require_opt_in` also who neither subscribed nor unsubscribed.")),
	shape.Req("sms", shape.Count(120, "With a phone, and subscribed.")),
	shape.Req("whatsapp", shape.Count(80, "Likewise.")), shape.Req("im", shape.Count(0, "Likewise.")),
	shape.Req("push", shape.Count(210, "With a device; otherwise as by e-mail.")),
	shape.Req("in_app", shape.Count(300, "With an external_id or an e-mail, and not unsubscribed.")),
).Says("How many of them a message could be sent to now, by channel: a campaign passes over the others. Profiles that are suppressed on a channel do not count for it, nor do those whose phone number another contact refused."))
