package shapes

import "github.com/musterhq/muster/api/shape"

// ConsentEntry is an entry of the log of consents.
var ConsentEntry = shape.Named("ConsentEntry", shape.Object(
	shape.Req("at", shape.Instant("When it was said.")),
	shape.Req("channel", shape.Channel("What it is about; null for a topic.").OrNull()),
	shape.Req("list_id", shape.ListID("The list of the topic that it is about; null for a channel.").OrNull()),
	shape.Req("topic", shape.Text("Monthly news", "The name that the topic had.").OrNull()),
	shape.Req("status", shape.Word("", "subscribed", "unsubscribed")),
	shape.Req("pending", shape.Boolean(false, "Whether the person has yet to confirm this consent (double opt-in). Until then nothing is sent by the channel. The confirmation is an entry of its own.")),
	shape.Req("source", shape.Text("preferences", "Where it comes from: `preferences` is the preference page, `link` and `one-click` are those of messages, `reply` is a text, `form` is a signup form.")),
	shape.Req("message_id", shape.MessageID("The message whose link or answer it came by.").OrNull()),
	shape.Req("campaign_id", shape.CampaignID("What sent that message.").OrNull()),
	shape.Req("flow_id", shape.FlowID("Likewise.").OrNull()),
	shape.Req("step_id", shape.Text("welcome", "The step of the flow.").OrNull()),
	shape.Req("client", shape.Text("192.0.2.0/24", "The network from which the person answered; whole addresses are not kept.").OrNull()),
	shape.Req("wording", shape.Text("Monthly news\nOnce a month\nYour preferences", "What the person read beside the choice, at most 500 bytes, of a form 1,000.").OrNull()),
	shape.Req("form_id", shape.Text("frm_3f9a7c2e5d1b80469a3f5c7e1b2d4860a7f4c3e6b0d8592e", "The signup form that it came by.").OrNull()),
	shape.Req("submitted_at", shape.Instant("When that form was sent, where the person confirmed it later, at `at`.").OrNull()),
))
