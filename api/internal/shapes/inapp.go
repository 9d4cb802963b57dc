package shapes

import (
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging/card"
)

// inAppMessage are the fields of a message of an inbox.
var inAppMessage = []shape.Field{
	shape.Req("id", shape.Text("01000000070000002a60000000000000", "Of the message in this inbox.")),
	shape.Req("title", shape.Text("Our sale begins", "Plain text.")),
	shape.Req("body", shape.Text("Today only.", "Plain text; a line break begins another line.")),
	shape.Req("image", shape.Text("https://example.com/sale.jpg", "An https address.").OrNull()),
	shape.Req("link", shape.Text("https://example.com/sale", "What a click opens: a page, or a place in an app.").OrNull()),
	shape.Req("display", InAppDisplay("How it is shown, beside the inbox.")),
	shape.Req("priority", shape.Integer(0, "From 0 to 10; higher ones come first.")),
	shape.Req("created_at", shape.Instant("")),
	shape.Req("expires_at", shape.Instant("When it leaves the inbox.")),
	shape.Req("seen_at", shape.Instant("").OrNull()),
	shape.Req("clicked_at", shape.Instant("").OrNull()),
	shape.Req("dismissed_at", shape.Instant("").OrNull()),
}

// InAppDisplay is how an in-app message is shown.
func InAppDisplay(about string) *shape.Schema { return shape.Word(about, card.Displays...) }

// InAppMessage is a message of an inbox as pages get it.
func InAppMessage() *shape.Schema { return shape.Object(inAppMessage...) }

// InboxMessage is a message of an inbox with what sent it.
var InboxMessage = shape.Named("InboxMessage", shape.Object(append(append([]shape.Field{}, inAppMessage...),
	shape.Req("campaign_id", shape.CampaignID("Null where a flow sent it.").OrNull()),
	shape.Req("flow_id", shape.Text("flw_3f9a7c2e5d1b8046", "Null where a campaign sent it.").OrNull()),
	shape.Req("step_id", shape.Text("hello", "").OrNull()),
)...))

func inAppOptions() *shape.Schema {
	return shape.Object(
		shape.Req("display", InAppDisplay("")),
		shape.Req("image", shape.Text("https://example.com/sale.jpg", "Empty for none.")),
		shape.Req("priority", shape.Integer(0, "")),
		shape.Req("ttl_hours", shape.Integer(720, "")),
	)
}
