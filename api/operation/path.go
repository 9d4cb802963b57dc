package operation

import "github.com/musterhq/muster/api/shape"

// pathParameter is what a part of a path in braces takes, behind another part.
func pathParameter(behind, part string) *shape.Schema {
	person := shape.ProfileID("Id of the person. That of a profile that was merged leads to the one it was merged into.")
	flow := shape.FlowID("Id of the flow.")
	campaign := shape.CampaignID("Id of the campaign.")
	s := map[string]*shape.Schema{
		"contacts":          person,
		"profiles":          person,
		"members":           person,
		"enrolments":        person,
		"catalog":           shape.Text("item_purchased", "Key of the event type."),
		"devices":           shape.DeviceID("Id of the device."),
		"lists":             shape.ListID("Id of the list."),
		"segments":          shape.SegmentID("Id of the segment."),
		"flows":             flow,
		"custom-flows":      flow,
		"campaign":          campaign,
		"campaigns":         campaign,
		"templates":         shape.TemplateID("Id of the template."),
		"users":             shape.UserID("Id of the user."),
		"companies":         shape.CompanyID("Id of the company."),
		"api-keys":          shape.KeyID("Id of the key; not the key itself."),
		"webhooks":          shape.WebhookID("Id of the endpoint."),
		"imports":           shape.Text("imp_4f1c8a7e6b2d4930a5c1e7f3d9b80642", "Id of the import."),
		"dead-letters":      shape.Text("17", "Number of the dead letter, its `seq`."),
		"erasures":          shape.Text("ann@example.com", "The hash of the identifier, or the identifier itself."),
		"sender-domains":    shape.Text("mail.example.com", "The domain."),
		"push-credentials":  shape.Word("The push service.", "webpush", "fcm", "apns"),
		"message-providers": shape.Word("The channel.", "sms", "whatsapp", "im"),
		"inbound-providers": shape.Word("The provider.", "generic", "mail", "mailgun", "postmark", "sendgrid", "ses", "twilio", "whatsapp"),
		"sources":           shape.SourceID("Id of the source."),
		"keys":              shape.WriteKeyID("Id of the write key; not the key itself."),
		"forms":             shape.FormID("Id of the form."),
		"deliveries":        shape.Text("msg_3f9a7c2e5d1b8046_17", "Id of the delivery: the header webhook-id of its attempts."),
		"inbox":             shape.Text("01000000000000000060000000000000", "Id of the message, as the inbox has it."),
		"preferences":       shape.Text("BQAAAAAAAAAAAQ", "The token of a link that the service signed."),
		"inbound":           shape.AccountID("Id of the account."),
		"mail":              shape.Text("cGx1bWJ1cy1lc3Qtbm9tZW4", "The token that lets in who hands over mail."),
		"projects":          shape.Text("wk_YOUR_KEY", "The write key of a source."),
		"t":                 shape.Text("AQEAAAAAAAAAAQ", "A token that the service signed: what it stands for, and for whom."),
		"{account}":         shape.Text("ses", "Name of the provider: generic, mail, mailgun, postmark, sendgrid, ses, twilio or whatsapp."),
	}[behind]
	if s == nil {
		// The document is the same in every process, so a test of it meets this.
		panic("operation: no schema for the parameter " + part + " behind " + behind)
	}
	return s
}
