package openapi

const warningExample = "user.phone not added: the profile may have no more identifiers; see its conflicts"

func eventsB() group {
	about := "The profile is found by `email`, then `external_id`, then `phone`; if none is on file it is made. An event sent again with the same `idempotency_key` counts once and is answered alike, for at least 72 hours."
	result := named("EventResult", object(
		req("success", boolean(true, "Whether the event is recorded.")),
		req("profile_id", profileID("The profile it was recorded against; empty on failure.")),
		req("error", text("event_type is missing; name what happened, such as \"item_viewed\"", "What is wrong; null on success.").orNull().like(nil)),
		opt("warning", text(warningExample, "What of a recorded event was not taken over: identifiers beyond those that a profile may have, which stand among its `conflicts`. Absent when there is nothing to tell.")),
	))
	batch := func(more ...field) *schema {
		return object(append([]field{
			req("success", boolean(true, "Whether all events are recorded.")),
			req("accepted", count(1, "How many are recorded, or were before.")),
			req("total", count(1, "How many were sent.")),
			req("results", list(result, "One for each event, in order.")),
		}, more...)...)
	}
	denied := opt("error", text("invalid app credentials; check the headers X-App-Id and X-App-Secret", "Present when the credentials do not hold."))
	return group{surface: surfaceB, tag: "Events", title: "Events", about: about, ops: []operation{
		{method: "POST", path: "/events", id: "recordEvent", summary: "Record an event", body: event, data: result},
		{method: "POST", path: "/events/batch", id: "recordEvents", summary: "Record many events",
			about: "A bad event fails alone; the others are recorded.",
			body:  object(req("events", list(event, "At most 10,000, unless the server is set otherwise; a few hundred are advised.").entries(0, 10000))), data: batch(denied)},
		{method: "POST", path: "/events/import", id: "importEvents", summary: "Import past events",
			about: "For files of events that happened before. Rows are numbered; a row that is behind `next_row` of an answer is on record, so that an import can be resumed and repeated. The command `muster import` does it all.",
			body: object(
				req("file", text("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "SHA-256 of the file's content, in hexadecimal: names the import.").with("pattern", "^[0-9a-fA-F]{64}$")),
				req("first_row", count(0, "Number of the first row in `events`, from 0.")),
				opt("trigger_flows", boolean(false, "Whether the events may start flows.").def(false)),
				req("events", list(eventBase.plus(req("timestamp", anything("2025-05-31T12:30:00Z", "When it happened: RFC 3339, or whole Unix milliseconds. Not in the future.").with("type", []string{"string", "integer"}))), "").entries(0, 10000)),
			), data: batch(req("next_row", count(1, "The row to go on with.")), req("error", text("", "Why the import as a whole was refused; null otherwise.").orNull()))},
	}}
}

// event is an event as it is sent when it happens, or soon after.
var event = named("Event", eventBase.plus(eventTime))

var eventTime = opt("timestamp", anything("2025-05-31T12:30:00Z", "When it happened: RFC 3339, or whole Unix milliseconds. Not in the future, and at most `max_event_age_hours` of the settings ago (720). Left out, it happens when it arrives. "+
	"Windows count it by this time; flows' event triggers take it only up to `flow_event_age_hours` (24).").with("type", []string{"string", "integer"}))

var eventBase = object(
	req("event_type", text("item_purchased", "What happened: a key in snake case.").bytes(1, 128).with("pattern", "^[a-z0-9]+(_[a-z0-9]+)*$")),
	req("user", object(
		opt("email", text("ann@example.com", "").bytes(0, 512).orNull()),
		opt("external_id", text("42", "The caller's own identifier.").bytes(0, 512).orNull()),
		opt("phone", text("+491701234567", "").bytes(0, 512).orNull()),
		opt("first_name", text("Ann", "").bytes(0, 512).orNull()),
		opt("last_name", text("Lee", "").bytes(0, 512).orNull()),
		opt("geo", geo("Updates the profile. At most 64 KiB.").orNull()),
		opt("attributes", attributes("Updates the profile. At most 64 KiB.").orNull()),
	).says("Who did it: at least one of `email`, `external_id` and `phone`, and one that is not a placeholder such as \"null\".").with("anyOf", []ordered{
		{{"required", []string{"email"}}}, {{"required", []string{"external_id"}}}, {{"required", []string{"phone"}}},
	})),
	opt("properties", freeObject(ordered{{"value", 79.9}, {"currency", "EUR"}, {"product_id", "sku-7"}}, "What the event says. At most 64 KiB, and 32 levels deep.").orNull()),
	opt("idempotency_key", text("order-1001", "Makes a repeat harmless.").bytes(0, 256).orNull()),
)

func eventsC() group {
	return group{surface: surfaceC, tag: "Events (v1)", title: "Events", about: "Events by e-mail, under the rules of Surface B.", ops: []operation{
		{method: "POST", path: "/events", permission: "events:write", id: "v1RecordEvent", summary: "Record an event",
			body: object(
				req("email", text("ann@example.com", "Who did it.").bytes(1, 512)),
				req("event", text("item_purchased", "What happened: a key in snake case.").bytes(1, 128).with("pattern", "^[a-z0-9]+(_[a-z0-9]+)*$")),
				opt("properties", freeObject(ordered{{"value", 79.9}}, "What the event says. At most 64 KiB.")),
				opt("idempotency_key", text("order-1001", "Makes a repeat harmless.").bytes(0, 256)), eventTime,
			), data: object(req("profile_id", profileID("The profile it was recorded against.")),
				opt("warning", text("email not added: the profile may have no more identifiers; see its conflicts", "What of the event was not taken over. Absent when there is nothing to tell.")))},
	}}
}

func emailC() group {
	return group{surface: surfaceC, tag: "E-mail (v1)", title: "E-mail", about: "Single e-mails from templates.", ops: []operation{
		{method: "POST", path: "/email/send", permission: "campaigns:write", id: "sendEmail", summary: "Send an e-mail",
			about: "The message is queued durably and tried for 12 hours; what becomes of it is an event of the profile. An address that is not on file becomes a profile, without a consent. " +
				"It goes to who can be reached, subscribed or not, and not to addresses that bounced, complained or are suppressed.",
			body: object(
				req("to", text("ann@example.com", "The address.").bytes(1, 512)),
				req("template_id", templateID("The template.")),
				opt("data", freeObject(ordered{{"order", "1001"}}, "Values of the template's merge tags. At most 128 KiB.")),
				opt("subject", text("Your order", "Instead of the template's.").bytes(0, 998)),
				opt("sender", text("shop@muster.local", "An address of a verified domain; left out, `no-reply@` the first of them.")),
				opt("sender_name", text("Example", "Name of the sender.")),
				opt("idempotency_key", text("order-1001", "Makes a repeat harmless: it gets the first answer.").bytes(0, 256)),
			), data: object(
				req("message_id", text("<3f9a.1@muster.local>", "The Message-ID.")),
				req("status", text("queued", "").with("const", "queued")),
				req("to", text("ann@example.com", "")),
				req("template_id", templateID("")),
				req("profile_id", profileID("The profile of the address.")),
			)},
	}}
}

func eventsConsole() group {
	eventType := named("EventType", object(
		req("name", text("Item purchased", "Name for people; the key, where none was given.")),
		req("key", text("item_purchased", "The `event_type` of events.")),
		req("first_seen", instant("Time of the earliest event; null before the first.").orNull()),
		req("count", count(210, "Events recorded.")),
	))
	return group{surface: surfaceConsole, tag: "Console: events", title: "Events", about: "The catalog of event types, and events as they come.", ops: []operation{
		{method: "GET", path: "/catalog", permission: "events:read", id: "listCatalog", summary: "List event types", about: "Those defined and those seen.", data: list(eventType, "")},
		{method: "POST", path: "/catalog", permission: "events:write", id: "defineEvent", summary: "Define an event type", about: "The key is the name in snake case: \"Item purchased\" is `item_purchased`.",
			body: object(req("name", text("Item purchased", "Name of the event type.").bytes(1, 200))), data: eventType},
		{method: "GET", path: "/events/live", permission: "events:read", id: "liveEvents", summary: "Watch events",
			about: "A stream of server-sent events: `event` for each event as it is applied, `dropped` with the number missed when the watcher was too slow, `end` before it ends. Comments are signs of life.",
			other: ordered{{"200", plain("Events as they are applied.", "text/event-stream",
				": watching\n\nevent: event\ndata: {\"profile_id\":\"prf_cdc5eaeb89bc0ed9f653e1d1d46aa533\",\"event_type\":\"item_purchased\",\"timestamp\":\"2026-01-31T09:00:00.000Z\",\"properties\":{\"value\":79.9}}\n\n", nil)}}},
	}}
}
