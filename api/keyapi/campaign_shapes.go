package keyapi

import (
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging/card"
)

func campaignFieldsShape(create bool) []shape.Field {
	name := shape.Text("January sale", "Name of the campaign.").Bytes(1, 200)
	ch := shape.Integer(2, "1 is omni-channel (see `channels`), 2 is single-channel. Names are refused.").With("enum", []int{1, 2})
	first := []shape.Field{shape.Opt("name", name), shape.Opt("channel", ch)}
	if create {
		first = []shape.Field{shape.Req("name", name), shape.Req("channel", ch)}
	}
	return append(first,
		shape.Opt("service", shape.Word("With type 3, the instant messenger: `whatsapp`, or empty for the account's own provider. With type 4, `in_app` for in-app messages, or empty for push messages.", "whatsapp", "in_app", "")),
		shape.Opt("whatsapp", shape.Object(whatsAppFieldsShape()...).Says("A template that WhatsApp has approved, in place of `body`. Without it the body goes to those who wrote by WhatsApp within 24 hours. `{}` takes it away.")),
		shape.Opt("track_links", shape.Boolean(false, "With types 2 to 4: counts the clicks on links of the text, of a push message the `link`. They become longer by it: some 80 characters, which SMS are charged for. Those of e-mails are always counted, those of a WhatsApp template never.").Default(false)),
		shape.Opt("push", shape.Object(pushFieldsShape("ttl_seconds")...).Says("With type 4, what the message has beside its texts and its link. `{}` takes it away.")),
		shape.Opt("in_app", shape.Object(inAppFieldsShape()...).Says("With type 4 and `\"service\": \"in_app\"`, what the message has beside its texts and its link. `{}` takes it away: then they are the defaults.")),
		shape.Opt("channels", shape.List(shape.Object(channelFieldsShape()...), "With channel 1, the channels in the order of preference: each person gets one message, on the first that reaches them. `email` stands alone, since an e-mail has the campaign's own subject, body, template and sender. Left out, the campaign goes out by e-mail.").Entries(0, 6).Like([]any{shape.Pairs("channel", "push", "subject", "Our January sale", "body", "Today only", "link", "https://example.com/sale"), shape.Pairs("channel", "sms", "body", "The sale is on"), shape.Pairs("channel", "email")})),
		shape.Opt("type", shapes.CampaignType("Required with channel 2; with channel 1 left out, or 1 where there are no `channels`. Names are refused.")),
		shape.Opt("date", shape.Text("2026-01-31T09:00:00Z", "ISO 8601, UTC where it has no offset. Required with channel 2. In the future, it schedules a campaign that names its audience; in the past, nothing is sent by it.")),
		shape.Opt("local_time", shape.Boolean(false, "The `date` is what each person's own clocks show, by the `timezone` in their `geo` or `attributes`, or else by the account's: it has no offset then. The send starts when the first clocks on Earth show it; people whose clocks have shown it get the message at once.").Default(false)),
		shape.Opt("rate", shape.Object(shape.Opt("messages", shape.Integer(600, "").Between(1, 1000000)), shape.Opt("per", shape.Word("", "minute", "hour").Default("minute"))).Says("How many people the campaign is sent to at most in any minute or hour, evenly spread, over all its sends. `{}` takes it away.")),
		shape.Opt("ignore_sending_limits", shape.Boolean(false, "Sends it whatever the account's quiet hours and frequency caps say, and does not count it for the latter.").Default(false)),
		shape.Opt("subject", shape.Text("Our January sale", "Subject of an e-mail, title of a push or in-app message, whose title has at most 200 bytes. May hold merge tags.").Bytes(0, 998)),
		shape.Opt("body", shape.Text("<p>Hello {{first_name}}</p>", "HTML of an e-mail, text on other channels. May hold merge tags such as `{{first_name}}`.").With("maxLength", 1048576)),
		shape.Opt("sender", shape.Text("news@mail.example.com", "An address of a verified domain; left out, `no-reply@` the first of them.")),
		shape.Opt("sender_name", shape.Text("Example", "Name of the sender.")),
		shape.Opt("reply_to", shape.Text("help@example.com", "Where answers go.")),
		shape.Opt("link", shape.Text("https://example.com/sale", "What a push or in-app message opens: a page, or with a scheme of its own (`myapp://sale`) a place in the app. Browsers cannot open the latter; there the message opens the site.")),
		shape.Opt("template_id", shape.TemplateID("Template to be sent in place of the body.")),
		shape.Opt("list_id", shape.List(shape.ListID(""), "Lists it goes to. With `segment_ids` at most 1,000.").Entries(0, 1000)),
		shape.Opt("segment_ids", shape.List(shape.SegmentID(""), "Segments it goes to. Without lists and segments the send must name its audience.").Entries(0, 1000)),
	)
}

// inAppFieldsShape are the options of in-app messages.
func inAppFieldsShape() []shape.Field {
	return []shape.Field{
		shape.Opt("display", shapes.InAppDisplay("All messages are in the inbox. A banner is beside what the person does, a modal on top of it, until the person closes it.").Default(card.Inbox)),
		shape.Opt("image", shape.Text("https://example.com/sale.jpg", "The https address of a picture.").Bytes(0, card.MaxURLBytes)),
		shape.Opt("priority", shape.Integer(5, "Higher ones come first.").Between(0, card.MaxPriority).Default(0)),
		shape.Opt("ttl_hours", shape.Integer(72, "How long the message stays in the inbox.").Between(0, card.MaxTTLHours).Default(card.DefaultTTLHours)),
	}
}

// pushFieldsShape are the options of push messages; ttl is the name of the time to live,
// since the call that sends push messages has names of another style.
func pushFieldsShape(ttl string) []shape.Field {
	return []shape.Field{
		shape.Opt("image", shape.Text("https://example.com/sale.jpg", "The https address of a picture. On Apple's devices an app shows it by a notification service extension.").Bytes(0, 2048)),
		shape.Opt("collapse", shape.Text("sale", "A name: of messages with the same a device shows the newest alone. Letters, digits, - and _.").Bytes(0, 32)),
		shape.Opt(ttl, shape.Integer(86400, "For how long the push services keep trying to deliver it; 0 is as long as they can.").Between(0, 2419200)),
	}
}

func whatsAppFieldsShape() []shape.Field {
	return append([]shape.Field{
		shape.Opt("template", shape.Text("january_sale", "Name of the template; with Twilio, its content SID.").Bytes(1, 512)),
		shape.Opt("language", shape.Text("en_US", "Of the template; not with Twilio.").Bytes(0, 20)),
		shape.Opt("parameters", shape.List(shape.Text("{{first_name}}", "").Bytes(1, 1024), "Values of the placeholders of its body, in order. May hold merge tags.").Entries(0, 20)),
		shape.Opt("header", shape.Text("https://example.com/sale.jpg", "Value of the placeholder of its header, or the https address of its picture, video or document.").Bytes(0, 1024)),
	}, shapes.WhatsAppOptions()...)
}

func sendFieldsShape() []shape.Field {
	return []shape.Field{
		shape.Opt("list_id", shape.List(shape.ListID(""), "Lists to send to, an array even for one. Without lists and segments it is the campaign's own audience; a send without any audience is refused.").Entries(0, 1000)),
		shape.Opt("segment_ids", shape.List(shape.SegmentID(""), "Segments to send to, an array even for one.").Entries(0, 1000)),
		shape.Opt("all_contacts", shape.Boolean(false, "Sends to all contacts, instead of lists and segments.").Default(false)),
		shape.Opt("template_source", shape.Word("Where the template comes from: LIST is a saved template, DRAFT a draft of the builder. Left out, the campaign's own body or template.", "LIST", "DRAFT")),
		shape.Opt("template_id", shape.TemplateID("The template; left out, the campaign's.")),
		shape.Opt("batch_size", shape.Integer(100, "Messages in a batch.").Between(1, 1000).Default(100)),
		shape.Opt("delay_between_batches", shape.Number(1, "Pause between batches, in seconds.").Between(0.1, 60).Default(1.0)),
	}
}

var sendResultShape = shape.Named("SendResult", shape.Object(
	shape.Req("success", shape.Boolean(true, "Whether all of it was sent, or the rest goes out by itself.")),
	shape.Req("message", shape.Text("sent", "`sent`, until when the rest waits, or why it stopped.")),
	shape.Req("total_members", shape.Count(1204, "People in the audience, each once, also those who were sent the campaign before.")),
	shape.Req("emails_sent", shape.Count(1187, "Messages handed over, of any channel.")),
	shape.Req("errors", shape.List(shape.Text("credits: no e-mail credits are left", ""), "What went wrong, the newest 20.")),
	shape.Req("started_at", shape.Instant("")),
	shape.Req("finished_at", shape.Instant("").OrNull()),
))

var campaignStatsShape = shape.Named("CampaignStats", shape.Object(
	shape.Req("campaign_id", shape.CampaignID("")),
	shape.Req("status", shapes.CampaignStatus()),
	shape.Req("total_members", shape.Count(1204, "People in the audience of the last send.")),
	shape.Req("remaining", shape.Count(0, "Those still to be sent to.")),
	shape.Req("waiting", shapes.CampaignWaiting()),
	shape.Req("waiting_until", shapes.CampaignWaitingUntil()),
	shape.Req("emails_sent", shape.Count(1187, "Messages handed over, of any channel.")),
	shape.Req("failed", shape.Count(0, "Messages that could not be handed over.")),
	shape.Req("skipped", shapes.Skipped()),
	shape.Req("delivered", shape.Count(1180, "Reported as delivered.")),
	shape.Req("opens", shape.Count(640, "Opens, machines and repeats included.")),
	shape.Req("unique_opens", shape.Count(512, "People who opened it.")),
	shape.Req("clicks", shape.Count(130, "Clicks, machines and repeats included.")),
	shape.Req("unique_clicks", shape.Count(101, "People who clicked.")),
	shape.Req("bounces", shape.Count(7, "")),
	shape.Req("complaints", shape.Count(0, "")),
	shape.Req("unsubscribes", shape.Count(3, "")),
	shape.Req("dismissed", shape.Count(40, "People who put an in-app message away.")),
	shape.Req("expired", shape.Count(12, "People whose in-app message ended before they saw it; counted once an hour.")),
	shape.Req("open_rate", shape.Share("Unique opens of those sent.")),
	shape.Req("click_rate", shape.Share("Unique clicks of those sent.")),
	shape.Req("bounce_rate", shape.Share("Bounces of those tried.")),
	shape.Req("complaint_rate", shape.Share("Complaints of those sent.")),
	shape.Req("unsubscribe_rate", shape.Share("Unsubscribes of those sent.")),
	shape.Req("links", shapes.CampaignLinks()),
	shape.Req("revenue", shape.List(shapes.Revenue(), "Of orders that belong to the campaign, by currency.")),
	shape.Req("ab_test", shapes.CampaignABTest()),
	shape.Req("channels", shapes.CampaignChannels()),
	shape.Req("errors", shape.List(shape.Text("credits: no e-mail credits are left", ""), "What went wrong, the newest 20.")),
	shape.Req("runs", shapes.CampaignRuns()),
	shape.Req("resumed", shapes.CampaignResumed()),
	shape.Req("started_at", shape.Instant("").OrNull()),
	shape.Req("finished_at", shape.Instant("").OrNull()),
))

var recipientActivityShape = shape.Named("RecipientActivity", shape.Object(
	shape.Req("contact_id", shape.ProfileID("")),
	shape.Req("email", shape.Text("ann@example.com", "").OrNull()),
	shape.Req("sent", shape.Boolean(true, "")), shape.Req("failed", shape.Boolean(false, "")), shape.Req("delivered", shape.Boolean(true, "")),
	shape.Req("opened", shape.Boolean(true, "")), shape.Req("clicked", shape.Boolean(true, "")), shape.Req("bounced", shape.Boolean(false, "")),
	shape.Req("complained", shape.Boolean(false, "")), shape.Req("unsubscribed", shape.Boolean(false, "")),
	shape.Req("opens", shape.Count(2, "How often a person opened it; machines that open ahead do not count.")),
	shape.Req("opened_at", shape.Instant("The first time.").OrNull()),
	shape.Req("clicks", shape.Count(1, "How often a person clicked.")),
	shape.Req("clicked_at", shape.Instant("The first time.").OrNull()),
	shape.Req("links", shape.List(shape.Object(
		shape.Req("url", shape.Text("https://example.com/sale", "")),
		shape.Req("clicks", shape.Count(1, "")),
		shape.Req("first_clicked_at", shape.Instant("")),
		shape.Req("last_clicked_at", shape.Instant("")),
	), "Links that were clicked.")),
))
