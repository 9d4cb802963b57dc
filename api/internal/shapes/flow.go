package shapes

import "github.com/musterhq/muster/api/shape"

// Flow is a flow with its counts.
var Flow = shape.Named("Flow", shape.Object(
	shape.Req("_id", shape.FlowID("Id of the flow.")), shape.Req("name", shape.Text("Welcome", "")), shape.Req("status", shape.Word("", "live", "draft", "paused")),
	shape.Req("trigger", FlowTrigger().OrNull()), shape.Req("reentry", FlowReentry()), shape.Req("steps", shape.List(FlowStep, "")),
	shape.Req("publishing", shape.Boolean(false, "Whether it goes live as soon as the conditions of its steps are built.")), shape.Req("publish_error", shape.Text("", "Why it did not go live after all.").OrNull()),
	shape.Req("paused_for", shape.Text("credits", "`credits` when the service paused it for want of them; null when a user did.").OrNull()),
	shape.Req("created_at", shape.Instant("")), shape.Req("updated_at", shape.Instant("When its content was changed last.")), shape.Req("published_at", shape.Instant("").OrNull()),
	shape.Req("paused_at", shape.Instant("When it was last.").OrNull()), shape.Req("resumed_at", shape.Instant("When it was last.").OrNull()), shape.Req("copy_of", shape.FlowID("What it was duplicated from.").OrNull()),
	shape.Req("version", shape.ContentVersion()),
	shape.Req("counts", FlowCounts), shape.Req("step_counts", shape.List(FlowStepCount, "In the order of the steps.")),
))

// FlowStatus is the body that pauses and resumes a flow.
func FlowStatus() *shape.Schema {
	return shape.Object(shape.Req("status", shape.Word("", "paused", "live"))).Parsed()
}

// FlowEnrolment is the body that enrols a contact.
func FlowEnrolment() *shape.Schema {
	return shape.Object(
		shape.Opt("email", shape.Text("ann@example.com", "Whom to enrol; the first of these that is on file decides.").Bytes(0, 512)),
		shape.Opt("external_id", shape.Text("42", "").Bytes(0, 512)), shape.Opt("phone", shape.Text("+491701234567", "").Bytes(0, 512)),
		shape.Opt("data", shape.FreeObject(shape.Pairs("order", "A-7"), "Behind the merge tags `event.…`; at most 16 KiB.")),
		shape.Opt("idempotency_key", shape.Text("order-A-7", "Makes a repeat harmless: it gets the first answer.").Bytes(0, 256)),
	)
}

// FlowEnrolled is the answer to it.
var FlowEnrolled = shape.Object(shape.Req("profile_id", shape.ProfileID("The enrolled profile.")), shape.Req("enrolled", shape.Boolean(true, "False for a repeat, which has enrolled before.")))

// FlowReentry is the rule for going through a flow again.
func FlowReentry() *shape.Schema {
	return shape.Word("Whether a person may go through the flow again.", "once", "after_exit")
}

// FlowCounts counts enrolments.
var FlowCounts = shape.Named("FlowCounts", shape.Object(
	shape.Req("entered", shape.Count(120, "")), shape.Req("in_progress", shape.Count(40, "In the flow now.")), shape.Req("completed", shape.Count(70, "Reached the end.")), shape.Req("exited", shape.Count(10, "Left before.")),
	shape.Req("pending", shape.Count(0, "To be enrolled since the flow went live.")), shape.Req("loops_cut", shape.Count(0, "Enrolments that did not begin: too many started each other at one instant, or the service itself had caused 64 of the contact in that minute.")),
))

// FlowStepCount counts what happened at a step.
var FlowStepCount = shape.Named("FlowStepCount", shape.Object(
	shape.Req("id", shape.Text("welcome", "Id of the step.")), shape.Req("type", FlowStepType()), shape.Req("arrived", shape.Count(120, "")), shape.Req("at", shape.Count(0, "Are there now.")),
	shape.Req("results", shape.MapOf(shape.Count(1, ""), "How often the step had each result.").Like(shape.Pairs("queued", 118, "skipped_not_subscribed", 2))),
	shape.Req("channels", shape.List(shape.Named("FlowChannelCount", shape.Object(
		shape.Req("channel", FlowChannel("")), shape.Req("queued", shape.Count(90, "Messages that were queued on it.")),
		shape.Req("failed", shape.Count(3, "Of them, those that failed. The person's next channel was tried, unless the message may have gone out.")),
		shape.Req("skipped", shape.MapOf(shape.Count(1, ""), "How many people it does not reach, by the reason.").Like(shape.Pairs("skipped_no_address", 30))),
	)), "Of an omnichannel step, in its order; empty for other steps.")),
))
