package automation

import (
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/shape"
)

func flowDefinitionShape() *shape.Schema {
	return shape.Object(
		shape.Req("name", shape.Text("Welcome", "").Bytes(1, 200)),
		shape.Opt("trigger", shapes.FlowTrigger().OrNull()),
		shape.Opt("reentry", shapes.FlowReentry().Default("once")),
		shape.Opt("steps", shape.List(shapes.FlowStep, "The first is the entry.").Entries(0, 200)),
	).Parsed()
}

var enrolmentShape = shape.Named("Enrolment", shape.Object(
	shape.Req("profile_id", shape.ProfileID("")), shape.Req("number", shape.Integer(1, "The number of the profile's enrolment in this flow.").With("minimum", 1)),
	shape.Req("status", shape.Word("", "in_progress", "completed", "exited")),
	shape.Req("step", shape.Text("welcome", "Id of the step where it stands; null when it has ended.").OrNull()), shape.Req("since", shape.Instant("When it came there.").OrNull()),
	shape.Req("due", shape.Instant("When it continues by itself; null while something else is waited for.").OrNull()),
	shape.Req("started_at", shape.Instant("")), shape.Req("ended_at", shape.Instant("").OrNull()), shape.Req("reason", shape.Word("Why it exited.", "exit_step", "webhook_failed", "merged").OrNull()),
))
