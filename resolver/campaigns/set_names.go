package campaigns

// The sets of a campaign's recipients: those still to be sent to, those being sent to,
// those whose message a provider accepted, and those who could not be sent to.
const (
	setAudience = "audience"
	setPending  = "pending"
	setSent     = "sent"
	setFailed   = "failed"
)

// What recipients did, or what became of the message to them. The sets of those have the
// same names.
const (
	Delivered    = "delivered" // a provider said so
	Opened       = "opened"
	Clicked      = "clicked"
	Bounced      = "bounced" // the address does not exist
	Complained   = "complained"
	Unsubscribed = "unsubscribed" // by a link of the campaign
)

// sets are all of them.
var sets = [...]string{setAudience, setPending, setSent, setFailed, Delivered, Opened, Clicked, Bounced, Complained, Unsubscribed, Dismissed, Expired}

// Dismissed and Expired are what becomes of in-app messages alone: the person put the message
// away, or it ended before the person saw it.
const (
	Dismissed = "dismissed"
	Expired   = "expired"
)
