package openapi

func profilesConsole() group {
	return group{surface: surfaceConsole, tag: "Console: profiles", title: "Profiles", about: "People: who they are, what they did, what they consented to.",
		ops: []operation{
			{method: "GET", path: "/profiles", permission: "contacts:read", id: "findProfile", summary: "Find a profile", about: "By exactly one identifier.",
				query: []parameter{query("email", text("ann@example.com", "")), query("external_id", text("42", "")), query("phone", text("+491701234567", ""))}, data: profile, also: []int{404}},
			{method: "GET", path: "/profiles/{id}", permission: "contacts:read", id: "getProfile", summary: "Read a profile", data: profile},
			{method: "PATCH", path: "/profiles/{id}", permission: "contacts:write", id: "updateProfile", summary: "Change a profile",
				about: "What is given is changed: identifiers are added, names removed by an empty text, keys of `geo` and `attributes` by null.",
				body:  object(append(contactFields(), opt("geo", geo("Merged into what is there.")), opt("attributes", attributes("Merged into what is there.")))...), data: profile},
			{method: "DELETE", path: "/profiles/{id}", permission: "contacts:write", id: "eraseProfile", summary: "Erase a profile", about: "With its events; hashes of its identifiers keep it out."},
			{method: "GET", path: "/profiles/{id}/events", permission: "events:read", id: "profileEvents", summary: "List a profile's events", about: "The newest first.", query: pageQuery(),
				data: object(req("events", list(profileEvent, "")), req("next", nextCursor.orNull()))},
			{method: "POST", path: "/profiles/{id}/consent", permission: "contacts:write", id: "setConsent", summary: "Record a consent",
				body: object(req("channel", channel("")), req("status", word("", "subscribed", "unsubscribed")), opt("source", text("console", "Where it comes from.").bytes(0, 100).def("console"))), data: profile},
			{method: "POST", path: "/profiles/{id}/suppression", permission: "contacts:write", id: "suppress", summary: "Block a channel",
				body: object(req("channel", channel("")), opt("reason", word("", "suppressed", "bounced", "complained").def("suppressed"))), data: profile},
			{method: "DELETE", path: "/profiles/{id}/suppression", permission: "contacts:write", id: "unsuppress", summary: "Lift the block of a channel",
				query: []parameter{must("channel", channel("The channel."))}, data: profile},
		}}
}

func erasuresConsole() group {
	return group{surface: surfaceConsole, tag: "Console: erasures", title: "Erasures", about: "Identifiers of people who were erased are kept out, by their hashes.",
		ops: []operation{
			{method: "GET", path: "/erasures", permission: "settings:read", id: "listErasures", summary: "List erased identifiers",
				data: list(object(req("hash", text("9f86d081884c7d659a2feaa0c55ad015", "")), req("kind", word("", "email", "external_id", "phone")), req("erased_at", instant(""))), ""), paged: true},
			{method: "DELETE", path: "/erasures/{id}", permission: "settings:write", id: "liftErasure", summary: "Let an identifier in again"},
		}}
}

var profile = named("Profile", object(
	req("profile_id", profileID("")),
	req("merged_ids", list(profileID(""), "Ids of profiles that were merged into this one.")),
	req("identities", object(
		req("email", list(text("ann@example.com", ""), "")), req("external_id", list(text("42", ""), "")), req("phone", list(text("+491701234567", ""), "")),
	).says("Identifiers by kind, the newest first.")),
	req("first_name", text("Ann", "")), req("last_name", text("Lee", "")),
	req("geo", geo("")), req("attributes", attributes("")),
	req("tags", list(text("customer", ""), "The texts of `attributes.tags`.")),
	req("consent", mapOf(object(
		req("status", word("", "subscribed", "unsubscribed", "never_subscribed")), req("source", text("manual", "")), req("since", instant("").orNull()),
	), "Consents by channel.").like(ordered{{"email", ordered{{"status", "subscribed"}, {"source", "manual"}, {"since", "2026-01-31T09:00:00.000Z"}}}})),
	req("lists", list(listID(""), "")),
	req("segments", list(segmentID(""), "Segments that hold the profile at `as_of`; null when that could not be found out in time, which the message says.").orNull()),
	req("flows", list(flowID(""), "Flows that the profile is or was in.")),
	req("as_of", instant("The instant of all this.")),
	req("statuses", mapOf(contactStatus(""), "Statuses by channel; one that was never subscribed to has none.").like(ordered{{"email", "Subscribed"}})),
	req("suppressions", mapOf(word("", "bounced", "complained", "suppressed", "pending"), "Why a channel is blocked, by channel.").like(ordered{})),
	req("engagement_score", count(20, "").with("maximum", 100)),
	req("devices", count(1, "How many.")),
	req("is_contact", boolean(true, "Whether somebody made it a contact.")),
	req("conflicts", list(object(
		req("kind", word("", "email", "external_id", "phone")), req("value", text("43", "")), req("reason", text("both profiles hold a different identifier of a higher rank", "")),
		req("other_profile_id", profileID("").orNull()), req("at", instant("")),
	), "Identifiers seen with the profile that are not its own.")),
	req("created_at", instant("")),
	req("last_event_at", instant("Null before the first event.").orNull()),
))
