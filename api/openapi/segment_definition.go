package openapi

// The operators of conditions.
var (
	anyOps = []string{"=", "!=", ">", ">=", "<", "<=", "in", "not_in", "contains", "not_contains", "starts_with", "ends_with",
		"exists", "not_exists", "between", "before", "after", "in_last_days", "not_in_last_days"}
	numberOps = []string{"=", "!=", ">", ">=", "<", "<=", "in", "not_in", "between"}
)

// definition is the language of segments. It refers to itself: a group holds
// definitions.
var definition = func() *schema {
	node := &schema{name: "SegmentDefinition"}
	value := named("ConditionValue", oneOf(
		text("DE", "").with("maxLength", 1024), number(100, ""), boolean(true, ""),
		list(oneOf(text("DE", "").with("maxLength", 1024), number(100, ""), boolean(true, "")), "For `in` and `not_in` 1 to 1,000 values; for `between` low and high, both included.").entries(1, 1000),
	).says("What is compared with. None for `exists` and `not_exists`; a number of days for `in_last_days` and `not_in_last_days`; a time such as `2026-01-31` for `before` and `after`; a list for `in`, `not_in` and `between`."))
	compared := func() *schema {
		return oneOf(number(100, ""), list(number(100, ""), "For `in`, `not_in` and `between`.").entries(1, 1000)).says("A number, with at most 6 decimals; a list for `in`, `not_in` and `between`.").like(100)
	}
	op := func(ops []string) *schema { return word("How the values are compared.", ops...) }
	property := func() *schema { return text("value", "Property of the event; dots lead into objects.").bytes(1, 512) }
	group := named("SegmentGroup", object(
		opt("kind", text("group", "May be left out of groups.").with("const", "group")),
		req("match", word("Whether all conditions must hold, or any.", "all", "any")),
		req("conditions", list(node, "Conditions, and groups of them. In all at most 500 and 16 levels.").entries(1, 500)),
	).strict().says("Conditions joined by AND (`all`) or OR (`any`)."))
	activity := named("ActivityCondition", object(
		req("kind", text("activity", "").with("const", "activity")),
		req("event", text("item_purchased", "The `event_type` that counts.").bytes(1, 128)),
		opt("did", boolean(true, "False for people of whom the rest does not hold.").def(true)),
		opt("window", oneOf(
			object(req("last_days", number(30, "The last so many days, sliding; fractions of a day are taken.").with("exclusiveMinimum", 0).with("maximum", 36500))).strict(),
			object(req("all_time", boolean(true, "").with("const", true))).strict(),
		).says("Which time counts; left out, all of it.")),
		opt("where", list(object(
			req("property", property()), req("op", op(anyOps)), opt("value", value),
		).strict(), "Filters: events count of which all hold.").entries(0, 20).like([]any{ordered{{"property", "category"}, {"op", "="}, {"value", "shoes"}}})),
		opt("count", object(req("op", op(numberOps)), req("value", compared())).strict().says("How many events there must be; left out, at least one. Not together with `aggregate`.").like(ordered{{"op", ">="}, {"value", 3}})),
		opt("aggregate", object(
			req("fn", word("What is made of the property's values.", "sum", "avg", "min", "max", "distinct")),
			req("property", property()), req("op", op(numberOps)), req("value", compared()),
		).strict().says("A number made of a property of the events.")),
	).strict().says("What a person did, or did not do.").like(ordered{{"kind", "activity"}, {"event", "item_purchased"}, {"window", ordered{{"last_days", 30}}},
		{"aggregate", ordered{{"fn", "sum"}, {"property", "value"}, {"op", ">="}, {"value", 100}}}}))
	attribute := named("AttributeCondition", object(
		req("kind", text("attribute", "").with("const", "attribute")),
		req("field", text("geo.country", "`email`, `phone`, `external_id`, `first_name`, `last_name`, `created_at`, a path below `geo.` or `attributes.`, `tags` (short for `attributes.tags`), "+
			"or one of the fields that the service keeps: see the description of the condition.").bytes(1, 512)),
		req("op", op(anyOps)), opt("value", value),
	).strict().says("What is known of a person. Fields that the service keeps, beside `created_at`: `status` or `status.<channel>` (`Pending`, `Subscribed`, `Engaged`, `At risk`, `Unsubscribed`, `Bounced`, `Complained`, `Suppressed`; "+
		"missing for who never subscribed; `status` is that of e-mail), `subscribed` and `suppressed.<channel>` (true or false), `engagement_score` (a number from 0 to 100), `event_count` (how many events were sent of the person, those that the service records itself not among them), "+
		"`first_seen_at` (creation, or the first event if that is earlier), `last_event_at` (the newest event that was sent), `push_devices` (kinds of devices: `webpush`, `fcm`, `apns`). "+
		"Times take all operators on times, such as `in_last_days`; numbers `=` to `between`; texts `=`, `!=`, `in`, `not_in`, `exists` and `not_exists`; true and false `=` and `!=`. The customer's own attributes of such a name are below `attributes.`."))
	consent := named("ConsentCondition", object(
		req("kind", text("consent", "").with("const", "consent")),
		req("channel", channel("")),
		req("status", word("`pending` are those of the subscribed who were asked to confirm and have not: `subscribed` holds for them too.", "subscribed", "pending", "unsubscribed", "never_subscribed")),
		opt("since", text("2026-01-01", "Subscribed from this time on.")),
		opt("until", text("2026-02-01", "Subscribed before this time.")),
	).strict().says("Consent to a channel."))
	membership := func(name, about string, id field) *schema {
		return named(name, object(req("kind", text(id.name[:len(id.name)-3], "").with("const", id.name[:len(id.name)-3])), id,
			opt("member", boolean(true, "False for those who are not.").def(true))).strict().says(about))
	}
	*node = *named("SegmentDefinition", oneOf(group, activity, attribute, consent,
		membership("ListCondition", "Who is on a static list.", req("list_id", listID(""))),
		membership("SegmentCondition", "Who is in another segment. Segments may not refer to each other in a circle.", req("segment_id", segmentID(""))),
	).says("Who belongs to a segment: a condition, or a group of them. At most 256 KiB.").like(ordered{{"match", "all"}, {"conditions", []any{
		activity.example, ordered{{"kind", "attribute"}, {"field", "geo.country"}, {"op", "="}, {"value", "DE"}}}}}))
	return node
}()

// explained is a node of a definition with its answer.
var explained = func() *schema {
	node := &schema{name: "ExplainedNode"}
	*node = *named("ExplainedNode", object(
		req("kind", word("", "activity", "attribute", "consent", "list", "segment", "group")),
		req("holds", boolean(true, "Whether it holds for the profile, with `did` and `member` taken into account.")),
		opt("match", word("Of a group.", "all", "any")),
		opt("conditions", list(node, "Of a group.").like([]any{})),
		opt("condition", definition),
		opt("facts", object(
			opt("matching_events", count(2, "Of an activity condition: events of its type and window that pass its filters.")),
			opt("value", anything(179.8, "Of an activity condition: the number that is compared, as a text where a number would lose digits. Of an attribute condition: what the profile has there. Null for nothing.")),
			opt("values", count(2, "Of an aggregate: values it is made of.")),
			opt("newest_at", instant("Time of the last matching event.").orNull()),
			opt("oldest_at", instant("Time of the first matching event.").orNull()),
			opt("window_start", instant("After which events count; absent for all time.")),
			opt("value_bytes", count(70000, "Length of a value too long to be shown.")),
			opt("status", word("Of a consent condition.", "subscribed", "pending", "unsubscribed", "never_subscribed")),
			opt("subscribed_at", instant("Of a consent condition.").orNull()),
			opt("member", boolean(true, "Of list and segment conditions.")),
			opt("name", text("Customers", "Of a segment condition; null when there is no such segment.").orNull()),
			opt("definition", node),
		).says("What the answer rests on, by kind; null for an activity condition of which only the answer is known.").orNull().like(ordered{{"matching_events", 2}, {"value", 179.8}})),
	).like(ordered{{"kind", "activity"}, {"holds", true},
		{"condition", ordered{{"kind", "activity"}, {"event", "item_purchased"}}},
		{"facts", ordered{{"matching_events", 2}, {"value", 2}, {"newest_at", "2026-01-30T18:00:00.000Z"}, {"oldest_at", "2026-01-12T09:30:00.000Z"}}}}))
	return node
}()
