package shapes

import (
	"strings"

	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging/card"
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
		kind("FlowTrigger", "segment_entered", "People who are in a segment when the flow is published, and then those who enter.", shape.Opt("segment_id", shape.SegmentID(""))),
		kind("FlowTrigger", "segment_exited", "People who leave a segment.", shape.Opt("segment_id", shape.SegmentID(""))),
		kind("FlowTrigger", "list_joined", "People who join a list.", shape.Opt("list_id", shape.ListID(""))),
		kind("FlowTrigger", "event", "People who perform an event.", shape.Opt("event", shape.Text("item_purchased", "The `event_type`.")),
			shape.Opt("where", shape.List(shape.FreeObject(shape.Pairs("property", "category", "op", "=", "value", "shoes"), "A filter, as those of segments."), "Filters that must all hold.").Entries(0, 20))),
		kind("FlowTrigger", "date", "People who reach a date.", shape.Opt("field", shape.Text("attributes.renewal", "Where the date is: a path below `attributes.` or `geo.`, or `created_at`.")),
			shape.Opt("offset_days", shape.Integer(-3, "Days after it; negative is before.").Between(-3650, 3650).Default(0)), shape.Opt("at", shape.Text("09:00", "Local time.").Default("00:00")),
			shape.Opt("repeat", shape.Word("", "once", "yearly").Default("once")), shape.Opt("timezone", shape.Text("Europe/Berlin", "").Default("UTC"))),
		kind("FlowTrigger", "api", "People whom a call enrols."),
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
	messages := messageFields()
	return shape.Named("FlowStep", shape.OneOf(
		on("email", "Sends an e-mail: a template, or a subject and a body.", messages["email"]...),
		on("sms", "Sends a text message.", messages["sms"]...),
		on("whatsapp", "Sends a WhatsApp message: a template, or a text, which goes out only to people who have written within a day.", messages["whatsapp"]...),
		on("im", "Sends a text by the account's own instant messenger.", messages["im"]...),
		on("push", "Sends a notification to all devices of a person.", messages["push"]...),
		on("in_app", "Puts a message into the person's inbox, which pages of your site show.", messages["in_app"]...),
		on("omnichannel", "Sends one message, on the first channel that reaches the person. Where the message turns out to be undeliverable, the next channel is tried.",
			shape.Opt("channels", shape.List(flowMessage(messages), "In the order of preference.").Entries(0, len(flowChannels)))),
		on("wait", "Waits for a time, or until a local time.", shape.Opt("seconds", shape.Integer(86400, "").Between(1, 100*365*86400)), shape.Opt("until", shape.Text("09:00", "A time of the day, or a day and a time.")), shape.Opt("timezone", shape.Text("Europe/Berlin", "").Default("UTC"))),
		of("condition", "Branches by whether the person matches a definition like that of a segment.", shape.Opt("if", Definition),
			shape.Opt("open_cart", shape.Boolean(true, "Asks as well that the newest cart (`cart_updated`) of the person has something in it, and that no `order_placed` followed it.").Default(false)), shape.Opt("yes", next("Where it holds.")), shape.Opt("no", next("Where it does not."))),
		of("split", "Sends people different ways, in proportion to weights.", shape.Opt("branches", shape.List(shape.Named("FlowBranch", shape.Object(shape.Opt("weight", shape.Integer(1, "").Between(1, 1000000)), shape.Opt("next", next(""))).Strict()), "").Entries(0, 20))),
		on("tag", "Adds and removes tags.", shape.Opt("add", shape.List(shape.Text("customer", ""), "").Entries(0, 50)), shape.Opt("remove", shape.List(shape.Text("lead", ""), "").Entries(0, 50))),
		on("update_contact", "Sets fields; null removes.", shape.Opt("set", shape.FreeObject(shape.Pairs("attributes.plan", "gold"), "`first_name`, `last_name`, and paths below `attributes.` and `geo.`"))),
		on("webhook", "Calls a URL.", shape.Opt("url", shape.Text("https://hooks.example.com/x", "").Bytes(0, 2048)), shape.Opt("method", shape.Word("", "POST", "PUT", "PATCH", "GET", "DELETE").Default("POST")),
			shape.Opt("headers", shape.MapOf(shape.Text("k", ""), "").Like(shape.Pairs("X-Key", "k"))), shape.Opt("body", shape.Anything(shape.Pairs("email", "{{email}}"), "A text, an object or an array.")),
			shape.Opt("timeout_seconds", shape.Integer(10, "Of an attempt.").Between(1, 30).Default(10)), shape.Opt("attempts", shape.Integer(5, "").Between(1, 10).Default(5)), shape.Opt("on_failure", shape.Word("What happens when all attempts failed.", "continue", "exit").Default("continue"))),
		of("exit", "Ends the enrolment.", shape.Opt("next", next("None."))),
	).By("type").Says("One step. Texts may have merge tags. Drafts may lack what is not required here.").Like(shape.Pairs("id", "welcome", "type", "email", "subject", "Welcome", "body", "<p>Hello</p>", "next", nil)))
}()

// flowChannels are the channels of omnichannel steps.
var flowChannels = []string{"email", "sms", "whatsapp", "im", "push", "in_app"}

// FlowChannel is a channel of an omnichannel step.
func FlowChannel(about string) *shape.Schema { return shape.Word(about, flowChannels...) }

// flowMessage is a message of an omnichannel step, told apart by its channel.
func flowMessage(fields map[string][]shape.Field) *shape.Schema {
	var kinds []*shape.Schema
	for _, channel := range flowChannels {
		word := strings.ReplaceAll(strings.ToUpper(channel[:1])+channel[1:], "_app", "App")
		// The word of the step that sends on the channel alone: generators for Go take a name
		// for a value once.
		only := shape.Only("FlowStep"+word+"Type", channel)
		kinds = append(kinds, shape.Named("FlowMessage"+word, shape.Object(append([]shape.Field{shape.Req("channel", only)}, fields[channel]...)...).Strict()))
	}
	return shape.Named("FlowMessage", shape.OneOf(kinds...).By("channel").Says("What an omnichannel step sends on a channel: the fields of the step that sends on it alone.").Like(shape.Pairs("channel", "sms", "text", "Hello {{first_name}}")))
}

// messageFields are the fields of messages of flows, by their channel.
func messageFields() map[string][]shape.Field {
	tracked := func(what string) shape.Field {
		return shape.Opt("track_links", shape.Boolean(true, "Counts clicks on "+what+". Counted links are longer."))
	}
	ignores := shape.Opt("ignore_sending_limits", shape.Boolean(false, "Sends it whatever the account's quiet hours and frequency caps say, and does not count it for the latter.").Default(false))
	return map[string][]shape.Field{
		"email": {
			ignores,
			shape.Opt("template_id", shape.TemplateID("")), shape.Opt("subject", shape.Text("Welcome {{first_name}}", "").Bytes(0, 998)),
			shape.Opt("body", shape.Text("<p>Hello</p>", "HTML.")), shape.Opt("text", shape.Text("Hello", "Plain; made of the body when left out.")), shape.Opt("sender", shape.Text("shop@mail.example.com", "On a verified domain; the account's default when left out.")),
			shape.Opt("sender_name", shape.Text("Shop", "")), shape.Opt("reply_to", shape.Text("help@example.com", "")),
		},
		"sms": {ignores, shape.Opt("text", shape.Text("Hello {{first_name}}", "").Bytes(0, 4096)), tracked("links of the text")},
		"im":  {ignores, shape.Opt("text", shape.Text("Hello {{first_name}}", "").Bytes(0, 4096)), tracked("links of the text")},
		"whatsapp": append([]shape.Field{
			ignores,
			shape.Opt("template", shape.Text("order_shipped", "The template's name; with Twilio, its content SID.").Bytes(0, 512)), shape.Opt("language", shape.Text("en_US", "Of the template.").Bytes(0, 20)),
			shape.Opt("parameters", shape.List(shape.Text("{{first_name}}", ""), "Values of the placeholders in the template's body.").Entries(0, 20)), shape.Opt("header", shape.Text("https://shop.example/a.png", "Value of the template's header, or the URL of its picture.").Bytes(0, 1024)),
			shape.Opt("text", shape.Text("Hello {{first_name}}", "In the place of a template.").Bytes(0, 4096)), tracked("links of the text"),
		}, WhatsAppOptions()...),
		"push": {
			ignores,
			shape.Opt("title", shape.Text("Your order", "").Bytes(0, 998)), shape.Opt("body", shape.Text("It is on its way, {{first_name}}", "").Bytes(0, 4096)),
			shape.Opt("link", shape.Text("myapp://orders/{{event.order_id}}", "A page, or a place in an app, that a tap opens.").Bytes(0, 2048)), shape.Opt("image", shape.Text("https://shop.example/a.png", "The https URL of a picture. On Apple's devices an app shows it by a notification service extension.").Bytes(0, 2048)),
			shape.Opt("ttl_seconds", shape.Integer(3600, "How long the push services keep trying; 0 is as long as they can.").Between(0, 28*86400)), shape.Opt("collapse", shape.Text("orders", "Names notifications of which a device shows the newest alone.").Bytes(0, 32)),
			tracked("the link; links into apps are not counted"),
		},
		"in_app": {
			ignores,
			shape.Opt("title", shape.Text("Your order", "One line of plain text.").Bytes(0, card.MaxTitleBytes)), shape.Opt("body", shape.Text("It is on its way, {{first_name}}", "Plain text.").Bytes(0, card.MaxBodyBytes)),
			shape.Opt("link", shape.Text("https://shop.example/orders/{{event.order_id}}", "A page, or a place in an app, that a click opens.").Bytes(0, card.MaxURLBytes)), shape.Opt("image", shape.Text("https://shop.example/a.png", "The https URL of a picture.").Bytes(0, card.MaxURLBytes)),
			shape.Opt("display", InAppDisplay("All messages are in the inbox; a banner or modal is shown on the page as well.").Default(card.Inbox)),
			shape.Opt("priority", shape.Integer(5, "Higher ones come first.").Between(0, card.MaxPriority).Default(0)), shape.Opt("ttl_hours", shape.Integer(72, "How long the message stays in the inbox; 0 is 720.").Between(0, card.MaxTTLHours)),
		},
	}
}

// FlowStepType is the type of a step.
func FlowStepType() *shape.Schema {
	return shape.Word("", "email", "sms", "whatsapp", "im", "push", "in_app", "omnichannel", "wait", "condition", "split", "tag", "update_contact", "webhook", "exit")
}

// FlowStepResult is what became of an enrolment at a step.
func FlowStepResult(about string) *shape.Schema {
	return shape.Word(about, "done", "pending", "queued", "yes", "no", "branch", "delivered", "failed", "skipped_no_address", "skipped_not_subscribed", "skipped_blocked", "refused", "exited", "skipped_quiet_hours", "skipped_frequency_cap")
}
