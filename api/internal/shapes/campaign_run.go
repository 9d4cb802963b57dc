package shapes

import "github.com/musterhq/muster/api/shape"

// CampaignResumed is how often a campaign was interrupted.
func CampaignResumed() *shape.Schema {
	return shape.Count(0, "How often sending continued after a stop of the service.")
}

// CampaignRuns are the sends of a campaign.
func CampaignRuns() *shape.Schema {
	return shape.List(campaignRun, "Each send of the campaign with its own numbers, the oldest first. At most 51: the first, and the newest of the others.")
}

var campaignRun = shape.Named("CampaignRun", shape.Object(
	shape.Req("run", shape.Integer(1, "Number of the send, from 1.")),
	shape.Req("status", RunStatus()),
	shape.Req("list_id", shape.List(shape.ListID(""), "")),
	shape.Req("segment_ids", shape.List(shape.SegmentID(""), "")),
	shape.Req("template_id", shape.TemplateID("").OrNull()),
	shape.Req("total_members", shape.Count(1204, "People in the audience of this send.")),
	shape.Req("emails_sent", shape.Count(1187, "Messages handed over, of any channel.")),
	shape.Req("failed", shape.Count(0, "Messages that could not be handed over.")),
	shape.Req("skipped", Skipped()),
	shape.Req("delivered", shape.Count(1180, "")),
	shape.Req("unique_opens", shape.Count(512, "People who opened it.")),
	shape.Req("unique_clicks", shape.Count(101, "People who clicked.")),
	shape.Req("bounces", shape.Count(7, "")),
	shape.Req("complaints", shape.Count(0, "")),
	shape.Req("unsubscribes", shape.Count(3, "")),
	shape.Req("errors", shape.List(shape.Text("credits: no e-mail credits are left", ""), "What went wrong, the first 5.")),
	shape.Req("started_at", shape.Instant("").OrNull()),
	shape.Req("finished_at", shape.Instant("").OrNull()),
))
