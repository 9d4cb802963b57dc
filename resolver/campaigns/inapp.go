package campaigns

import (
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// CheckInAppOptions says what is wrong with the options of an in-app message, by their names in
// requests.
func CheckInAppOptions(o *card.Options) *refuse.Refusal {
	if o == nil {
		return nil
	}
	if f := o.Check(); f != nil {
		return refuse.Invalid("in_app."+f.Field, "in_app.%s Input %s", f.Field, f.Text)
	}
	return nil
}

// checkInApp says what is wrong with the options of an in-app message.
func (c *Campaign) checkInApp() *refuse.Refusal {
	// Requests are checked before, with the types that they know; logs have this text.
	if c.InApp != nil && c.Medium() != mediumInApp {
		return refuse.Invalid("in_app", "in_app Input should be left out where channel is not 2 or type not 5: it is of in-app messages")
	}
	return CheckInAppOptions(c.InApp)
}

// CountExpired counts a message that ended before its recipient saw it.
func (s *State) CountExpired(campaign string, ordinal uint32) {
	if x, r := s.campaigns[campaign], s.runs[campaign]; x != nil && r != nil {
		s.set(x, Expired).Add(ordinal)
	}
}
