package openapi

func analyticsA() group {
	return group{surface: surfaceA, tag: "Analytics", title: "Analytics",
		about: "Numbers out of history, in a range of time. Opens and clicks of machines do not count.",
		ops: append(flowAnalytics(), []operation{
			{method: "GET", path: "/analytics/overview", permission: "analytics:read", id: "analyticsOverview", summary: "All of the account", query: spanQuery(),
				data: object(req("range", timeRange),
					req("contacts", object(req("total", count(1204, "Profiles there are now.")), req("new", count(31, "Made in the range.")),
						req("subscribed", count(1100, "Subscribed to e-mail now; null when they are too many to be counted.").orNull()))),
					req("lists", count(4, "")), req("segments", count(9, "")), req("campaigns", count(12, "")), req("flows", count(3, "")),
					req("events", count(20412, "Events in the range.")), req("messages", messageCounts)),
				fails: []string{"from Input should be before to"}},
			{method: "GET", path: "/analytics/performance", permission: "analytics:read", id: "analyticsPerformance", summary: "Messages over time",
				query: append(spanQuery(), query("campaign_id", campaignID("Those of a campaign alone."))),
				data:  object(req("range", timeRange), req("totals", messageCounts), req("series", list(messageCounts.plus(spanStart()), "One entry for each span, also for those without messages."))),
				fails: []string{"granularity Input should be 'hour', 'day', 'week' or 'month'"}},
			{method: "GET", path: "/analytics/campaigns", permission: "analytics:read", id: "analyticsCampaigns", summary: "Messages by campaign", about: "The oldest campaign first.", query: spanQuery(),
				data: list(messageCounts.plus(req("campaign_id", campaignID("")), req("name", text("January sale", "")), req("status", runStatus())), ""), paged: true},
			{method: "GET", path: "/analytics/events", permission: "analytics:read", id: "analyticsEvents", summary: "Events by type",
				query: append(spanQuery(), query("event_type", text("item_purchased", "Those of a type alone."))),
				data: object(req("range", timeRange), req("events", list(object(
					req("event_type", text("item_purchased", "")), req("events", count(210, "")), req("contacts", count(180, "People who did it.")),
					req("series", list(object(spanStart(), req("events", count(12, "")), req("contacts", count(11, ""))), "Spans with events.")),
				), "")))},
			{method: "GET", path: "/analytics/segments", permission: "analytics:read", id: "analyticsSegments", summary: "Sizes and moves of segments", query: spanQuery(),
				data: list(object(req("segment_id", segmentID("")), req("name", text("Customers", "")),
					req("size", count(512, "Members now; null while the segment is being built.").orNull()),
					req("entered", count(40, "Entries in the range.")), req("exited", count(7, "Exits in the range."))), ""), paged: true},
			{method: "GET", path: "/analytics/contacts", permission: "analytics:read", id: "analyticsContacts", summary: "Growth of contacts", about: "Of those there are now; at most 800 spans.", query: spanQuery(),
				data: object(req("range", timeRange), req("new", count(31, "Made in the range.")), req("total", count(1204, "At its end.")),
					req("series", list(object(spanStart(), req("new", count(3, "")), req("total", count(1204, "At the end of the span."))), "")))},
		}...)}
}

func spanQuery() []parameter {
	return []parameter{
		query("from", text("2026-01-01", "Begin of the range, included: a date, or a date and a time with its zone. Default: 30 days before `to`.")),
		query("to", text("2026-02-01T00:00:00Z", "End of the range, not included. Default: now.")),
		query("granularity", word("Width of a span. At most 2,000 spans.", "day", "hour", "week", "month").def("day")),
	}
}

func spanStart() field { return req("start", instant("Begin of the span.")) }

var timeRange = named("TimeRange", object(
	req("from", instant("Begin, included.")), req("to", instant("End, not included.")),
	req("granularity", word("", "day", "hour", "week", "month")),
))

var messageCounts = named("MessageCounts", object(
	req("sent", count(1187, "")), req("delivered", count(1180, "")),
	req("opens", count(640, "")), req("unique_opens", count(512, "A person counts once for each channel.")),
	req("clicks", count(130, "")), req("unique_clicks", count(101, "")),
	req("bounces", count(7, "")), req("complaints", count(0, "")), req("unsubscribes", count(3, "")),
	req("delivery_rate", number(0.99, "Delivered of those sent.").with("minimum", 0)), req("open_rate", number(0.43, "Unique opens of those sent.").with("minimum", 0)),
	req("click_rate", number(0.08, "Unique clicks of those sent.").with("minimum", 0)), req("bounce_rate", number(0.006, "Bounces of those tried.").with("minimum", 0)),
	req("complaint_rate", number(0, "Complaints of those sent.").with("minimum", 0)), req("unsubscribe_rate", number(0.002, "Unsubscribes of those sent.").with("minimum", 0)),
	req("bounce_rate_healthy", boolean(true, "Below 2 %.")), req("complaint_rate_healthy", boolean(true, "Below 0.1 %.")),
))
