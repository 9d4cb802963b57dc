package shapes

import (
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging/whatsapp"
)

// Campaign is a campaign.
var Campaign = shape.Named("Campaign", shape.Object(
	shape.Req("_id", shape.CampaignID("Id of the campaign.")),
	shape.Req("name", shape.Text("January sale", "")),
	shape.Req("channel", shape.Integer(2, "1 is omni-channel, 2 is single-channel.").With("enum", []int{1, 2})),
	shape.Req("type", shape.Integer(1, "1 is email, 2 SMS, 3 IM, 4 push; null for none.").With("enum", []any{1, 2, 3, 4}).OrNull()),
	shape.Req("date", shape.Text("2026-01-31T09:00:00Z", "As given.").OrNull()),
	shape.Req("local_time", shape.Boolean(false, "Whether the date is what each person's own clocks show.")),
	shape.Req("rate", shape.Object(shape.Req("messages", shape.Integer(600, "")), shape.Req("per", shape.Word("", "minute", "hour"))).Says("How many people it is sent to at most in any minute or hour; null for no bound.").OrNull()),
	shape.Req("ignore_sending_limits", shape.Boolean(false, "Whether it is sent whatever quiet hours and frequency caps say.")),
	shape.Req("subject", shape.Text("Our January sale", "")),
	shape.Opt("body", shape.Text("<p>Hello {{first_name}}</p>", "Not in lists of campaigns.")),
	shape.Req("sender", shape.Text("news@mail.example.com", "")),
	shape.Req("sender_name", shape.Text("Example", "")),
	shape.Req("reply_to", shape.Text("help@example.com", "")),
	shape.Req("link", shape.Text("https://example.com/sale", "What a push or in-app message opens.").OrNull()),
	shape.Req("template_id", shape.TemplateID("").OrNull()),
	shape.Req("service", shape.Word("Of type 3, the instant messenger: whatsapp; null for the account's own provider. Of type 4, in_app for in-app messages; null for push messages.", "whatsapp", "in_app").OrNull()),
	shape.Req("channels", shape.List(shape.Object(
		shape.Req("channel", shape.Word("", "email", "sms", "whatsapp", "im", "push", "in_app")),
		shape.Req("subject", shape.Text("Our January sale", "")),
		shape.Req("body", shape.Text("Today only", "")),
		shape.Req("sender", shape.Text("", "")),
		shape.Req("link", shape.Text("https://example.com/sale", "").OrNull()),
		shape.Req("whatsapp", whatsAppTemplate().OrNull()),
		shape.Req("push", pushOptions().OrNull()),
		shape.Req("in_app", inAppOptions().OrNull()),
	), "Of an omni-channel campaign, the channels in the order of preference; empty where it goes out by e-mail alone, and of single-channel campaigns.")),
	shape.Req("track_links", shape.Boolean(false, "Whether the clicks on links of texts and push messages are counted.")),
	shape.Req("push", pushOptions().Says("Options of a push message; null for none.").OrNull()),
	shape.Req("in_app", inAppOptions().Says("Options of an in-app message; null for their defaults.").OrNull()),
	shape.Req("whatsapp", whatsAppTemplate().Says("The template that is sent by WhatsApp in place of the body; null for none.").OrNull()),
	shape.Req("list_id", shape.List(shape.ListID(""), "")),
	shape.Req("segment_ids", shape.List(shape.SegmentID(""), "")),
	shape.Req("status", CampaignStatus()),
	shape.Req("scheduled_at", shape.Instant("When it is sent by itself, null for not.").OrNull()),
	shape.Req("schedule_error", shape.Text("sender: example.org is not a verified domain of this account", "Why it was not sent when it was due; null where it was, or was not scheduled.").OrNull()),
	shape.Req("created_at", shape.Instant("When it was made.")),
	shape.Req("updated_at", shape.Instant("When it was changed last.")),
))

func pushOptions() *shape.Schema {
	return shape.Object(
		shape.Req("image", shape.Text("https://example.com/sale.jpg", "Empty for none.")),
		shape.Req("collapse", shape.Text("sale", "Empty for none.")),
		shape.Req("ttl_seconds", shape.Count(86400, "0 is as long as the push services can.")),
	)
}

func whatsAppTemplate() *shape.Schema {
	return shape.Object(
		shape.Req("template", shape.Text("january_sale", "")),
		shape.Req("language", shape.Text("en_US", "")),
		shape.Req("parameters", shape.List(shape.Text("{{first_name}}", ""), "")),
		shape.Req("named_parameters", whatsAppNamed("Empty for none.")),
		shape.Req("header", shape.Text("https://example.com/sale.jpg", "Empty for none.")),
		shape.Req("header_type", shape.Word("Empty for an image where the header begins with https://, and else a text.", append([]string{""}, whatsapp.HeaderTypes...)...)),
		shape.Req("header_name", shape.Text("", "Empty for none.")),
		shape.Req("header_filename", shape.Text("", "Empty for none.")),
		shape.Req("header_location", shape.Object(whatsAppLocation(shape.Req)...).Says("Null for none.").OrNull()),
		shape.Req("buttons", shape.List(shape.Object(whatsAppButton(shape.Req)...), "")),
	)
}

// WhatsAppOptions are the fields of a template of WhatsApp, in requests, that it has beside its
// name, its language, its parameters in order and its header.
func WhatsAppOptions() []shape.Field {
	return []shape.Field{
		shape.Opt("named_parameters", whatsAppNamed("Values of the placeholders of its body by name, for a template whose placeholders have names, in place of `parameters`. May hold merge tags.")),
		shape.Opt("header_type", shape.Word("What the header is. Left out, it is an image where `header` begins with https://, and else a text.", append([]string{""}, whatsapp.HeaderTypes...)...)),
		shape.Opt("header_name", shape.Text("", "Name of the placeholder of its header, where placeholders have names.").Bytes(0, whatsapp.MaxNameBytes)),
		shape.Opt("header_filename", shape.Text("", "What a document in the header is called; not with Twilio. May hold merge tags.").Bytes(0, whatsapp.MaxFilenameBytes)),
		shape.Opt("header_location", shape.Object(whatsAppLocation(shape.Opt)...).Says("The place that a header of the type `location` shows; not with Twilio, where its values are variables among the parameters. Null and `{}` are none.").OrNull()),
		shape.Opt("buttons", shape.List(shape.Object(whatsAppButton(shape.Opt)...), "Buttons that have a value; not with Twilio, where the value is a variable among the parameters.").Entries(0, whatsapp.MaxButtons)),
	}
}

func whatsAppNamed(about string) *shape.Schema {
	return shape.MapOf(shape.Text("{{first_name}}", "").Bytes(1, whatsapp.MaxValueBytes), about).Like(shape.Pairs())
}

// whatsAppLocation are the fields of a place; field is [shape.Req] or [shape.Opt].
func whatsAppLocation(field func(string, *shape.Schema) shape.Field) []shape.Field {
	return []shape.Field{
		field("latitude", shape.Text("52.52", "Degrees, as a text. May hold merge tags, as the others.").Bytes(0, whatsapp.MaxValueBytes)),
		field("longitude", shape.Text("13.405", "Degrees, as a text.").Bytes(0, whatsapp.MaxValueBytes)),
		field("name", shape.Text("Our shop", "What the place is called; empty for none.").Bytes(0, whatsapp.MaxValueBytes)),
		field("address", shape.Text("Unter den Linden 1, Berlin", "Empty for none.").Bytes(0, whatsapp.MaxValueBytes)),
	}
}

// whatsAppButton are the fields of a button; field is [shape.Req] or [shape.Opt].
func whatsAppButton(field func(string, *shape.Schema) shape.Field) []shape.Field {
	return []shape.Field{
		field("type", shape.Word("`url` opens a page, whose address the template begins and `value` ends. `quick_reply` answers with `value`. `copy_code` copies `value`, a coupon code.", whatsapp.ButtonTypes...)),
		field("index", shape.Integer(0, "The place among all buttons of the template, from 0 on.").Between(0, whatsapp.MaxButtons-1)),
		field("value", shape.Text("sale?ref={{external_id}}", "May hold merge tags, in requests.").Bytes(1, whatsapp.MaxValueBytes)),
	}
}

// CampaignChannels are the numbers of a campaign by channel.
func CampaignChannels() *shape.Schema {
	return shape.List(shape.Object(
		shape.Req("channel", shape.Word("", "email", "sms", "whatsapp", "im", "push", "in_app")),
		shape.Req("emails_sent", shape.Count(310, "People who got the message on it.")),
		shape.Req("failed", shape.Count(2, "Messages of the last send that could not be handed over on it; where that was final, the person's next channel was tried.")),
		shape.Req("skipped", shape.MapOf(shape.Count(17, ""), "People of the last send whom it does not reach, by reason; their next channel was tried.").Like(shape.Pairs("no device", 17))),
		shape.Req("delivered", shape.Count(300, "")),
		shape.Req("unique_opens", shape.Count(0, "")),
		shape.Req("unique_clicks", shape.Count(12, "")),
		shape.Req("bounces", shape.Count(0, "")),
		shape.Req("complaints", shape.Count(0, "")),
		shape.Req("unsubscribes", shape.Count(1, "")),
	), "Of a campaign of several channels, the numbers of each, in the order of preference; of others empty.")
}

// CampaignType is the number of a channel.
func CampaignType(about string) *shape.Schema {
	return shape.Integer(1, "1 is email, 2 SMS, 3 IM, 4 push. "+about).With("enum", []any{1, 2, 3, 4})
}

// CampaignWaiting are the people of a send who wait.
func CampaignWaiting() *shape.Schema {
	return shape.Count(0, "Those of the remaining whose quiet hours are to end, or whose clocks are to show the time, before they are sent to.")
}

// CampaignWaitingUntil is when a send continues that waits.
func CampaignWaitingUntil() *shape.Schema {
	return shape.Instant("When the send continues by itself; null where it does not wait.").OrNull()
}

// CampaignStatus is how far a campaign is.
func CampaignStatus() *shape.Schema {
	return shape.Word("draft before it is sent; scheduled when it will be sent by itself; sending, testing (an A/B test), waiting (for quiet hours, local times or its rate; it continues by itself), sent or stopped.", "draft", "scheduled", "sending", "testing", "waiting", "sent", "stopped")
}

// RunStatus is how far a send of a campaign is.
func RunStatus() *shape.Schema {
	return shape.Word("draft before it is sent; sending, testing (an A/B test), waiting (for quiet hours, local times or its rate), sent or stopped.", "draft", "sending", "testing", "waiting", "sent", "stopped")
}

// Skipped counts recipients who were passed over, by reason.
func Skipped() *shape.Schema {
	return shape.MapOf(shape.Count(17, ""), "Recipients who were passed over, by reason. Merge tags without a value and a default are reasons: `{{first_name}} has no value for this person, and no default`.").Like(shape.Pairs("unsubscribed", 17))
}
