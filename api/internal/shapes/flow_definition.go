package shapes

import (
	"strings"

	"github.com/musterhq/muster/api/shape"
)

// kind is an object with the fields of each type of trigger or step, told apart by type.
func kind(of, name, about string, fields ...shape.Field) *shape.Schema {
	for word := range strings.SplitSeq(name, "_") {
		of += strings.ToUpper(word[:1]) + word[1:]
	}
	return shape.Named(of, shape.Object(append([]shape.Field{shape.Req("type", shape.Only(of+"Type", name))}, fields...)...).Strict().Says(about))
}

// FlowTrigger is what brings people into a flow.
func FlowTrigger() *shape.Schema {
	return shape.Named("FlowTrigger", shape.OneOf(
		kind("FlowTrigger", "segment_entered", "Who is in a segment when the flow is published, and then whoever enters.", shape.Opt("segment_id", shape.SegmentID(""))),
		kind("FlowTrigger", "segment_exited", "Who leaves a segment.", shape.Opt("segment_id", shape.SegmentID(""))),
		kind("FlowTrigger", "list_joined", "Who joins a list.", shape.Opt("list_id", shape.ListID(""))),
		kind("FlowTrigger", "event", "Who performs an event.", shape.Opt("event", shape.Text("item_purchased", "The `event_type`.")),
			shape.Opt("where", shape.List(shape.FreeObject(shape.Pairs("property", "category", "op", "=", "value", "shoes"), "A filter, as those of segments."), "Filters that must all hold.").Entries(0, 20))),
		kind("FlowTrigger", "date", "Who reaches a date.", shape.Opt("field", shape.Text("attributes.renewal", "Where the date is: a path below `attributes.` or `geo.`, or `created_at`.")),
			shape.Opt("offset_days", shape.Integer(-3, "Days after it; negative is before.").Between(-3650, 3650).Default(0)), shape.Opt("at", shape.Text("09:00", "Local time.").Default("00:00")),
			shape.Opt("repeat", shape.Word("", "once", "yearly").Default("once")), shape.Opt("timezone", shape.Text("Europe/Berlin", "").Default("UTC"))),
		kind("FlowTrigger", "api", "Whom a call enrols."),
	).By("type").Says("What brings people into the flow. Drafts may lack what is not required here.").Like(shape.Pairs("type", "segment_entered", "segment_id", "seg_9c1f0e7ad24b4f6c8f3b5a2d7e60c481")))
}

// FlowStep is a step of a flow.
var FlowStep = func() *shape.Schema {
	next := func(about string) *shape.Schema {
		return shape.Text("later", about+" Id of a step; null is the end.").OrNull()
	}
	of := func(name, about string, fields ...shape.Field) *shape.Schema {
		return kind("FlowStep", name, about, append([]shape.Field{shape.Req("id", shape.Text("welcome", "Unique in the flow.").Bytes(1, 64))}, fields...)...)
	}
	on := func(name, about string, fields ...shape.Field) *shape.Schema {
		return of(name, about, append(fields, shape.Opt("next", next("What follows.")))...)
	}
	return shape.Named("FlowStep", shape.OneOf(
		on("email", "Sends an e-mail: a template, or a subject and a body.", shape.Opt("template_id", shape.TemplateID("")), shape.Opt("subject", shape.Text("Welcome {{first_name}}", "").Bytes(0, 998)),
			shape.Opt("body", shape.Text("<p>Hello</p>", "HTML.")), shape.Opt("text", shape.Text("Hello", "Plain; made of the body when left out.")), shape.Opt("sender", shape.Text("shop@mail.example.com", "On a verified domain; the account's default when left out.")),
			shape.Opt("sender_name", shape.Text("Shop", "")), shape.Opt("reply_to", shape.Text("help@example.com", ""))),
		on("sms", "Sends a text message.", shape.Opt("text", shape.Text("Hello {{first_name}}", "").Bytes(0, 4096))),
		on("whatsapp", "Sends a WhatsApp message: a template, or a text, which goes out only to people who have written within a day.", shape.Opt("template", shape.Text("order_shipped", "The template's name; with Twilio, its content SID.").Bytes(0, 512)), shape.Opt("language", shape.Text("en_US", "Of the template.").Bytes(0, 20)),
			shape.Opt("parameters", shape.List(shape.Text("{{first_name}}", ""), "Values of the placeholders in the template's body.").Entries(0, 20)), shape.Opt("header", shape.Text("https://shop.example/a.png", "Value of the template's header, or the URL of its picture.").Bytes(0, 1024)),
			shape.Opt("text", shape.Text("Hello {{first_name}}", "In the place of a template.").Bytes(0, 4096))),
		on("wait", "Waits for a time, or until a local time.", shape.Opt("seconds", shape.Integer(86400, "").Between(1, 100*365*86400)), shape.Opt("until", shape.Text("09:00", "A time of the day, or a day and a time.")), shape.Opt("timezone", shape.Text("Europe/Berlin", "").Default("UTC"))),
		of("condition", "Goes on by whether somebody belongs to a segment's definition.", shape.Opt("if", Definition), shape.Opt("yes", next("Where it holds.")), shape.Opt("no", next("Where it does not."))),
		of("split", "Sends people different ways, in proportion to weights.", shape.Opt("branches", shape.List(shape.Named("FlowBranch", shape.Object(shape.Opt("weight", shape.Integer(1, "").Between(1, 1000000)), shape.Opt("next", next(""))).Strict()), "").Entries(0, 20))),
		on("tag", "Adds and removes tags.", shape.Opt("add", shape.List(shape.Text("customer", ""), "").Entries(0, 50)), shape.Opt("remove", shape.List(shape.Text("lead", ""), "").Entries(0, 50))),
		on("update_contact", "Sets fields; null removes.", shape.Opt("set", shape.FreeObject(shape.Pairs("attributes.plan", "gold"), "`first_name`, `last_name`, and paths below `attributes.` and `geo.`"))),
		on("webhook", "Calls a URL.", shape.Opt("url", shape.Text("https://hooks.example.com/x", "").Bytes(0, 2048)), shape.Opt("method", shape.Word("", "POST", "PUT", "PATCH", "GET", "DELETE").Default("POST")),
			shape.Opt("headers", shape.MapOf(shape.Text("k", ""), "").Like(shape.Pairs("X-Key", "k"))), shape.Opt("body", shape.Anything(shape.Pairs("email", "{{email}}"), "A text, an object or an array.")),
			shape.Opt("timeout_seconds", shape.Integer(10, "Of an attempt.").Between(1, 30).Default(10)), shape.Opt("attempts", shape.Integer(5, "").Between(1, 10).Default(5)), shape.Opt("on_failure", shape.Word("What happens when all attempts failed.", "continue", "exit").Default("continue"))),
		of("exit", "Ends the way through the flow.", shape.Opt("next", next("None."))),
	).By("type").Says("One step. Texts may have merge tags. Drafts may lack what is not required here.").Like(shape.Pairs("id", "welcome", "type", "email", "subject", "Welcome", "body", "<p>Hello</p>", "next", nil)))
}()

// FlowStepType is the type of a step.
func FlowStepType() *shape.Schema {
	return shape.Word("", "email", "sms", "whatsapp", "wait", "condition", "split", "tag", "update_contact", "webhook", "exit")
}

// FlowStepResult is what became of an enrolment at a step.
func FlowStepResult(about string) *shape.Schema {
	return shape.Word(about, "done", "pending", "queued", "yes", "no", "branch", "delivered", "failed", "skipped_no_address", "skipped_not_subscribed", "skipped_blocked", "refused", "exited")
}
