package keyapi

import "github.com/musterhq/muster/api/shape"

var pushSegmentShape = shape.Named("PushSegment", shape.Object(
	shape.Req("_id", shape.SegmentID("Id of the segment.")),
	shape.Req("name", shape.Text("Customers", "")),
	shape.Req("count", shape.Count(512, "Members, null while the segment is being built.").OrNull()),
	shape.Req("status", shape.Word("", "live", "building")),
))

var pushResultShape = shape.Named("PushResult", shape.Object(
	shape.Req("campaignId", shape.CampaignID("The row of push history; empty for a dry run.")),
	shape.Req("segmentName", shape.Text("Customers", "Name of the segment, empty without one.")),
	shape.Req("contactsInSegment", shape.Count(512, "")),
	shape.Req("reachableContacts", shape.Count(340, "Contacts with a device that may be sent to.")),
	shape.Req("total", shape.Count(402, "Devices addressed: a person with three devices counts three times.")),
	shape.Req("accepted", shape.Count(400, "Devices the push service took responsibility for.")),
	shape.Req("retired", shape.Count(2, "Devices the push service called dead; they are removed.")),
	shape.Req("dryRun", shape.Boolean(false, "")),
))
