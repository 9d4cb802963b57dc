package openapi

// Ids, by what they name.
func profileID(about string) *schema {
	return text("prf_cdc5eaeb89bc0ed9f653e1d1d46aa533", about)
}
func listID(about string) *schema { return text("lst_5b0d7a3c9f2e4d1880a1c6e2f4b39d07", about) }
func segmentID(about string) *schema {
	return text("seg_9c1f0e7ad24b4f6c8f3b5a2d7e60c481", about)
}
func campaignID(about string) *schema {
	return text("cmp_2f8a6d3e1b7c4059a4d2e8f7c6b5a493", about)
}
func templateID(about string) *schema {
	return text("tpl_7d4e2a9c5f8b4c1396e0d3b8a7f2c651", about)
}
func deviceID(about string) *schema {
	return text("dev_1e6c9b4d8a2f4735b0c7d5e9f3a8b264", about)
}
func userID(about string) *schema    { return text("usr_a3d8c6b1f54e4927bd0e7f2c9a618d35", about) }
func keyID(about string) *schema     { return text("key_4c7f1b9e6d3a48258fc2e0a7d5b96183", about) }
func webhookID(about string) *schema { return text("whk_8b2e5d7c1f9a4360a7d4c3e6b0f8592d", about) }
func companyID(about string) *schema { return text("com_6e1d9c4b7a3f48528ec0f5d2b7a96413", about) }
func accountID(about string) *schema { return text("acc_3f9a7c2e5d1b8046", about) }
func appID(about string) *schema     { return text("app_3f9a7c2e5d1b8046", about) }

// pathParameter is what a part of a path in braces takes, behind another part.
func pathParameter(behind, part string) *schema {
	switch behind {
	case "contacts", "profiles", "members", "enrolments":
		return profileID("Id of the person. That of a profile that was merged leads to the one it was merged into.")
	case "devices":
		return deviceID("Id of the device.")
	case "lists":
		return listID("Id of the list.")
	case "segments":
		return segmentID("Id of the segment.")
	case "flows", "custom-flows":
		return flowID("Id of the flow.")
	case "campaign", "campaigns":
		return campaignID("Id of the campaign.")
	case "templates":
		return templateID("Id of the template.")
	case "users":
		return userID("Id of the user.")
	case "companies":
		return companyID("Id of the company.")
	case "api-keys":
		return keyID("Id of the key; not the key itself.")
	case "webhooks":
		return webhookID("Id of the endpoint.")
	case "dead-letters":
		return text("17", "Number of the dead letter, its `seq`.")
	case "erasures":
		return text("ann@example.com", "The hash of the identifier, or the identifier itself.")
	case "sender-domains":
		return text("mail.example.com", "The domain.")
	case "push-credentials":
		return word("The push service.", "webpush", "fcm", "apns")
	case "message-providers":
		return word("The channel.", "sms", "whatsapp", "im")
	case "inbound-providers":
		return word("The provider.", "generic", "mail", "mailgun", "postmark", "sendgrid", "ses")
	case "inbound":
		return accountID("Id of the account.")
	case "mail":
		return text("cGx1bWJ1cy1lc3Qtbm9tZW4", "The token that lets in who hands over mail.")
	case "t":
		return text("AQEAAAAAAAAAAQ", "A token that the service signed: what it stands for, and for whom.")
	}
	return text("ses", "Name of the provider: generic, mail, mailgun, postmark, sendgrid or ses.")
}

// channel is a channel of messages.
func channel(about string) *schema {
	return word(about, "email", "sms", "push", "whatsapp", "im", "in_app")
}

// contactStatus is a contact's status on a channel.
func contactStatus(about string) *schema {
	return word(about, "Subscribed", "Pending", "Engaged", "At risk", "Unsubscribed", "Bounced", "Complained", "Suppressed")
}
