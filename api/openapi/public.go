package openapi

func linksPublic() group {
	page := func(status, about string) member {
		var headers ordered
		if status == "503" {
			headers = ordered{retryAfter}
		}
		return member{status, plain(about, "text/html", "", headers)}
	}
	return group{surface: surfacePublic, tag: "Links of messages", title: "Links of messages",
		about: "Messages lead here. What a link does, and for whom, is in its token, which the service signed; a forged or incomplete one is answered 404.", ops: []operation{
			{method: "GET", path: "/t/{token}", id: "followLink", summary: "Follow a link", about: "The pixel of an open, the redirect of a click, the page of an unsubscribe or a confirmation. HEAD counts nothing.",
				other: ordered{
					{"200", ordered{{"description", "The open pixel, or a page with one button."}, {"content", ordered{{"image/gif", ordered{}}, {"text/html", ordered{{"schema", ordered{{"type", "string"}}}}}}}}},
					{"302", plain("A click: on to where the link leads.", "", "", ordered{header("Location", "Where to.", "https://example.com/sale")})},
					page("404", "No link of ours."), page("503", "Not just now."),
				}},
			{method: "POST", path: "/t/{token}", id: "confirmLink", summary: "Unsubscribe or confirm", about: "The button of the page, or a mail program's one-click unsubscribe (RFC 8058).",
				body: object(opt("List-Unsubscribe", text("One-Click", "Sent by mail programs."))), optional: true, media: "application/x-www-form-urlencoded",
				other: ordered{page("200", "Done."), page("404", "No link of ours."),
					{"405", plain("A link that takes GET alone.", "text/html", "", ordered{header("Allow", "The methods that the link takes.", "GET, HEAD")})},
					page("413", "Too much was sent."), page("503", "Not just now.")}},
		}}
}

func inboundPublic() group {
	result := named("InboundResult", object(
		req("events", count(2, "Events in the report.")),
		req("recorded", count(2, "Those that concern a message or contact of the account; the same again changes nothing.")),
		req("ignored", count(0, "")),
	))
	envelope := (&operation{data: result}).envelope()
	answers := ordered{{"200", response("Taken. The message says so when nothing in it was understood.", envelope, nil)}}
	for _, p := range problems {
		switch p.status {
		case "400", "401", "413", "415", "500", "503":
			message, about := p.message, p.about
			if p.status == "401" {
				message, about = "the request is not authenticated: set the provider's keys with PUT /console/api/v1/inbound-providers/{provider}, and call the address that it answers", "Who calls does not prove who they are; the answer is the same for all cases."
			}
			var headers ordered
			if p.status == "503" {
				headers = ordered{retryAfter}
			}
			answers = append(answers, member{p.status, response(about, failureConsole, headers, member{"answer", failureSample(message)})})
		}
	}
	report := oneOf(list(inboundEvent, "").entries(0, 10000), inboundEvent).says("generic: events, signed as Standard Webhooks with one of the secrets. Other providers send their own forms. At most 1 MiB.")
	return group{surface: surfacePublic, tag: "Reports of providers", title: "Reports of providers",
		about: "Bounces, complaints, deliveries, opens, clicks and unsubscribes, from who delivers messages. Each provider proves itself in its own way; the console sets the keys.", ops: []operation{
			{method: "POST", path: "/inbound/{account}/{provider}", id: "inboundReport", summary: "Report what became of messages", body: report, data: result, other: answers,
				query: []parameter{query("secret", text("a-long-enough-secret", "postmark, ses: the secret, where they do not sign."))},
				header: []parameter{query("webhook-id", text("msg_1", "generic: id of the report.")), query("webhook-timestamp", text("1769850000", "generic: when it was signed, in Unix seconds.")),
					query("webhook-signature", text("v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=", "generic: the signature."))}},
			{method: "POST", path: "/inbound/{account}/mail/{token}", id: "inboundMail", summary: "Hand over a bounce or a complaint as mail", about: "For mail servers: a DSN, an ARF report or an unsubscribe mail, as it came. The provider `mail` with the token in `Authorization` does the same.",
				body: text("From: MAILER-DAEMON@example.com\r\n\r\n…", "The mail, of at most 1 MiB."), media: "message/rfc822", data: result, other: answers},
		}}
}

var inboundEvent = named("InboundEvent", object(
	req("type", word("", "bounce", "complaint", "delivery", "open", "click", "unsubscribe")),
	opt("send_id", text("3f9a7c2e5d1b8046-1", "The message; this, `message_id` or `recipient` must be given.")),
	opt("message_id", text("<3f9a.1@muster.local>", "The message, by its Message-ID.")),
	opt("recipient", text("ann@example.com", "The address.")),
	opt("hard", boolean(false, "Of a bounce: whether it is for good.")),
	opt("status", text("5.1.1", "Of a bounce: the enhanced status code.")),
	opt("reason", text("no such user", "Of a bounce.")),
	opt("url", text("https://example.com/sale", "Of a click.")),
	opt("user_agent", text("Mozilla/5.0", "Of opens and clicks.")), opt("ip", text("192.0.2.7", "Of opens and clicks.")), opt("machine", boolean(false, "Whether a machine opened or clicked ahead.")),
	opt("timestamp", moment("2026-01-31T09:00:00Z", "RFC 3339, or Unix milliseconds.")),
	opt("id", text("evt-1", "Makes a repeat harmless; left out, the content does.")),
))

func operationsPublic() group {
	line := func(status, about, example string) member {
		var headers ordered
		if status == "503" {
			headers = ordered{retryAfter}
		}
		return member{status, plain(about, "text/plain", example, headers)}
	}
	return group{surface: surfacePublic, tag: "Operations", title: "Operations", about: "Health, metrics, and this reference.", ops: []operation{
		{method: "GET", path: "/healthz", id: "healthz", summary: "Is the process alive?", other: ordered{line("200", "It is.", "alive\n")}},
		{method: "GET", path: "/readyz", id: "readyz", summary: "May requests be sent here?", other: ordered{line("200", "They may.", "ready\n"), line("503", "Starting, stopping, or failed; the text says which.", "starting\n")}},
		{method: "GET", path: "/metrics", id: "metrics", summary: "Metrics for Prometheus", other: ordered{line("200", "In the text format of Prometheus.", "muster_ready 1\n")}},
		{method: "GET", path: "/openapi.json", id: "openapi", summary: "This document", about: "With an ETag; `If-None-Match` is answered 304.",
			header: []parameter{query("If-None-Match", text(`"3f9a7c2e"`, "The ETag that is known."))},
			other: ordered{{"200", ordered{{"description", "OpenAPI 3.1."}, {"headers", ordered{header("ETag", "Changes with the document.", `"3f9a7c2e"`)}}, {"content", ordered{{"application/json", ordered{{"schema", ordered{{"type", "object"}}}}}}}}},
				{"304", plain("Unchanged.", "", "", nil)}}},
		{method: "GET", path: "/reference", id: "reference", summary: "The reference as a page", other: ordered{{"200", plain("For a browser; it loads nothing from elsewhere.", "text/html", "", nil)}}},
	}}
}
