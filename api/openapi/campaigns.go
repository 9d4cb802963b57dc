package openapi

func campaignsA() group {
	return group{surface: surfaceA, tag: "Campaigns", title: "Campaigns",
		about: "A campaign is one message to many. It goes to each person once, and never to who unsubscribed, bounced, complained, is suppressed or has not confirmed.",
		ops: []operation{
			{method: "POST", path: "/campaign", permission: "campaigns:write", id: "createCampaign", summary: "Create a campaign",
				about: "With channel 2, `type` and `date` are required. A sender of a domain that is not verified is refused when the campaign is sent. An account has at most 100,000 campaigns; the oldest push messages make room.",
				body:  object(campaignFields(true)...), data: campaign,
				fails: []string{"channel Input should be 1 or 2", "type Input should be 1, 2, 3 or 4", "type Field required"}},
			{method: "GET", path: "/campaign", permission: "campaigns:read", id: "listCampaigns", summary: "List campaigns", about: "The oldest first.", data: list(campaign, ""), paged: true},
			{method: "GET", path: "/campaign/{id}", permission: "campaigns:read", id: "getCampaign", summary: "Read a campaign", data: campaign, fails: []string{"There is no campaign with this id"}},
			{method: "PATCH", path: "/campaign/{id}", permission: "campaigns:write", id: "updateCampaign", summary: "Change a campaign", about: "What is left out stays. Refused while it is being sent.",
				body: object(campaignFields(false)...), data: campaign, fails: []string{"the campaign is being sent; wait until that is done"}},
			{method: "DELETE", path: "/campaign/{id}", permission: "campaigns:write", id: "deleteCampaign", summary: "Delete a campaign", about: "One that was sent stays on record for 90 days after it was sent last. Deleted, its links to unsubscribe go on working, others lead nowhere.",
				fails: []string{"there is no campaign with this id"}},
			{method: "POST", path: "/campaign/{id}/send", permission: "campaigns:write", id: "sendCampaign", summary: "Send a campaign",
				about: "It answers when all is sent, which may take hours; who goes away changes nothing. A second send meanwhile is refused; one that a stop of the service cut off goes on at its start. " +
					"Sent again later, it goes to those who did not get it. A run that was stopped, or that sent nothing though there were recipients, is a failure with the same `data`.",
				body: object(sendFields()...), optional: true, data: sendResult, failData: true, fails: []string{"batch_size Input should be a whole number from 1 to 1000", "sender: example.org is not a verified domain of this account"}},
			{method: "GET", path: "/campaign/{id}/stats", permission: "campaigns:read", id: "campaignStats", summary: "How a campaign went", data: campaignStats,
				fails: []string{"There is no campaign with this id"}},
			{method: "GET", path: "/campaign/{id}/recipients/activity", permission: "campaigns:read", id: "campaignActivity", summary: "What each recipient did",
				data: list(recipientActivity, ""), paged: true, fails: []string{"There is no campaign with this id"}},
			{method: "POST", path: "/campaign/{id}/ab-test/start", permission: "campaigns:write", id: "startABTest", summary: "Start an A/B test",
				about: "It answers at once. A part of the audience gets the variants, each person one; after the wait the best goes to the rest. The numbers are in the campaign's statistics.",
				body: object(append([]field{
					req("variants", list(object(
						opt("subject", text("Only today", "Instead of the campaign's.").bytes(0, 998)),
						opt("body", text("<p>Hello {{first_name}}</p>", "Instead of the campaign's.")),
						opt("sender_name", text("Ann of Example", "Instead of the campaign's.")),
					), "What is compared.").entries(2, 10).like([]any{ordered{{"subject", "Only today"}}, ordered{{"subject", "A present for you"}}})),
					opt("test_percent", integer(20, "How much of the audience takes part, in percent.").between(1, 100).def(20)),
					opt("metric", word("By what the winner is chosen: unique opens or unique clicks, of those sent.", "opens", "clicks").def("opens")),
					opt("wait_seconds", integer(14400, "How long to wait, in seconds, before the choice.").between(0, 2592000).def(14400)),
				}, sendFields()...)...), data: campaignStats, fails: []string{"variants Input should have 2 to 10 entries"}},
		}}
}

func campaignsConsole() group {
	return group{surface: surfaceConsole, tag: "Console: campaigns", title: "Campaigns", about: "Campaigns with their numbers, e-mail credits, and captured messages.",
		ops: []operation{
			{method: "GET", path: "/campaigns", permission: "campaigns:read", id: "consoleListCampaigns", summary: "List campaigns", about: "The oldest first.", data: list(campaign, ""), paged: true},
			{method: "GET", path: "/campaigns/{id}", permission: "campaigns:read", id: "consoleGetCampaign", summary: "Read a campaign", data: campaign},
			{method: "GET", path: "/campaigns/{id}/stats", permission: "campaigns:read", id: "consoleCampaignStats", summary: "How a campaign went", data: campaignNumbers},
			{method: "GET", path: "/credits", permission: signedIn, id: "getCredits", summary: "E-mail credits that are left", data: object(req("email_credits", integer(9800, "Each e-mail takes one.")))},
			{method: "GET", path: "/outbox", permission: "campaigns:read", id: "listOutbox", summary: "List captured messages",
				about: "Without a relay or provider messages are kept instead of sent; here they are, the newest first. A page may have fewer entries than `limit` and still have a `next`. 404 when nothing is captured.",
				query: []parameter{query("channel", channel("Those of a channel alone.")), query("to", text("ann@example.com", "Those to an address alone."))},
				data:  list(capturedMessage, ""), paged: true, limit: 50, most: 500, also: []int{404}},
		}}
}

func campaignFields(create bool) []field {
	name := text("January sale", "Name of the campaign.").bytes(1, 200)
	ch := integer(2, "1 is omni-channel, 2 is single-channel. Names are refused.").with("enum", []int{1, 2})
	first := []field{opt("name", name), opt("channel", ch)}
	if create {
		first = []field{req("name", name), req("channel", ch)}
	}
	return append(first,
		opt("type", campaignType("Required with channel 2. Names are refused.")),
		opt("date", text("2026-01-31T09:00:00Z", "ISO 8601. Required with channel 2. Nothing is sent by it.")),
		opt("subject", text("Our January sale", "Subject of an e-mail, title of a push message. May hold merge tags.").bytes(0, 998)),
		opt("body", text("<p>Hello {{first_name}}</p>", "HTML of an e-mail, text on other channels. May hold merge tags such as `{{first_name}}`.").with("maxLength", 1048576)),
		opt("sender", text("news@mail.example.com", "An address of a verified domain; left out, `no-reply@` the first of them.")),
		opt("sender_name", text("Example", "Name of the sender.")),
		opt("reply_to", text("help@example.com", "Where answers go.")),
		opt("link", text("https://example.com/sale", "What a push message opens.")),
		opt("template_id", templateID("Template to be sent in place of the body.")),
		opt("list_id", list(listID(""), "Lists it goes to. With `segment_ids` at most 1,000.").entries(0, 1000)),
		opt("segment_ids", list(segmentID(""), "Segments it goes to. Neither lists nor segments: all contacts.").entries(0, 1000)),
	)
}

func campaignType(about string) *schema {
	return integer(1, "1 is email, 2 SMS, 3 IM, 4 push. "+about).with("enum", []any{1, 2, 3, 4})
}

var campaign = named("Campaign", object(
	req("_id", campaignID("Id of the campaign.")),
	req("name", text("January sale", "")),
	req("channel", integer(2, "1 is omni-channel, 2 is single-channel.").with("enum", []int{1, 2})),
	req("type", integer(1, "1 is email, 2 SMS, 3 IM, 4 push; null for none.").with("enum", []any{1, 2, 3, 4}).orNull()),
	req("date", text("2026-01-31T09:00:00Z", "As given.").orNull()),
	req("subject", text("Our January sale", "")),
	opt("body", text("<p>Hello {{first_name}}</p>", "Not in lists of campaigns.")),
	req("sender", text("news@mail.example.com", "")),
	req("sender_name", text("Example", "")),
	req("reply_to", text("help@example.com", "")),
	req("link", text("https://example.com/sale", "What a push message opens.").orNull()),
	req("template_id", templateID("").orNull()),
	req("list_id", list(listID(""), "")),
	req("segment_ids", list(segmentID(""), "")),
	req("status", runStatus()),
	req("created_at", instant("When it was made.")),
	req("updated_at", instant("When it was changed last.")),
))

func runStatus() *schema {
	return word("draft before it is sent; sending, testing (an A/B test), sent or stopped.", "draft", "sending", "testing", "sent", "stopped")
}

func sendFields() []field {
	return []field{
		opt("list_id", list(listID(""), "Lists to send to, an array even for one. With neither lists nor segments it is the campaign's own audience.").entries(0, 1000)),
		opt("segment_ids", list(segmentID(""), "Segments to send to, an array even for one.").entries(0, 1000)),
		opt("template_source", word("Where the template comes from: LIST is a saved template, DRAFT a draft of the builder. Left out, the campaign's own body or template.", "LIST", "DRAFT")),
		opt("template_id", templateID("The template; left out, the campaign's.")),
		opt("batch_size", integer(100, "Messages in a batch.").between(1, 1000).def(100)),
		opt("delay_between_batches", number(1, "Pause between batches, in seconds.").between(0.1, 60).def(1.0)),
	}
}

var sendResult = named("SendResult", object(
	req("success", boolean(true, "Whether all of it was sent.")),
	req("message", text("sent", "`sent`, or why it stopped.")),
	req("total_members", count(1204, "People in the audience, each once.")),
	req("emails_sent", count(1187, "Messages handed over, of any channel.")),
	req("errors", list(text("credits: no e-mail credits are left", ""), "What went wrong, the newest 20.")),
	req("started_at", instant("")),
	req("finished_at", instant("").orNull()),
))

func skipped() *schema {
	return mapOf(count(17, ""), "Recipients who were passed over, by reason.").like(ordered{{"unsubscribed", 17}})
}

var campaignStats = named("CampaignStats", object(
	req("campaign_id", campaignID("")),
	req("status", runStatus()),
	req("total_members", count(1204, "People in the audience of the last send.")),
	req("remaining", count(0, "Those still to be sent to.")),
	req("emails_sent", count(1187, "Messages handed over, of any channel.")),
	req("failed", count(0, "Messages that could not be handed over.")),
	req("skipped", skipped()),
	req("delivered", count(1180, "Reported as delivered.")),
	req("opens", count(640, "Opens, machines and repeats included.")),
	req("unique_opens", count(512, "People who opened it.")),
	req("clicks", count(130, "Clicks, machines and repeats included.")),
	req("unique_clicks", count(101, "People who clicked.")),
	req("bounces", count(7, "")),
	req("complaints", count(0, "")),
	req("unsubscribes", count(3, "")),
	req("open_rate", share("Unique opens of those sent.")),
	req("click_rate", share("Unique clicks of those sent.")),
	req("bounce_rate", share("Bounces of those tried.")),
	req("complaint_rate", share("Complaints of those sent.")),
	req("unsubscribe_rate", share("Unsubscribes of those sent.")),
	req("links", list(object(req("url", text("https://example.com/sale", "")), req("clicks", count(130, ""))), "Links of the message.")),
	req("ab_test", object(
		req("metric", word("", "opens", "clicks")),
		req("variants", list(object(
			req("variant", count(0, "Its place in `variants` of the request, from 0.")),
			req("emails_sent", count(120, "")),
			req("unique_opens", count(60, "")),
			req("unique_clicks", count(11, "")),
		), "")),
		req("winner", count(1, "Place of the winning variant, null before the choice.").orNull()),
		req("ends_at", instant("When the choice is made.").orNull()),
	).says("Null without an A/B test.").orNull()),
	req("errors", list(text("credits: no e-mail credits are left", ""), "What went wrong, the newest 20.")),
	req("resumed", count(0, "How often sending went on after a stop of the service.")),
	req("started_at", instant("").orNull()),
	req("finished_at", instant("").orNull()),
))

var campaignNumbers = named("ConsoleCampaignStats", object(
	req("campaign_id", campaignID("")),
	req("status", runStatus()),
	req("total_members", count(1204, "People in the audience of the last send.")),
	req("remaining", count(0, "Those still to be sent to.")),
	req("sent", count(1187, "Messages handed over.")),
	req("failed", count(0, "Messages that could not be handed over.")),
	req("delivered", count(1180, "")),
	req("unique_opens", count(512, "People who opened it.")),
	req("unique_clicks", count(101, "People who clicked.")),
	req("opens", count(640, "")),
	req("clicks", count(130, "")),
	req("bounces", count(7, "")),
	req("complaints", count(0, "")),
	req("unsubscribes", count(3, "")),
	req("skipped", skipped()),
	req("errors", list(text("credits: no e-mail credits are left", ""), "What went wrong, the newest 20.")),
	req("started_at", instant("").orNull()),
	req("finished_at", instant("").orNull()),
))

var recipientActivity = named("RecipientActivity", object(
	req("contact_id", profileID("")),
	req("email", text("ann@example.com", "").orNull()),
	req("sent", boolean(true, "")), req("failed", boolean(false, "")), req("delivered", boolean(true, "")),
	req("opened", boolean(true, "")), req("clicked", boolean(true, "")), req("bounced", boolean(false, "")),
	req("complained", boolean(false, "")), req("unsubscribed", boolean(false, "")),
	req("opens", count(2, "How often a person opened it; machines that open ahead do not count.")),
	req("opened_at", instant("The first time.").orNull()),
	req("clicks", count(1, "How often a person clicked.")),
	req("clicked_at", instant("The first time.").orNull()),
	req("links", list(object(
		req("url", text("https://example.com/sale", "")),
		req("clicks", count(1, "")),
		req("first_clicked_at", instant("")),
		req("last_clicked_at", instant("")),
	), "Links that were clicked.")),
))

var capturedMessage = named("CapturedMessage", object(
	req("seq", count(7, "Orders messages; the newest has the highest.")),
	req("id", text("<3f9a.1@muster.local>", "Identity of the message; a repeat has the same.")),
	req("channel", channel("")),
	req("to", text("ann@example.com", "")),
	opt("from", text("Example <news@muster.local>", "")),
	opt("subject", text("Our January sale", "Subject, or title of a push message.")),
	opt("body", text("Hello Ann", "Text of channels that have one.")),
	opt("html", text("<p>Hello Ann</p>", "Of an e-mail.")),
	opt("text", text("Hello Ann", "Of an e-mail.")),
	opt("headers", mapOf(text("List-Unsubscribe=One-Click", ""), "Headers of an e-mail.").like(ordered{{"List-Unsubscribe-Post", "List-Unsubscribe=One-Click"}})),
	opt("send_id", text("3f9a7c2e5d1b8046-1", "Names the message and its account.")),
	req("at", text("2026-01-31T09:00:00.000000123Z", "The first attempt, ISO 8601.").with("format", "date-time")),
	opt("truncated", boolean(false, "True when a text was too long to be kept whole.")),
	opt("attempts", integer(1, "How often it was handed over.")),
	opt("last_at", text("2026-01-31T09:00:00.000000123Z", "The last attempt, ISO 8601.").with("format", "date-time")),
))
