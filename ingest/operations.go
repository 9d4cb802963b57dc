package ingest

import (
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
)

// served is an operation with what answers it.
type served struct {
	handle fasthttp.RequestHandler
	operation.Operation
}

// Register adds the operations. any is that of a router: the handlers answer other
// methods themselves, in their own form.
func (h *Handler) Register(any func(path string, handler fasthttp.RequestHandler)) {
	_, list := h.operations()
	for _, x := range list {
		any(operation.SurfaceB.Prefix+x.Path, x.handle)
	}
}

// Operations lists what Register adds. It needs no options: those of a zero Handler
// are the same.
func (h *Handler) Operations() []operation.Group {
	g, list := h.operations()
	for i := range list {
		g.Operations = append(g.Operations, list[i].Operation)
	}
	return []operation.Group{g}
}

const warningExample = "user.phone not added: the profile may have no more identifiers; see its conflicts"

// operations are the calls about events.
func (h *Handler) operations() (operation.Group, []served) {
	about := "The profile is found by `email`, then `external_id`, then `phone`; if none is on file it is made. An event sent again with the same `idempotency_key` counts once and is answered alike, for at least 72 hours."
	result := shape.Named("EventResult", shape.Object(
		shape.Req("success", shape.Boolean(true, "Whether the event is recorded.")),
		shape.Req("profile_id", shape.ProfileID("The profile it was recorded against; empty on failure.")),
		shape.Req("error", shape.Text("event_type is missing; name what happened, such as \"item_viewed\"", "What is wrong; null on success.").OrNull().Like(nil)),
		shape.Opt("warning", shape.Text(warningExample, "What of a recorded event was not taken over: identifiers beyond those that a profile may have, which stand among its `conflicts`; placeholders; fields that `user` does not have, unless the settings ignore unknown fields. Or that the event was not recorded, since its idempotency key was used for another person's, or since there is an order with its `order_id`. Or what kept an order, a refund or a cart from counting as one. Absent when there is nothing to tell.")),
	))
	batch := func(more ...shape.Field) *shape.Schema {
		return shape.Object(append([]shape.Field{
			shape.Req("success", shape.Boolean(true, "Whether all events are recorded.")),
			shape.Req("accepted", shape.Count(1, "How many are recorded, or were before.")),
			shape.Req("total", shape.Count(1, "How many were sent.")),
			shape.Req("results", shape.List(result, "One for each event, in order.")),
		}, more...)...)
	}
	denied := shape.Opt("error", shape.Text("invalid app credentials; check the headers X-App-Id and X-App-Secret", "Present when the credentials do not hold."))
	return operation.Group{Surface: operation.SurfaceB, Tag: "Events", Title: "Events", About: about}, []served{
		{h.Event, operation.Operation{Method: "POST", Path: "/events", ID: "recordEvent", Summary: "Record an event", Body: eventShape, Data: result}},
		{h.Batch, operation.Operation{Method: "POST", Path: "/events/batch", ID: "recordEvents", Summary: "Record many events",
			About: "A bad event fails alone; the others are recorded.",
			Body:  shape.Object(shape.Req("events", shape.List(eventShape, "At most 10,000, unless the server is set otherwise; a few hundred are advised.").Entries(0, 10000))), Data: batch(denied)}},
		{h.Import, operation.Operation{Method: "POST", Path: "/events/import", ID: "importEvents", Summary: "Import past events",
			About: "For files of events that happened before. Rows are numbered; the rows before `next_row` of an answer are on record or refused, so that an import can be resumed and repeated. Sent again, a refused row is tried again, and one that is on record is not stored twice. A request without `events` stores nothing and says which rows are refused. The command `muster import` does it all.",
			Body: shape.Object(
				shape.Req("file", shape.Text("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "SHA-256 of the file's content, in hexadecimal: names the import.").With("pattern", "^[0-9a-fA-F]{64}$")),
				shape.Req("first_row", shape.Count(0, "Number of the first row in `events`, from 0.")),
				shape.Opt("trigger_flows", shape.Boolean(false, "Whether the events may start flows.").Default(false)),
				shape.Req("events", shape.List(bareEvent().Plus(shape.Req("timestamp", shape.Moment("2025-05-31T12:30:00Z", "When it happened: RFC 3339, or whole Unix milliseconds. Not in the future."))), "").Entries(0, 10000)),
			), Data: batch(shape.Req("next_row", shape.Count(1, "The row to continue with.")), shape.Opt("refused_rows", shape.List(shape.Count(7, ""), "Rows before `next_row` that were refused and can be sent again, from `first_row` on, at most 10,000. Present when `events` is empty.")), shape.Req("error", shape.Text("", "Why the import as a whole was refused; null otherwise.").OrNull()))}},
	}
}

// eventShape is an event as it is sent when it happens, or soon after.
var eventShape = shape.Named("Event", bareEvent().Plus(EventTime()))

// EventTime is the time of an event that need not be imported.
func EventTime() shape.Field {
	return shape.Opt("timestamp", shape.Moment("2025-05-31T12:30:00Z", "When it happened: RFC 3339, or whole Unix milliseconds. Not in the future, and at most `max_event_age_hours` of the settings ago (720). Left out, it happens when it arrives. "+
		"Windows count it by this time; flows' event triggers take it only up to `flow_event_age_hours` (24)."))
}

func bareEvent() *shape.Schema {
	return shape.Object(
		shape.Req("event_type", shape.Text("item_purchased", "What happened: a key in snake case.").Bytes(1, 128).With("pattern", "^[a-z0-9]+(_[a-z0-9]+)*$")),
		shape.Req("user", shape.Named("EventUser", shape.Object(
			shape.Opt("email", shape.Text("ann@example.com", "").Bytes(0, 512).OrNull()),
			shape.Opt("external_id", shape.Text("42", "The caller's own identifier.").Bytes(0, 512).OrNull()),
			shape.Opt("phone", shape.Text("+491701234567", "").Bytes(0, 512).OrNull()),
			shape.Opt("first_name", shape.Text("Ann", "").Bytes(0, 512).OrNull()),
			shape.Opt("last_name", shape.Text("Lee", "").Bytes(0, 512).OrNull()),
			shape.Opt("geo", shape.Geo("Updates the profile. At most 64 KiB.").OrNull()),
			shape.Opt("attributes", shape.Attributes("Updates the profile. At most 64 KiB.").OrNull()),
		).Says("Who did it: at least one of `email`, `external_id` and `phone`, and one that is not a placeholder such as \"null\".").With("minProperties", 1))),
		shape.Opt("properties", shape.FreeObject(shape.Pairs("value", 79.9, "currency", "EUR", "product_id", "sku-7"), "What the event says. At most 64 KiB, and 32 levels deep.").OrNull()),
		shape.Opt("idempotency_key", shape.Text("order-1001", "Makes a repeat harmless.").Bytes(0, 256).OrNull()),
	)
}
