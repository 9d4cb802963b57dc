package shapes

import "github.com/musterhq/muster/api/shape"

// CampaignLinks are the links of a campaign with their clicks.
func CampaignLinks() *shape.Schema {
	return shape.List(shape.Object(shape.Req("url", shape.Text("https://example.com/sale", "")), shape.Req("clicks", shape.Count(130, ""))), "Links of the message.")
}

// CampaignABTest is how the A/B test of a campaign goes.
func CampaignABTest() *shape.Schema {
	return shape.Object(
		shape.Req("metric", shape.Word("", "opens", "clicks")),
		shape.Req("variants", shape.List(shape.Object(
			shape.Req("variant", shape.Count(0, "Its place in `variants` of the request, from 0.")),
			shape.Req("emails_sent", shape.Count(120, "")),
			shape.Req("unique_opens", shape.Count(60, "")),
			shape.Req("unique_clicks", shape.Count(11, "")),
		), "")),
		shape.Req("winner", shape.Count(1, "Place of the winning variant, null before the choice.").OrNull()),
		shape.Req("ends_at", shape.Instant("When the choice is made.").OrNull()),
	).Says("Null without an A/B test.").OrNull()
}
