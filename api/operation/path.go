package operation

import "github.com/musterhq/muster/api/shape"

// pathParameter is what a part of a path in braces takes, behind another part.
func pathParameter(behind, part string) *shape.Schema {
	switch behind {
	case "contacts", "profiles", "members", "enrolments":
		return shape.ProfileID("Id of the person. That of a profile that was merged leads to the one it was merged into.")
	case "catalog":
		return shape.Text("item_purchased", "Key of the event type.")
	case "devices":
		return shape.DeviceID("Id of the device.")
	case "lists":
		return shape.ListID("Id of the list.")
	case "segments":
		return shape.SegmentID("Id of the segment.")
	case "flows", "custom-flows":
		return shape.FlowID("Id of the flow.")
	case "campaign", "campaigns":
		return shape.CampaignID("Id of the campaign.")
	case "templates":
		return shape.TemplateID("Id of the template.")
	case "users":
		return shape.UserID("Id of the user.")
	case "companies":
		return shape.CompanyID("Id of the company.")
	case "api-keys":
		return shape.KeyID("Id of the key; not the key itself.")
	case "webhooks":
		return shape.WebhookID("Id of the endpoint.")
	case "imports":
		return shape.Text("imp_4f1c8a7e6b2d4930a5c1e7f3d9b80642", "Id of the import.")
	case "dead-letters":
		return shape.Text("17", "Number of the dead letter, its `seq`.")
	case "erasures":
		return shape.Text("ann@example.com", "The hash of the identifier, or the identifier itself.")
	case "sender-domains":
		return shape.Text("mail.example.com", "The domain.")
	case "push-credentials":
		return shape.Word("The push service.", "webpush", "fcm", "apns")
	case "message-providers":
		return shape.Word("The channel.", "sms", "whatsapp", "im")
	case "inbound-providers":
		return shape.Word("The provider.", "generic", "mail", "mailgun", "postmark", "sendgrid", "ses", "twilio", "whatsapp")
	case "sources":
		return shape.SourceID("Id of the source.")
	case "keys":
		return shape.WriteKeyID("Id of the write key; not the key itself.")
	case "forms":
		return shape.FormID("Id of the form.")
	case "deliveries":
		return shape.Text("msg_3f9a7c2e5d1b8046_17", "Id of the delivery: the header webhook-id of its attempts.")
	case "inbox":
		return shape.Text("01000000000000000060000000000000", "Id of the message, as the inbox has it.")
	case "preferences":
		return shape.Text("BQAAAAAAAAAAAQ", "The token of a link that the service signed.")
	case "inbound":
		return shape.AccountID("Id of the account.")
	case "mail":
		return shape.Text("cGx1bWJ1cy1lc3Qtbm9tZW4", "The token that lets in who hands over mail.")
	case "projects":
		return shape.Text("wk_YOUR_KEY", "The write key of a source.")
	case "t":
		return shape.Text("AQEAAAAAAAAAAQ", "A token that the service signed: what it stands for, and for whom.")
	}
	if behind == "{account}" {
		return shape.Text("ses", "Name of the provider: generic, mail, mailgun, postmark, sendgrid, ses, twilio or whatsapp.")
	}
	// The document is the same in every process, so a test of it meets this.
	panic("operation: no schema for the parameter " + part + " behind " + behind)
}
