package shape

// Ids, by what they name.

func ProfileID(about string) *Schema {
	return Text("prf_cdc5eaeb89bc0ed9f653e1d1d46aa533", about)
}
func ListID(about string) *Schema { return Text("lst_5b0d7a3c9f2e4d1880a1c6e2f4b39d07", about) }
func SegmentID(about string) *Schema {
	return Text("seg_9c1f0e7ad24b4f6c8f3b5a2d7e60c481", about)
}
func CampaignID(about string) *Schema {
	return Text("cmp_2f8a6d3e1b7c4059a4d2e8f7c6b5a493", about)
}
func TemplateID(about string) *Schema {
	return Text("tpl_7d4e2a9c5f8b4c1396e0d3b8a7f2c651", about)
}
func DeviceID(about string) *Schema {
	return Text("dev_1e6c9b4d8a2f4735b0c7d5e9f3a8b264", about)
}
func UserID(about string) *Schema     { return Text("usr_a3d8c6b1f54e4927bd0e7f2c9a618d35", about) }
func KeyID(about string) *Schema      { return Text("key_4c7f1b9e6d3a48258fc2e0a7d5b96183", about) }
func SourceID(about string) *Schema   { return Text("src_9a3f5c7e1b2d4860a7f4c3e6b0d8592e", about) }
func WriteKeyID(about string) *Schema { return Text("wky_2d7f1b9e6c3a48258fc2e0a7d5b96184", about) }
func WebhookID(about string) *Schema  { return Text("whk_8b2e5d7c1f9a4360a7d4c3e6b0f8592d", about) }
func FormID(about string) *Schema {
	return Text("frm_3f9a7c2e5d1b80469a3f5c7e1b2d4860a7f4c3e6b0d8592e", about)
}
func CompanyID(about string) *Schema { return Text("com_6e1d9c4b7a3f48528ec0f5d2b7a96413", about) }
func AccountID(about string) *Schema { return Text("acc_3f9a7c2e5d1b8046", about) }
func MessageID(about string) *Schema {
	return Text("3f9a7c2e5d1b8046-02000000000000002a00000019000000", about)
}
func FlowID(about string) *Schema { return Text("flw_0d9b6e3a7c5f4812a4c1e8d7b2f69350", about) }
func AppID(about string) *Schema  { return Text("app_3f9a7c2e5d1b8046", about) }

// Channel is a channel of messages.
func Channel(about string) *Schema {
	return Word(about, "email", "sms", "push", "whatsapp", "im", "in_app")
}

// ContactStatus is a contact's status on a channel.
func ContactStatus(about string) *Schema {
	return Word(about, "Subscribed", "Pending", "Engaged", "At risk", "Unsubscribed", "Bounced", "Complained", "Suppressed")
}
