package openapi

func pushA() group {
	return group{surface: surfaceA, tag: "Push", title: "Push", about: "Messages to devices over Web Push, FCM and APNs.",
		ops: []operation{
			{method: "GET", path: "/push/segments", permission: "segments:read", id: "pushSegments", summary: "List segments to send to", about: "The oldest first.",
				data: list(pushSegment, ""), paged: true},
			{method: "POST", path: "/push/send", permission: "campaigns:write", id: "sendPush", summary: "Send a push message",
				about: "It answers when the message was sent, with the message `sent`. With `dryRun` all is checked and counted, and nothing is kept or delivered. " +
					"When it was stopped, or no device took it, that is a failure with the same `data`. " +
					"`campaignId` stays on record until the account has 100,000 campaigns; then the oldest push message gives way.",
				body: object(
					req("title", text("Our January sale", "Title of the message.")),
					opt("body", text("It ends on Friday", "Text of the message.")),
					opt("segmentId", segmentID("Who gets it; left out, every live device of the account.")),
					opt("link", text("https://example.com/sale", "What the message opens.")),
					opt("dryRun", boolean(true, "Check and count, and deliver nothing.").def(false)),
				), data: pushResult, failData: true, fails: []string{"title Field required"}},
		}}
}

var pushSegment = named("PushSegment", object(
	req("_id", segmentID("Id of the segment.")),
	req("name", text("Customers", "")),
	req("count", count(512, "Members, null while the segment is being built.").orNull()),
	req("status", word("", "live", "building")),
))

var pushResult = named("PushResult", object(
	req("campaignId", campaignID("The row of push history; empty for a dry run.")),
	req("segmentName", text("Customers", "Name of the segment, empty without one.")),
	req("contactsInSegment", count(512, "")),
	req("reachableContacts", count(340, "Contacts with a device that may be sent to.")),
	req("total", count(402, "Devices addressed: a person with three devices counts three times.")),
	req("accepted", count(400, "Devices the push service took responsibility for.")),
	req("retired", count(2, "Devices the push service called dead; they are removed.")),
	req("dryRun", boolean(false, "")),
))
