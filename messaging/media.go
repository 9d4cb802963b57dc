package messaging

// The media by their names in consents.
const (
	mediumEmail    = "email"
	mediumPush     = "push"
	mediumSMS      = "sms"
	mediumWhatsApp = "whatsapp"
	mediumIM       = "im"
	mediumInApp    = "in_app"
)
