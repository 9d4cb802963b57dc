package shapes

import "github.com/musterhq/muster/api/shape"

// The operators of conditions.
var (
	anyOps = []string{"=", "!=", ">", ">=", "<", "<=", "in", "not_in", "contains", "not_contains", "starts_with", "ends_with",
		"exists", "not_exists", "between", "before", "after", "in_last_days", "not_in_last_days"}
	numberOps = []string{"=", "!=", ">", ">=", "<", "<=", "in", "not_in", "between"}
)

// Definition is the language of segments. It refers to itself: a group holds
// definitions.
var Definition = shape.Recursive("SegmentDefinition", func(node *shape.Schema) *shape.Schema {
	scalar := shape.Named("ConditionScalar", shape.OneOf(shape.Text("DE", "").With("maxLength", 1024), shape.Number(100, ""), shape.Boolean(true, "")))
	value := shape.Named("ConditionValue", shape.OneOf(
		shape.Text("DE", "").With("maxLength", 1024), shape.Number(100, ""), shape.Boolean(true, ""),
		shape.List(scalar, "For `in` and `not_in` 1 to 1,000 values; for `between` low and high, both included.").Entries(1, 1000),
	).Says("What is compared with. None for `exists` and `not_exists`; a number of days for `in_last_days` and `not_in_last_days`; a time such as `2026-01-31` for `before` and `after`; a list for `in`, `not_in` and `between`."))
	compared := func() *shape.Schema {
		return shape.Named("ComparedNumber", shape.OneOf(shape.Number(100, ""), shape.List(shape.Number(100, ""), "For `in`, `not_in` and `between`.").Entries(1, 1000)).Says("A number, with at most 6 decimals; a list for `in`, `not_in` and `between`.").Like(100))
	}
	op := func(ops []string) *shape.Schema { return shape.Word("How the values are compared.", ops...) }
	property := func() *shape.Schema {
		return shape.Text("value", "Property of the event; dots lead into objects.").Bytes(1, 512)
	}
	// On the root alone, which may be a condition.
	includeAnonymous := func() shape.Field {
		return shape.Opt("include_anonymous", shape.Boolean(false, "At the root of a definition alone: true lets anonymous people be members, of whom tracking has seen a device and knows no e-mail, external id or phone.").Default(false))
	}
	group := shape.Named("SegmentGroup", shape.Object(
		shape.Opt("kind", shape.Only("SegmentGroupKind", "group")),
		shape.Req("match", shape.Word("Whether all conditions must hold, or any.", "all", "any")),
		shape.Req("conditions", shape.List(node, "Conditions, and groups of them. In all at most 500 and 16 levels.").Entries(1, 500)),
		includeAnonymous(),
	).Strict().Says("Conditions joined by AND (`all`) or OR (`any`). `kind` may be left out."))
	activity := shape.Named("ActivityCondition", shape.Object(
		shape.Req("kind", shape.Only("ActivityConditionKind", "activity")), includeAnonymous(),
		shape.Req("event", shape.Text("item_purchased", "The `event_type` that counts.").Bytes(1, 128)),
		shape.Opt("did", shape.Boolean(true, "False for people of whom the rest does not hold.").Default(true)),
		shape.Opt("window", shape.Named("TimeWindow", shape.OneOf(
			shape.Named("LastDays", shape.Object(shape.Req("last_days", shape.Number(30, "The last so many days, sliding; fractions of a day are taken.").With("exclusiveMinimum", 0).With("maximum", 36500))).Strict()),
			shape.Named("AllTime", shape.Object(shape.Req("all_time", shape.Boolean(true, "Always true."))).Strict()),
		).Says("Which time counts; left out, all of it."))),
		shape.Opt("where", shape.List(shape.Named("EventFilter", shape.Object(
			shape.Req("property", property()), shape.Req("op", op(anyOps)), shape.Opt("value", value),
		).Strict()), "Filters: events count of which all hold.").Entries(0, 20).Like([]any{shape.Pairs("property", "category", "op", "=", "value", "shoes")})),
		shape.Opt("count", shape.Named("EventCount", shape.Object(shape.Req("op", op(numberOps)), shape.Req("value", compared())).Strict().Says("How many events there must be; left out, at least one. Not together with `aggregate`.").Like(shape.Pairs("op", ">=", "value", 3)))),
		shape.Opt("aggregate", shape.Named("EventAggregate", shape.Object(
			shape.Req("fn", shape.Word("What is made of the property's values.", "sum", "avg", "min", "max", "distinct")),
			shape.Req("property", property()), shape.Req("op", op(numberOps)), shape.Req("value", compared()),
		).Strict().Says("A number made of a property of the events."))),
	).Strict().Says("What a person did, or did not do.").Like(shape.Pairs("kind", "activity", "event", "item_purchased", "window", shape.Pairs("last_days", 30),
		"aggregate", shape.Pairs("fn", "sum", "property", "value", "op", ">=", "value", 100))))
	attribute := shape.Named("AttributeCondition", shape.Object(
		shape.Req("kind", shape.Only("AttributeConditionKind", "attribute")), includeAnonymous(),
		shape.Req("field", shape.Text("geo.country", "`email`, `phone`, `external_id`, `first_name`, `last_name`, `created_at`, a path below `geo.` or `attributes.`, `tags` (short for `attributes.tags`), "+
			"or one of the fields that the service keeps: see the description of the condition.").Bytes(1, 512)),
		shape.Req("op", op(anyOps)), shape.Opt("value", value),
	).Strict().Says("What is known of a person. Fields that the service keeps, beside `created_at`: `status` or `status.<channel>` (`Pending`, `Subscribed`, `Engaged`, `At risk`, `Unsubscribed`, `Bounced`, `Complained`, `Suppressed`; "+
		"missing for people who never subscribed; `status` is that of e-mail), `suppressed.<channel>` (true or false), `subscribed` (true for people who subscribed to e-mail, confirmed if they were asked to, and are not suppressed: the subscribers whom campaigns go to; it is answered as `status.email` in `Subscribed`, `Engaged`, `At risk`), `engagement_score` (a number from 0 to 100), `event_count` (how many events were sent of the person, under whatever type; those that the service recorded itself are not among them), "+
		"`first_seen_at` (creation, or the first event if that is earlier), `last_event_at` (the newest event that was sent), `push_devices` (kinds of devices: `webpush`, `fcm`, `apns`). "+
		"Times take all operators on times, such as `in_last_days`; numbers `=` to `between`; texts `=`, `!=`, `in`, `not_in`, `exists` and `not_exists`; true and false `=` and `!=`. The customer's own attributes of such a name are below `attributes.`."))
	consent := shape.Named("ConsentCondition", shape.Object(
		shape.Req("kind", shape.Only("ConsentConditionKind", "consent")), includeAnonymous(),
		shape.Req("channel", shape.Channel("")),
		shape.Req("status", shape.Word("`pending` are those of the subscribed who were asked to confirm and have not: `subscribed` holds for them too.", "subscribed", "pending", "unsubscribed", "never_subscribed")),
		shape.Opt("since", shape.Text("2026-01-01", "Subscribed from this time on.")),
		shape.Opt("until", shape.Text("2026-02-01", "Subscribed before this time.")),
	).Strict().Says("Consent to a channel."))
	membership := func(name, about string, id shape.Field) *shape.Schema {
		return shape.Named(name, shape.Object(shape.Req("kind", shape.Only(name+"Kind", id.Name()[:len(id.Name())-3])), id, includeAnonymous(),
			shape.Opt("member", shape.Boolean(true, "False for those who are not.").Default(true))).Strict().Says(about))
	}
	return shape.OneOf(group, activity, attribute, consent,
		membership("ListCondition", "Membership of a static list.", shape.Req("list_id", shape.ListID(""))),
		membership("SegmentCondition", "Membership of another segment. Segments may not refer to each other in a circle.", shape.Req("segment_id", shape.SegmentID(""))),
	).Says("Who belongs to a segment: a condition, or a group of them. At most 256 KiB.").Like(shape.Pairs("match", "all", "conditions", []any{
		activity.Sample(), shape.Pairs("kind", "attribute", "field", "geo.country", "op", "=", "value", "DE")})).Parsed()
})

// Explained is a node of a definition with its answer.
var Explained = shape.Recursive("ExplainedNode", func(node *shape.Schema) *shape.Schema {
	return shape.Object(
		shape.Req("kind", shape.Word("", "activity", "attribute", "consent", "list", "segment", "group")),
		shape.Req("holds", shape.Boolean(true, "Whether it holds for the profile, with `did` and `member` taken into account.")),
		shape.Opt("anonymous", shape.Boolean(true, "True where a definition leaves anonymous profiles out and the profile is one, whatever the conditions say. Absent elsewhere.")),
		shape.Opt("match", shape.Word("Of a group.", "all", "any")),
		shape.Opt("conditions", shape.List(node, "Of a group.").Like([]any{})),
		shape.Opt("condition", Definition),
		shape.Opt("facts", shape.Object(
			shape.Opt("matching_events", shape.Count(2, "Of an activity condition: events of its type and window that pass its filters.")),
			shape.Opt("value", shape.Anything(179.8, "Of an activity condition: the number that is compared, as a text where a number would lose digits. Of an attribute condition: what the profile has there. Null for nothing.")),
			shape.Opt("values", shape.Count(2, "Of an aggregate: values it is made of.")),
			shape.Opt("newest_at", shape.Instant("Time of the last matching event.").OrNull()),
			shape.Opt("oldest_at", shape.Instant("Time of the first matching event.").OrNull()),
			shape.Opt("window_start", shape.Instant("After which events count; absent for all time.")),
			shape.Opt("value_bytes", shape.Count(70000, "Length of a value too long to be shown.")),
			shape.Opt("status", shape.Word("Of a consent condition.", "subscribed", "pending", "unsubscribed", "never_subscribed")),
			shape.Opt("subscribed_at", shape.Instant("Of a consent condition.").OrNull()),
			shape.Opt("member", shape.Boolean(true, "Of list and segment conditions.")),
			shape.Opt("name", shape.Text("Customers", "Of a segment condition; null when there is no such segment.").OrNull()),
			shape.Opt("definition", node),
		).Says("What the answer rests on, by kind; null for an activity condition of which only the answer is known.").OrNull().Like(shape.Pairs("matching_events", 2, "value", 179.8))),
	).Like(shape.Pairs("kind", "activity", "holds", true,
		"condition", shape.Pairs("kind", "activity", "event", "item_purchased"),
		"facts", shape.Pairs("matching_events", 2, "value", 2, "newest_at", "2026-01-30T18:00:00.000Z", "oldest_at", "2026-01-12T09:30:00.000Z")))
})
