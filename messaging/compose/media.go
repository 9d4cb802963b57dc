package compose

// The media by their names in consents.
const (
	MediumEmail    = "email"
	MediumPush     = "push"
	mediumSMS      = "sms"
	mediumWhatsApp = "whatsapp"
	mediumIM       = "im"
	MediumInApp    = "in_app"
)
