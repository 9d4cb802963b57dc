package messages

import (
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/shape"
)

var campaignNumbersShape = shape.Named("ConsoleCampaignStats", shape.Object(
	shape.Req("campaign_id", shape.CampaignID("")),
	shape.Req("status", shapes.CampaignStatus()),
	shape.Req("total_members", shape.Count(1204, "People in the audience of the last send.")),
	shape.Req("remaining", shape.Count(0, "Those still to be sent to.")),
	shape.Req("sent", shape.Count(1187, "Messages handed over.")),
	shape.Req("failed", shape.Count(0, "Messages that could not be handed over.")),
	shape.Req("delivered", shape.Count(1180, "")),
	shape.Req("unique_opens", shape.Count(512, "People who opened it.")),
	shape.Req("unique_clicks", shape.Count(101, "People who clicked.")),
	shape.Req("opens", shape.Count(640, "")),
	shape.Req("clicks", shape.Count(130, "")),
	shape.Req("bounces", shape.Count(7, "")),
	shape.Req("complaints", shape.Count(0, "")),
	shape.Req("unsubscribes", shape.Count(3, "")),
	shape.Req("dismissed", shape.Count(40, "People who put an in-app message away.")),
	shape.Req("expired", shape.Count(12, "People whose in-app message ended before they saw it; counted once an hour.")),
	shape.Req("skipped", shapes.Skipped()),
	shape.Req("errors", shape.List(shape.Text("credits: no e-mail credits are left", ""), "What went wrong, the newest 20.")),
	shape.Req("runs", shapes.CampaignRuns()),
	shape.Req("resumed", shapes.CampaignResumed()),
	shape.Req("started_at", shape.Instant("").OrNull()),
	shape.Req("finished_at", shape.Instant("").OrNull()),
	shape.Req("links", shapes.CampaignLinks()),
	shape.Req("revenue", shape.List(shapes.Revenue(), "Of orders that belong to the campaign, by currency.")),
	shape.Req("waiting", shapes.CampaignWaiting()),
	shape.Req("waiting_until", shapes.CampaignWaitingUntil()),
	shape.Req("ab_test", shapes.CampaignABTest()),
	shape.Req("channels", shapes.CampaignChannels()),
	shape.Req("as_of", shape.Instant("When they were read.")),
))

var capturedMessageShape = shape.Named("CapturedMessage", shape.Object(
	shape.Req("seq", shape.Count(7, "Orders messages; the newest has the highest.")),
	shape.Req("id", shape.Text("<3f9a.1@muster.local>", "Identity of the message; a repeat has the same.")),
	shape.Req("channel", shape.Channel("")),
	shape.Req("to", shape.Text("ann@example.com", "")),
	shape.Opt("from", shape.Text("Example <news@muster.local>", "")),
	shape.Opt("subject", shape.Text("Our January sale", "Subject, or title of a push message.")),
	shape.Opt("body", shape.Text("Hello Ann", "Text of channels that have one.")),
	shape.Opt("html", shape.Text("<p>Hello Ann</p>", "Of an e-mail.")),
	shape.Opt("text", shape.Text("Hello Ann", "Of an e-mail.")),
	shape.Opt("headers", shape.MapOf(shape.Text("List-Unsubscribe=One-Click", ""), "Headers of an e-mail.").Like(shape.Pairs("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"))),
	shape.Opt("send_id", shape.Text("3f9a7c2e5d1b8046-1", "Names the message and its account.")),
	shape.Req("at", shape.Text("2026-01-31T09:00:00.000000123Z", "The first attempt, ISO 8601.").With("format", "date-time")),
	shape.Opt("truncated", shape.Boolean(false, "True when a text was too long to be kept whole.")),
	shape.Opt("attempts", shape.Integer(1, "How often it was handed over.")),
	shape.Opt("last_at", shape.Text("2026-01-31T09:00:00.000000123Z", "The last attempt, ISO 8601.").With("format", "date-time")),
))
