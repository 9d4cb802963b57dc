package openapi

func webhooksConsole() group {
	hook := object(
		req("_id", webhookID("")), req("url", text("https://example.com/hooks", "")), req("events", list(text("email.opened", ""), "")), req("description", text("CRM", "")),
		req("status", word("disabled is by a person; gone when the receiver answered 410, until a person makes it active.", "active", "disabled", "gone")), req("created_at", instant("")), req("updated_at", instant("")),
		req("delivered", count(812, "Deliveries, over all time.")), req("failures", count(2, "Attempts that failed, over all time.")), req("failing", count(0, "Attempts that failed since the last success.")),
		req("dropped", count(0, "Events for which there was no room.")), req("waiting", count(0, "")), req("dead_letters", count(1, "")),
		req("last_error", text("HTTP 503", "Empty for none.")), req("last_failed_at", instant("").orNull()), req("last_delivered_at", instant("").orNull()),
	)
	one := named("Webhook", hook)
	withSecret := hook.plus(req("secret", text("whsec_Zm9vYmFy…", "Signs deliveries (Standard Webhooks). Shown this once.")))
	fields := func(create bool) *schema {
		url := text("https://example.com/hooks", "Where events are sent. Private addresses are refused, unless the server is set otherwise.").bytes(1, 2048)
		events := list(text("email.opened", ""), "Names of events, groups such as `email.*`, or `*`.").entries(1, 50)
		first := []field{opt("url", url), opt("events", events)}
		if create {
			first = []field{req("url", url), req("events", events)}
		}
		return object(append(first, opt("description", text("CRM", "").bytes(0, 2000)), opt("status", word("A disabled endpoint keeps what waits for it.", "active", "disabled")))...)
	}
	replayed := object(req("replayed", count(1, "How many are queued again.")), req("left", count(0, "How many are left.")))
	return group{surface: surfaceConsole, tag: "Console: webhooks", title: "Webhooks",
		about: "Endpoints that hear of events. Deliveries are signed, in order, tried again over three days, and kept as dead letters when they are given up.", ops: []operation{
			{method: "GET", path: "/webhooks", permission: "settings:read", id: "listWebhooks", summary: "List endpoints", data: list(one, "")},
			{method: "POST", path: "/webhooks", permission: "settings:write", id: "createWebhook", summary: "Register an endpoint", body: fields(true), data: withSecret},
			{method: "GET", path: "/webhooks/events", permission: "settings:read", id: "listWebhookEvents", summary: "List the names of events",
				data: list(object(req("name", text("email.opened", "")), req("description", text("An email was opened.", ""))), "")},
			{method: "GET", path: "/webhooks/{id}", permission: "settings:read", id: "getWebhook", summary: "Read an endpoint", data: one},
			{method: "PATCH", path: "/webhooks/{id}", permission: "settings:write", id: "updateWebhook", summary: "Change an endpoint", about: "What is left out stays. One that is made active again gets what waited for it.", body: fields(false), data: one},
			{method: "DELETE", path: "/webhooks/{id}", permission: "settings:write", id: "deleteWebhook", summary: "Remove an endpoint"},
			{method: "POST", path: "/webhooks/{id}/rotate", permission: "settings:write", id: "rotateWebhook", summary: "Make a new secret", about: "The old one signs beside it for a day.", data: withSecret},
			{method: "POST", path: "/webhooks/{id}/test", permission: "settings:write", id: "testWebhook", summary: "Send a test event", about: "It is queued behind what waits.",
				data: object(req("status", word("", "queued")), req("seq", count(17, "")))},
			{method: "GET", path: "/webhooks/{id}/dead-letters", permission: "settings:read", id: "listDeadLetters", summary: "List dead letters", about: "In the order in which they were given up.",
				data: list(object(req("seq", count(17, "")), req("webhook_id", text("msg_3f9a7c2e5d1b8046_17", "The header webhook-id of all its attempts.")), req("event", text("email.opened", "")), req("attempts", count(12, "")),
					req("reason", text("HTTP 410", "")), req("created_at", instant("")), req("died_at", instant(""))), ""), paged: true},
			{method: "POST", path: "/webhooks/{id}/dead-letters/replay", permission: "settings:write", id: "replayDeadLetters", summary: "Send all dead letters again", data: replayed},
			{method: "POST", path: "/webhooks/{id}/dead-letters/{seq}/replay", permission: "settings:write", id: "replayDeadLetter", summary: "Send a dead letter again", data: replayed},
		}}
}
