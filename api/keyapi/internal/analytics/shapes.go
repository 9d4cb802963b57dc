package analytics

import (
	"slices"

	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver/campaigns"
)

func spanQueryShape() []operation.Parameter {
	return []operation.Parameter{
		operation.Query("from", shape.Text("2026-01-01", "Begin of the range, included: a date, or a date and a time with its zone. Default: 30 days before `to`.")),
		operation.Query("to", shape.Text("2026-02-01T00:00:00Z", "End of the range, not included. Default: now.")),
		operation.Query("granularity", shape.Word("Width of a span. At most 2,000 spans.", "day", "hour", "week", "month").Default("day")),
	}
}

func spanStartShape() shape.Field { return shape.Req("start", shape.Instant("Begin of the span.")) }

var timeRangeShape = shape.Named("TimeRange", shape.Object(
	shape.Req("from", shape.Instant("Begin, included.")), shape.Req("to", shape.Instant("End, not included.")),
	shape.Req("granularity", shape.Word("", "day", "hour", "week", "month")),
))

// rateShape is a rate of messages.
func rateShape(example float64, of string) *shape.Schema {
	return shape.Number(example, of+" Null when nothing was sent in the range, or more happened than was sent: then it is about messages of before.").Between(0, 1).OrNull()
}

var messageCountsShape = shape.Named("MessageCounts", shape.Object(
	shape.Req("sent", shape.Count(1187, "")), shape.Req("delivered", shape.Count(1180, "")), shape.Req("failed", shape.Count(2, "Not sent, for another reason than a bounce.")),
	shape.Req("opens", shape.Count(640, "")), shape.Req("unique_opens", shape.Count(512, "A person counts once.")),
	shape.Req("clicks", shape.Count(130, "")), shape.Req("unique_clicks", shape.Count(101, "")),
	shape.Req("bounces", shape.Count(7, "")), shape.Req("complaints", shape.Count(0, "")), shape.Req("unsubscribes", shape.Count(3, "By messages: their link, the mail program's button, a reply, or a call that names the campaign. Consent that a form, a call or an import withdraws is an event of the type `unsubscribed`.")),
	shape.Req("delivery_rate", rateShape(0.99, "Delivered of those sent.")), shape.Req("open_rate", rateShape(0.43, "Unique opens of those sent.")),
	shape.Req("click_rate", rateShape(0.08, "Unique clicks of those sent.")), shape.Req("bounce_rate", rateShape(0.006, "Bounces of those tried.")),
	shape.Req("complaint_rate", rateShape(0, "Complaints of those sent.")), shape.Req("unsubscribe_rate", rateShape(0.002, "People who unsubscribed by messages, of those sent.")),
	shape.Req("bounce_rate_healthy", shape.Boolean(true, "Below 2 %, or none; null on other channels than e-mail.").OrNull()), shape.Req("complaint_rate_healthy", shape.Boolean(true, "Below 0.1 %, or none; likewise.").OrNull()),
))

// ChannelShape is one of [Media].
func ChannelShape(about string) *shape.Schema { return shape.Word(about, Media...) }

// campaignChannelShape is one of [Media], or what a campaign of several channels has.
func campaignChannelShape(about string) *shape.Schema {
	return shape.Word(about, append(slices.Clone(Media), campaigns.MediumOmni)...)
}

var channelCountsShape = shape.Named("ChannelCounts", func() *shape.Schema {
	var fields []shape.Field
	for _, m := range Media {
		fields = append(fields, shape.Req(m, messageCountsShape))
	}
	return shape.Object(fields...)
}())

var webhookCountsShape = shape.Named("WebhookCounts", shape.Object(
	shape.Req("endpoints", shape.Count(2, "")), shape.Req("delivered", shape.Count(812, "Since the webhooks were made, as all of these.")),
	shape.Req("failures", shape.Count(3, "Attempts.")), shape.Req("dropped", shape.Count(0, "Events for which there was no room.")),
	shape.Req("waiting", shape.Count(1, "Now.")), shape.Req("dead_letters", shape.Count(0, "Now.")),
))

// Analytics of flows.

var flowMovesShape = shape.Named("FlowMoves", shape.Object(shape.Req("entered", shape.Count(12, "")), shape.Req("completed", shape.Count(7, "")), shape.Req("exited", shape.Count(1, ""))))

func flowLineShape(more ...shape.Field) *shape.Schema {
	return shape.Object(append([]shape.Field{shape.Req("flow_id", shape.FlowID("")), shape.Req("name", shape.Text("Welcome", "")), shape.Req("status", shape.Word("", "live", "draft", "paused")),
		shape.Req("counts", shapes.FlowCounts), shape.Req("in_range", flowMovesShape)}, more...)...)
}

func flowSeriesShape() *shape.Schema {
	return shape.List(flowMovesShape.Plus(spanStartShape()), "One entry for each span.")
}
