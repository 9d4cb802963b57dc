package openapi

import "strings"

func flowsA() group {
	const none = "there is no flow with this id"
	return group{surface: surfaceA, tag: "Flows", title: "Flows", about: "Automation: what happens, one after the other, with each person whom something brings into a flow. Flows are made in the console.",
		ops: []operation{
			{method: "GET", path: "/custom-flows", permission: "flows:read", id: "listFlows", summary: "List flows", about: "The oldest first. A page is shorter than `limit` where definitions are large.", data: list(flowRecord, ""), paged: true},
			{method: "GET", path: "/custom-flows/{id}", permission: "flows:read", id: "getFlow", summary: "Read a flow", data: flowRecord, fails: []string{none}},
			{method: "PATCH", path: "/custom-flows/{id}", permission: "flows:write", id: "setFlowStatus", summary: "Pause or resume a flow",
				about: "The body has the status and nothing else: any other field is refused, and nothing changes.", body: flowStatus(), data: flowRecord,
				fails: []string{"name must not be given: this call changes nothing but the status; to change what a flow does, duplicate it, change the copy and publish that"}},
			{method: "POST", path: "/custom-flows/{id}/pause", permission: "flows:write", id: "pauseFlow", summary: "Pause a flow",
				about: "Nobody is enrolled and nothing advances; who is in it stays where he is. A flow that is paused stays as it is.", data: flowRecord, fails: []string{"the flow is a draft; only a flow that was published can be paused"}},
			{method: "POST", path: "/custom-flows/{id}/resume", permission: "flows:write", id: "resumeFlow", summary: "Resume a flow",
				about: "People go on where they stopped. Refused while the flow lacks something, which the message lists, or while the account has no e-mail credits. A flow that is live stays as it is.", data: flowRecord,
				fails: []string{"the flow is not complete: steps[1] (welcome): sender cannot be used: the domain shop.example is not verified; add it to the sender domains and publish its DNS records",
					"the account is out of e-mail credits; top up and try again"}},
			{method: "PATCH", path: "/custom-flows/{id}/toggle", permission: "flows:write", id: "toggleFlow", summary: "Pause a live flow, resume a paused one", data: flowRecord, fails: []string{"the flow is a draft; publish it first"}},
			{method: "POST", path: "/custom-flows/{id}/duplicate", permission: "flows:write", id: "duplicateFlow", summary: "Copy a flow to a draft", about: "The source stays as it is.", data: flowRecord, fails: []string{none}},
			{method: "POST", path: "/custom-flows/{id}/trigger", permission: "flows:write", id: "triggerFlow", summary: "Enrol a contact", about: "In a live flow whose trigger is `api`.",
				body: flowTrigger(), data: flowTriggered, fails: []string{"no contact has these identifiers; create it first"}},
		}}
}

func flowsConsole() group {
	g := group{surface: surfaceConsole, tag: "Console: flows", title: "Flows", about: "Automation: drafts, their publication, and who is in a flow.",
		ops: []operation{
			{method: "GET", path: "/flows", permission: "flows:read", id: "consoleListFlows", summary: "List flows", about: "The oldest first. A page is shorter than `limit` where definitions are large.", data: list(flowRecord, ""), paged: true},
			{method: "POST", path: "/flows", permission: "flows:write", id: "createFlow", summary: "Create a draft", about: "A draft may lack anything but a name.", body: flowDefinition(), data: flowRecord},
			{method: "GET", path: "/flows/{id}", permission: "flows:read", id: "consoleGetFlow", summary: "Read a flow", data: flowRecord},
			{method: "PUT", path: "/flows/{id}", permission: "flows:write", id: "updateFlow", summary: "Replace a draft", about: "What was published is locked: duplicate it, change the copy and publish that.", body: flowDefinition(), data: flowRecord, also: []int{409}},
			{method: "PATCH", path: "/flows/{id}", permission: "flows:write", id: "consoleSetFlowStatus", summary: "Pause or resume a flow", body: flowStatus(), data: flowRecord, also: []int{409}},
			{method: "DELETE", path: "/flows/{id}", permission: "flows:write", id: "deleteFlow", summary: "Delete a flow", about: "With who was in it. Refused while it is live.", also: []int{409}},
			{method: "GET", path: "/flows/{id}/validate", permission: "flows:read", id: "validateFlow", summary: "What keeps a flow from going live",
				data: object(req("valid", boolean(false, "Whether nothing does.")), req("faults", list(object(
					req("step", text("welcome", "Id of the step; null for the flow itself.").orNull()), req("path", text("steps[0].subject", "JSON path of what is at fault; empty for what the definition does not have.")),
					req("message", text("is missing", "Continues a sentence that begins with the path.")),
				), "In the order of the definition.")))},
			{method: "POST", path: "/flows/{id}/publish", permission: "flows:write", id: "publishFlow", summary: "Publish a draft",
				about: "Answers when the flow is live, or after 30 seconds, while the conditions of its steps are still being built; it then goes live by itself. Webhooks to private addresses are refused, unless the server was started with `--allow-private-webhooks`.", data: flowRecord, also: []int{400, 409}},
			{method: "POST", path: "/flows/{id}/pause", permission: "flows:write", id: "consolePauseFlow", summary: "Pause a flow", data: flowRecord, also: []int{409}},
			{method: "POST", path: "/flows/{id}/resume", permission: "flows:write", id: "consoleResumeFlow", summary: "Resume a flow", data: flowRecord, also: []int{400, 409}},
			{method: "PATCH", path: "/flows/{id}/toggle", permission: "flows:write", id: "consoleToggleFlow", summary: "Pause a live flow, resume a paused one", data: flowRecord, also: []int{400, 409}},
			{method: "POST", path: "/flows/{id}/duplicate", permission: "flows:write", id: "consoleDuplicateFlow", summary: "Copy a flow to a draft", data: flowRecord, also: []int{409}},
			{method: "POST", path: "/flows/{id}/trigger", permission: "flows:write", id: "consoleTriggerFlow", summary: "Enrol a contact", about: "In a live flow whose trigger is `api`.", body: flowTrigger(), data: flowTriggered, also: []int{409}},
			{method: "GET", path: "/flows/{id}/enrolments", permission: "flows:read", id: "listEnrolments", summary: "List who is or was in a flow",
				about: "In the order in which profiles were made; of a profile that was in it several times the newest last.",
				query: append(pageQuery(), query("status", word("Which.", "all", "in_progress").def("all"))),
				data:  object(req("enrolments", list(enrolment, "")), req("next", nextCursor.orNull()))},
			{method: "GET", path: "/flows/{id}/enrolments/{profile}", permission: "flows:read", id: "getEnrolments", summary: "A profile's ways through a flow", about: "The newest last; of those that have ended the newest ten.",
				data: object(req("enrolments", list(enrolment.plus(req("path", list(object(
					req("id", text("welcome", "Id of the step.")), req("type", stepType()), req("at", instant("When the profile came there.")),
					req("result", stepResult("What became of it; `pending` while it lasts.")), req("branch", count(0, "Index of the branch that a split chose; null for other steps.").orNull()),
					req("reason", text("connection refused", "Why the step failed, 200 bytes at most; null for other results, and for webhooks that failed before reasons were kept.").orNull()),
				), "In the order in which the profile came to them."))), "")))},
		}}
	for i := range g.ops {
		if op := &g.ops[i]; op.id == "publishFlow" {
			op.other = ordered{{"200", response("It is live.", op.envelope(), nil)}, {"202", response("Its conditions are still being built.", op.envelope(), nil)}}
		}
	}
	return g
}

func flowID(about string) *schema { return text("flw_0d9b6e3a7c5f4812a4c1e8d7b2f69350", about) }

func stepType() *schema {
	return word("", "email", "sms", "wait", "condition", "split", "tag", "update_contact", "webhook", "exit")
}

func stepResult(about string) *schema {
	return word(about, "done", "pending", "queued", "yes", "no", "branch", "delivered", "failed", "skipped_no_address", "skipped_not_subscribed", "skipped_blocked", "refused", "exited")
}

func flowStatus() *schema {
	return object(req("status", word("", "paused", "live")))
}

func flowTrigger() *schema {
	return object(
		opt("email", text("ann@example.com", "Whom to enrol; the first of these that is on file decides.").bytes(0, 512)),
		opt("external_id", text("42", "").bytes(0, 512)), opt("phone", text("+491701234567", "").bytes(0, 512)),
		opt("data", freeObject(ordered{{"order", "A-7"}}, "Behind the merge tags `event.…`; at most 16 KiB.")),
		opt("idempotency_key", text("order-A-7", "Makes a repeat harmless: it gets the first answer.").bytes(0, 256)),
	)
}

var flowTriggered = object(req("profile_id", profileID("Who was enrolled.")), req("enrolled", boolean(true, "False for a repeat, which has enrolled before.")))

func flowReentry() *schema {
	return word("Whether somebody may go through the flow again.", "once", "after_exit")
}

func flowDefinition() *schema {
	return object(
		req("name", text("Welcome", "").bytes(1, 200)),
		opt("trigger", trigger().orNull()),
		opt("reentry", flowReentry().def("once")),
		opt("steps", list(step, "The first is the entry.").entries(0, 200)),
	)
}

// kinds are the fields of each type of trigger or step, told apart by type.
func kind(of, name, about string, fields ...field) *schema {
	for word := range strings.SplitSeq(name, "_") {
		of += strings.ToUpper(word[:1]) + word[1:]
	}
	return named(of, object(append([]field{req("type", only(of+"Type", name))}, fields...)...).strict().says(about))
}

func trigger() *schema {
	return named("FlowTrigger", oneOf(
		kind("FlowTrigger", "segment_entered", "Who is in a segment when the flow is published, and then whoever enters.", opt("segment_id", segmentID(""))),
		kind("FlowTrigger", "segment_exited", "Who leaves a segment.", opt("segment_id", segmentID(""))),
		kind("FlowTrigger", "list_joined", "Who joins a list.", opt("list_id", listID(""))),
		kind("FlowTrigger", "event", "Who performs an event.", opt("event", text("item_purchased", "The `event_type`.")),
			opt("where", list(freeObject(ordered{{"property", "category"}, {"op", "="}, {"value", "shoes"}}, "A filter, as those of segments."), "Filters that must all hold.").entries(0, 20))),
		kind("FlowTrigger", "date", "Who reaches a date.", opt("field", text("attributes.renewal", "Where the date is: a path below `attributes.` or `geo.`, or `created_at`.")),
			opt("offset_days", integer(-3, "Days after it; negative is before.").between(-3650, 3650).def(0)), opt("at", text("09:00", "Local time.").def("00:00")),
			opt("repeat", word("", "once", "yearly").def("once")), opt("timezone", text("Europe/Berlin", "").def("UTC"))),
		kind("FlowTrigger", "api", "Whom a call enrols."),
	).by("type").says("What brings people into the flow. Drafts may lack what is not required here.").like(ordered{{"type", "segment_entered"}, {"segment_id", "seg_9c1f0e7ad24b4f6c8f3b5a2d7e60c481"}}))
}

// step is a step of a flow.
var step = func() *schema {
	next := func(about string) *schema {
		return text("later", about+" Id of a step; null is the end.").orNull()
	}
	of := func(name, about string, fields ...field) *schema {
		return kind("FlowStep", name, about, append([]field{req("id", text("welcome", "Unique in the flow.").bytes(1, 64))}, fields...)...)
	}
	on := func(name, about string, fields ...field) *schema {
		return of(name, about, append(fields, opt("next", next("What follows.")))...)
	}
	return named("FlowStep", oneOf(
		on("email", "Sends an e-mail: a template, or a subject and a body.", opt("template_id", templateID("")), opt("subject", text("Welcome {{first_name}}", "").bytes(0, 998)),
			opt("body", text("<p>Hello</p>", "HTML.")), opt("text", text("Hello", "Plain; made of the body when left out.")), opt("sender", text("shop@mail.example.com", "On a verified domain; the account's default when left out.")),
			opt("sender_name", text("Shop", "")), opt("reply_to", text("help@example.com", ""))),
		on("sms", "Sends a text message.", opt("text", text("Hello {{first_name}}", "").bytes(0, 4096))),
		on("wait", "Waits for a time, or until a local time.", opt("seconds", integer(86400, "").between(1, 100*365*86400)), opt("until", text("09:00", "A time of the day, or a day and a time.")), opt("timezone", text("Europe/Berlin", "").def("UTC"))),
		of("condition", "Goes on by whether somebody belongs to a segment's definition.", opt("if", definition), opt("yes", next("Where it holds.")), opt("no", next("Where it does not."))),
		of("split", "Sends people different ways, in proportion to weights.", opt("branches", list(named("FlowBranch", object(opt("weight", integer(1, "").between(1, 1000000)), opt("next", next(""))).strict()), "").entries(0, 20))),
		on("tag", "Adds and removes tags.", opt("add", list(text("customer", ""), "").entries(0, 50)), opt("remove", list(text("lead", ""), "").entries(0, 50))),
		on("update_contact", "Sets fields; null removes.", opt("set", freeObject(ordered{{"attributes.plan", "gold"}}, "`first_name`, `last_name`, and paths below `attributes.` and `geo.`"))),
		on("webhook", "Calls a URL.", opt("url", text("https://hooks.example.com/x", "").bytes(0, 2048)), opt("method", word("", "POST", "PUT", "PATCH", "GET", "DELETE").def("POST")),
			opt("headers", mapOf(text("k", ""), "").like(ordered{{"X-Key", "k"}})), opt("body", anything(ordered{{"email", "{{email}}"}}, "A text, an object or an array.")),
			opt("timeout_seconds", integer(10, "Of an attempt.").between(1, 30).def(10)), opt("attempts", integer(5, "").between(1, 10).def(5)), opt("on_failure", word("What happens when all attempts failed.", "continue", "exit").def("continue"))),
		of("exit", "Ends the way through the flow.", opt("next", next("None."))),
	).by("type").says("One step. Texts may have merge tags. Drafts may lack what is not required here.").like(ordered{{"id", "welcome"}, {"type", "email"}, {"subject", "Welcome"}, {"body", "<p>Hello</p>"}, {"next", nil}}))
}()

var flowCounts = named("FlowCounts", object(
	req("entered", count(120, "")), req("in_progress", count(40, "In the flow now.")), req("completed", count(70, "Reached the end.")), req("exited", count(10, "Left before.")),
	req("pending", count(0, "To be enrolled since the flow went live.")), req("loops_cut", count(0, "Enrolments that did not begin: too many started each other at one instant, or the service itself had caused 64 of the contact in that minute.")),
))

var stepCount = named("FlowStepCount", object(
	req("id", text("welcome", "Id of the step.")), req("type", stepType()), req("arrived", count(120, "")), req("at", count(0, "Are there now.")),
	req("results", mapOf(count(1, ""), "How often the step had each result.").like(ordered{{"queued", 118}, {"skipped_not_subscribed", 2}})),
))

var flowRecord = named("Flow", object(
	req("_id", flowID("Id of the flow.")), req("name", text("Welcome", "")), req("status", word("", "live", "draft", "paused")),
	req("trigger", trigger().orNull()), req("reentry", flowReentry()), req("steps", list(step, "")),
	req("publishing", boolean(false, "Whether it goes live as soon as the conditions of its steps are built.")), req("publish_error", text("", "Why it did not go live after all.").orNull()),
	req("paused_for", text("credits", "`credits` when the service paused it for want of them; null when somebody did.").orNull()),
	req("created_at", instant("")), req("updated_at", instant("When its content was changed last.")), req("published_at", instant("").orNull()),
	req("paused_at", instant("When it was last.").orNull()), req("resumed_at", instant("When it was last.").orNull()), req("copy_of", flowID("What it was duplicated from.").orNull()),
	req("counts", flowCounts), req("step_counts", list(stepCount, "In the order of the steps.")),
))

var enrolment = named("Enrolment", object(
	req("profile_id", profileID("")), req("number", integer(1, "Which of the profile's ways through the flow.").with("minimum", 1)),
	req("status", word("", "in_progress", "completed", "exited")),
	req("step", text("welcome", "Id of the step where it stands; null when it has ended.").orNull()), req("since", instant("When it came there.").orNull()),
	req("due", instant("When it goes on by itself; null while something else is waited for.").orNull()),
	req("started_at", instant("")), req("ended_at", instant("").orNull()), req("reason", word("Why it exited.", "exit_step", "webhook_failed", "merged").orNull()),
))

// Analytics of flows.

var flowMoves = named("FlowMoves", object(req("entered", count(12, "")), req("completed", count(7, "")), req("exited", count(1, ""))))

func flowLine(more ...field) *schema {
	return object(append([]field{req("flow_id", flowID("")), req("name", text("Welcome", "")), req("status", word("", "live", "draft", "paused")),
		req("counts", flowCounts), req("in_range", flowMoves)}, more...)...)
}

func flowSeries() *schema {
	return list(flowMoves.plus(spanStart()), "One entry for each span.")
}

func flowAnalytics() []operation {
	steps := list(stepCount.plus(
		req("messages", messageCounts.orNull()), req("series", list(messageCounts.plus(spanStart()), "Spans with messages.")),
	), "In the order of the definition; messages are those of the range, null for steps that send none.")
	return []operation{
		{method: "GET", path: "/analytics/flows/overview", permission: "analytics:read", id: "analyticsFlows", summary: "Flows", about: "Counts are since flows went live, of those there are; `in_range` and `series` also of those deleted since.", query: spanQuery(),
			data: object(req("range", timeRange), req("total", count(3, "Flows.")), req("draft", count(1, "")), req("live", count(2, "")), req("paused", count(0, "")),
				req("counts", flowCounts), req("in_range", flowMoves), req("series", flowSeries()), req("flows", list(flowLine(), "The oldest first.")))},
		{method: "GET", path: "/analytics/flows/{id}", permission: "analytics:read", id: "analyticsFlow", summary: "A flow and its steps", query: spanQuery(),
			data:  flowLine(req("range", timeRange), req("series", flowSeries()), req("steps", steps)),
			fails: []string{"there is no flow with this id"}},
	}
}
