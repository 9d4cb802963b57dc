package keyapi

import (
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/shape"
)

var contactShape = shape.Named("Contact", shape.Object(
	shape.Req("_id", shape.ProfileID("Id of the contact, which is that of its profile.")),
	shape.Req("email", shape.Text("Ann@example.com", "The e-mail that campaigns and flows mail, as submitted. While the contact is subscribed to e-mail, events attach other e-mails and do not change it.").OrNull()),
	shape.Req("first_name", shape.Text("Ann", "").OrNull()),
	shape.Req("last_name", shape.Text("Lee", "").OrNull()),
	shape.Req("phone", shape.Text("+491701234567", "The newest phone number, as submitted.").OrNull()),
	shape.Req("external_id", shape.Text("42", "The newest external id.").OrNull()),
	shape.Req("subscribed", shape.Boolean(true, "Whether the person may get marketing: true for a new contact, false after they unsubscribed, bounced, complained or were suppressed, and for a person with an e-mail that was never subscribed. See `status` for who has not confirmed.")),
	shape.Req("sms_consent", shape.Object(
		shape.Req("status", shape.Word("", "subscribed", "unsubscribed", "never_subscribed")),
		shape.Req("source", shape.Text("manual", "Where the consent comes from.").OrNull()),
	).Says("Consent to SMS.")),
	shape.Req("consents", shape.MapOf(shape.Object(
		shape.Req("status", shape.Word("", "subscribed", "unsubscribed")),
		shape.Req("source", shape.Text("manual", "Where the consent comes from.")),
		shape.Req("since", shape.Instant("Since when.")),
	), "Consents on record, by channel.").Like(shape.Pairs("email", shape.Pairs("status", "subscribed", "source", "manual", "since", "2026-01-31T09:00:00.000Z")))),
	shape.Req("status", shape.ContactStatus("Status on the channel email; null for a contact that never subscribed.").OrNull()),
	shape.Req("engagement_score", shape.Count(20, "5 for each open and 15 for each click, halved for every 30 days since the last.").With("maximum", 100)),
	shape.Req("lists", shape.List(shape.ListID(""), "Lists that the contact is on.")),
	shape.Req("geo", shape.Geo("")),
	shape.Req("attributes", shape.Attributes("")),
	shape.Req("created_at", shape.Instant("When the profile was made.")),
	shape.Opt("warning", shape.Text("phone not added: the profile may have no more identifiers; see its conflicts", "Identifiers beyond those that a profile may have, which stand among its `conflicts`. Or identifiers given for a contact on file that is put on a list. Or consents on channels where the contact is suppressed, so that nothing is sent. Only in the answer that makes or changes the contact, and absent when there is nothing to warn of.")),
))

var contactExportShape = shape.Named("ContactExport", shape.Object(
	shape.Req("contact", contactShape),
	shape.Req("identities", shape.MapOf(shape.List(shape.Text("ann@example.com", ""), ""), "Identifiers by kind: email, external_id, phone, anonymous_id.").Like(shape.Pairs("email", []string{"ann@example.com"}))),
	shape.Req("merged_ids", shape.List(shape.ProfileID(""), "Ids of profiles that were merged into this one.")),
	shape.Req("consents", shape.List(shape.Object(
		shape.Req("channel", shape.Channel("")),
		shape.Req("status", shape.Word("", "subscribed", "unsubscribed", "never_subscribed")),
		shape.Req("source", shape.Text("manual", "")),
		shape.Req("since", shape.Instant("Since when.").OrNull()),
	), "Consents that are on record.")),
	shape.Req("consent_log", shape.List(shapes.ConsentEntry, "What the person said of channels and topics, with the evidence, the newest first.")),
	shape.Req("suppressions", shape.List(shape.Object(
		shape.Req("channel", shape.Channel("")),
		shape.Req("reason", shape.Word("", "bounced", "complained", "suppressed", "pending")),
		shape.Req("since", shape.Instant("Since when.")),
	), "Channels on which the person is not written to, whatever they consented to.")),
	shape.Req("devices", shape.List(shape.Object(
		shape.Req("device_id", shape.DeviceID("")),
		shape.Req("kind", shape.Word("", "webpush", "fcm", "apns")),
		shape.Req("added_at", shape.Instant("When it was registered.")),
	), "Devices for push messages.")),
	shape.Req("segments", shape.List(shape.SegmentID(""), "Segments that hold the person now.")),
	shape.Req("events", shape.List(shapes.ProfileEvent, "Events, the newest first.")),
	shape.Req("events_complete", shape.Boolean(true, "False when there are more events than the 10,000 newest, which are here.")),
))
