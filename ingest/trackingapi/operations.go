package trackingapi

import (
	"strconv"

	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
)

// Operations describes the calls that [Handler.Before] answers: those that programs without
// an SDK would make. The other paths of the SDKs mean the same.
func Operations() []operation.Group {
	text := func(name, example, about string) shape.Field {
		return shape.Opt(name, shape.Text(example, about))
	}
	user := text("userId", "user-42", "Who it is: the external id, or the e-mail where the source says so (`user_id`). A number counts as its decimal text.")
	device := text("anonymousId", "507f191e-8b1c-4f0a-9a3e-1c2d3e4f5a6b", "What was made up for the device. An event has it or `userId`, or both.")
	traits := shape.Opt("traits", shape.FreeObject(shape.Pairs("email", "ann@example.com", "firstName", "Ann", "plan", "pro"), "What is known of the person. `email` and `phone` identify; names and `address` update the profile, and all else its attributes. The latest call stands, by its time; null takes away. An object is one value."))
	properties := shape.Opt("properties", shape.FreeObject(shape.Pairs("sku", "sku-7", "value", 79.9), "What the event says. At most 64 KiB."))
	common := []shape.Field{
		text("messageId", "ajs-next-1717158600000-7", "Makes a repeat harmless: the server knows it for at least 72 hours."),
		text("timestamp", "2025-05-31T12:30:00.000Z", "When it happened by the client's clock: ISO 8601, or seconds or milliseconds since 1970. Left out, or where it cannot be read, the event happens when it arrives."),
		text("sentAt", "2025-05-31T12:30:02.000Z", "When the call is sent by the same clock. The time in between is what counts, so that a wrong clock does no harm."),
		shape.Opt("context", shape.FreeObject(shape.Pairs("page", shape.Pairs("path", "/shop")), "Where it happened: `page`, `campaign`, `traits` and whatever the SDK adds.")),
		text("writeKey", "wk_YOUR_KEY", "The write key, where it is not in the header."),
	}
	fields := func(more ...shape.Field) *shape.Schema {
		return shape.Object(append(more, common...)...)
	}
	event := text("event", "Product Viewed", "What happened. Its snake case is the event type.")
	name, category := text("name", "Pricing", ""), text("category", "Docs", "")
	group := text("groupId", "acme", "The group that the person belongs to, which becomes the attribute `group_id`.")
	previous := text("previousId", "user-7", "Whom the person was called before.")
	pair := shape.Opt("mergeProperties", shape.List(shape.Object(
		shape.Req("type", shape.Word("The kind of identifier.", "email", "mobile", "user_id", "anonymous_id")), shape.Req("value", shape.Text("ann@example.com", "")),
	), "Two identifiers of one person."))
	call := shape.Object(append([]shape.Field{
		shape.Req("type", shape.Word("The call.", "track", "identify", "page", "screen", "group", "alias", "merge")),
		user, device, event, name, category, properties, traits, group, previous, pair,
	}, common...)...)
	post := func(path, id, summary, about string, body *shape.Schema) operation.Operation {
		return operation.Operation{Method: "POST", Path: path, ID: id, Summary: summary, About: about, Body: body, Other: answers(accepts)}
	}
	return []operation.Group{{
		Surface: operation.SurfaceTracking, Tag: "Tracking", Title: "Calls of SDKs",
		About: "What the SDKs of Segment, RudderStack and PostHog send when their host name is changed. `/batch`, `/v1/import` and the paths of one letter (`/v1/b t i p s g a`) mean the same as those here, and so do PostHog's `/capture/`, `/i/v0/e/` and `/e/`.",
		Operations: []operation.Operation{
			post("/v1/batch", "sendCalls", "Send many calls", "A bad event fails alone; the others are recorded.", shape.Object(
				shape.Req("batch", shape.List(shape.Named("Call", call), "With a browser's key at most 2,500 events and 500 KiB, and 32 KiB an event.")),
				shape.Opt("context", shape.FreeObject(shape.Pairs("library", shape.Pairs("name", "shop")), "Is under that of each event.")),
				text("sentAt", "2025-05-31T12:30:02.000Z", "When the batch is sent by the client's clock."),
				text("writeKey", "wk_YOUR_KEY", "The write key, where it is not in the header."),
			)),
			post("/v1/track", "trackCall", "Say what a person did", "", fields(user, device, event, properties)),
			post("/v1/identify", "identifyCall", "Say who a person is", "", fields(user, device, traits)),
			post("/v1/page", "pageCall", "Say which page a person saw", "The event `page_viewed`.", fields(user, device, name, category, properties)),
			post("/v1/screen", "screenCall", "Say which screen of an app a person saw", "The event `screen_viewed`.", fields(user, device, name, category, properties)),
			post("/v1/group", "groupCall", "Say which group a person belongs to", "The event `group_identified`.", fields(user, device, group, traits)),
			post("/v1/alias", "aliasCall", "Say whom a person was called before", "Both names are one person from then on, unless they have different e-mails. Server keys only.", fields(user, previous)),
			post("/v1/merge", "mergeCall", "Say that two identifiers are one person's", "RudderStack's call. Server keys only.", fields(pair)),
			post("/batch/", "sendPostHog", "Send many events of PostHog's", "", shape.Object(
				text("api_key", "wk_YOUR_KEY", "The write key."),
				text("sent_at", "2025-05-31T12:30:02.000Z", "When the batch is sent by the client's clock."),
				shape.Req("batch", shape.List(shape.Object(
					shape.Req("event", shape.Text("item viewed", "What happened; `$identify`, `$set`, `$pageview`, `$screen` and `$create_alias` are calls of their own.")),
					text("distinct_id", "user-42", "Who it is, or what was made up for the device."),
					text("uuid", "018f3c5e-7a1b-7c2d-9e3f-4a5b6c7d8e9f", "Makes a repeat harmless."),
					text("timestamp", "2025-05-31T12:30:00.000Z", "When it happened by the client's clock."),
					properties,
				), "")),
			)),
			{Method: "GET", Path: "/v1/projects/{write_key}/settings", ID: "sdkSettings", Summary: "Settings of analytics.js", About: "Says that everything is sent here, so that a page needs `AnalyticsBrowser.load({writeKey, cdnURL})` alone.", Other: answers(settings)},
		},
	}}
}

var (
	accepts = shape.Object(
		shape.Req("success", shape.Boolean(true, "The request was understood, and what was taken of it is durable and applied.")),
		shape.Opt("rejected_count", shape.Count(1, "How many events were refused; absent where none was.")),
		shape.Opt("rejected", shape.List(shape.Object(
			shape.Req("index", shape.Count(0, "The place of the event in the batch.")),
			shape.Req("messageId", shape.Text("ajs-next-1717158600000-7", "").OrNull()),
			shape.Req("code", shape.Word("Why it was refused.", codeInvalidEvent, codeTooLarge, codeNotAllowed, codeInvalidKey, codeDisabled, codeOrigin, codeTooManyTypes, codeRefused)),
			shape.Req("message", shape.Text("event is missing; name what happened, such as \"Item Viewed\"", "What to change.")),
		), "The first 1,000 of them.")),
	)
	settings = shape.Object(shape.Req("integrations", shape.FreeObject(shape.Pairs("Segment.io", shape.Pairs("apiHost", "muster.example.com/v1")), "Where analytics.js sends to."))).Open()
	fails    = shape.Object(
		shape.Req("success", shape.Boolean(false, "Nothing was stored.")),
		shape.Req("code", shape.Text(codeInvalidKey, "Why, for programs.")),
		shape.Req("message", shape.Text(errInvalidKey.message, "Why, and what to do.")),
	)
)

// answers are those of a call, with what it answers where it succeeds.
func answers(good *shape.Schema) shape.Ordered {
	out := shape.Pairs("200", operation.Response("Taken. SDKs look at the status alone.", good, nil))
	for _, x := range []struct {
		status int
		about  string
	}{
		{400, "No JSON, or too much of it."}, {401, "The write key is not one, or its source is disabled."}, {403, "The page's origin is not allowed."},
		{405, "The path takes another method."}, {408, "The body did not arrive in time."}, {429, "The client's address sends too much with browser keys."}, {503, "Not just now; nothing was stored unless the text says otherwise."},
	} {
		var headers shape.Ordered
		switch x.status {
		case 429, 503:
			headers = shape.Ordered{operation.RetryAfter}
		case 405:
			headers = shape.Ordered{operation.Header("Allow", "The methods that the path takes.", "POST, OPTIONS")}
		}
		out = append(out, shape.Pair(strconv.Itoa(x.status), operation.Response(x.about, fails, headers)))
	}
	return out
}
