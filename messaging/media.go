package messaging

// The media by their names in consents.
const (
	mediumEmail    = "email"
	mediumPush     = "push"
	mediumSMS      = "sms"
	mediumWhatsApp = "whatsapp"
	mediumInApp    = "in_app"
)
