package shapes

import "github.com/musterhq/muster/api/shape"

// Profile is a [record.Profile].
var Profile = shape.Named("Profile", shape.Object(
	shape.Req("profile_id", shape.ProfileID("")),
	shape.Req("merged_ids", shape.List(shape.ProfileID(""), "Ids of profiles that were merged into this one.")),
	shape.Req("identities", shape.Object(
		shape.Req("email", shape.List(shape.Text("ann@example.com", ""), "")), shape.Req("external_id", shape.List(shape.Text("42", ""), "")), shape.Req("phone", shape.List(shape.Text("+491701234567", ""), "")),
	).Says("Identifiers by kind, the newest first. The first e-mail of a person subscribed to e-mail is the one that is mailed, and e-mails that events attach stand behind it.")),
	shape.Req("anonymous_ids", shape.List(shape.Text("5f2c1a3e-8d4b-4a8e-9c7a-1b2c3d4e5f60", ""), "What tracking SDKs made up for the person's devices, the newest first. No other call tells of them.")),
	shape.Req("first_name", shape.Text("Ann", "")), shape.Req("last_name", shape.Text("Lee", "")),
	shape.Req("geo", shape.Geo("")), shape.Req("attributes", shape.Attributes("")),
	shape.Req("tags", shape.List(shape.Text("customer", ""), "The texts of `attributes.tags`.")),
	shape.Req("consent", shape.MapOf(shape.Object(
		shape.Req("status", shape.Word("", "subscribed", "unsubscribed", "never_subscribed")), shape.Req("source", shape.Text("manual", "")), shape.Req("since", shape.Instant("").OrNull()),
	), "Consents by channel.").Like(shape.Pairs("email", shape.Pairs("status", "subscribed", "source", "manual", "since", "2026-01-31T09:00:00.000Z")))),
	shape.Req("lists", shape.List(shape.ListID(""), "")),
	shape.Req("segments", shape.List(shape.SegmentID(""), "Segments that hold the profile at `as_of`; null when that could not be found out in time, which the message says.").OrNull()),
	shape.Req("flows", shape.List(shape.FlowID(""), "Flows that the profile is or was in.")),
	shape.Req("as_of", shape.Instant("The instant of all this.")),
	shape.Req("statuses", shape.MapOf(shape.ContactStatus(""), "Statuses by channel; one that was never subscribed to has none.").Like(shape.Pairs("email", "Subscribed"))),
	shape.Req("suppressions", shape.MapOf(shape.Word("", "bounced", "complained", "suppressed", "pending"), "Why a channel is suppressed, by channel.").Like(shape.Pairs())),
	shape.Req("engagement_score", shape.Count(20, "").With("maximum", 100)),
	shape.Req("devices", shape.Count(1, "How many.")),
	shape.Req("is_contact", shape.Boolean(true, "Whether it was made a contact.")),
	shape.Req("conflicts", shape.List(shape.Object(
		shape.Req("kind", shape.Word("", "email", "external_id", "phone", "anonymous_id")), shape.Req("value", shape.Text("43", "")), shape.Req("reason", shape.Text("both profiles hold a different identifier of a higher rank", "")),
		shape.Req("other_profile_id", shape.ProfileID("").OrNull()), shape.Req("at", shape.Instant("")),
	), "Identifiers seen with the profile that are not its own.")),
	shape.Req("created_at", shape.Instant("")),
	shape.Req("last_event_at", shape.Instant("Null before the first event.").OrNull()),
))

// ProfileRow is a [record.ProfileRow].
var ProfileRow = shape.Named("ProfileRow", shape.Object(
	shape.Req("profile_id", shape.ProfileID("")),
	shape.Req("identities", shape.Object(
		shape.Req("email", shape.List(shape.Text("ann@example.com", ""), "")), shape.Req("external_id", shape.List(shape.Text("42", ""), "")), shape.Req("phone", shape.List(shape.Text("+491701234567", ""), "")),
	).Says("Identifiers by kind, the newest first. The first e-mail of a person subscribed to e-mail is the one that is mailed, and e-mails that events attach stand behind it.")),
	shape.Req("first_name", shape.Text("Ann", "")), shape.Req("last_name", shape.Text("Lee", "")),
	shape.Req("statuses", shape.MapOf(shape.ContactStatus(""), "Statuses by channel; one that was never subscribed to has none.").Like(shape.Pairs("email", "Subscribed"))),
	shape.Req("lists", shape.List(shape.ListID(""), "")),
	shape.Req("tags", shape.List(shape.Text("customer", ""), "The texts of `attributes.tags`.")),
	shape.Req("engagement_score", shape.Count(20, "").With("maximum", 100)),
	shape.Req("is_contact", shape.Boolean(true, "Whether it was made a contact.")),
	shape.Req("created_at", shape.Instant("")),
	shape.Req("first_seen_at", shape.Instant("The first event, if that is before `created_at`.")),
	shape.Req("last_event_at", shape.Instant("Null before the first event.").OrNull()),
))
