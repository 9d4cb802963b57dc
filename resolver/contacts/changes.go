package contacts

import (
	"slices"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/segment/engine"
)

// ConsentChange is an opt-in or opt-out of a channel in an [Update].
type ConsentChange struct {
	Channel string `json:"channel"`
	Status  string `json:"status"` // subscribed or unsubscribed
	Source  string `json:"source,omitempty"`
	// Effective refuses a subscription of a channel that is suppressed, on which it would
	// change nothing for the contact.
	Effective bool `json:"effective,omitempty"`
	// Campaign is what led to it, if something did.
	Campaign string `json:"campaign,omitempty"`
}

// CheckConsents says what is wrong with changes of a contact's consents.
func CheckConsents(d *profile.Document, changes []ConsentChange) *refuse.Refusal {
	for i := range changes {
		c := &changes[i]
		channel, status, refusal := checkConsent(c.Channel, c.Status, c.Source)
		switch {
		case refusal != nil:
			refusal.Field, refusal.Message = "consents", "consents: "+refusal.Message
			return refusal
		case slices.ContainsFunc(changes[:i], func(x ConsentChange) bool { return x.Channel == c.Channel }):
			return refuse.Invalid("consents", "consents: %s is given twice", c.Channel)
		}
		if why := d.GravestSuppression(channel); c.Effective && status == profile.ConsentSubscribed && why > profile.SuppressionPending {
			return &refuse.Refusal{Code: "conflict", Field: "subscribed", Message: "subscribed: the contact is " + why.String() + " on " + c.Channel + "; lift the suppression first"}
		}
	}
	return nil
}

// ChangeConsents makes changes that [CheckConsents] has let pass.
func (s *State) ChangeConsents(tx *feature.Tx, o uint32, d *profile.Document, changes []ConsentChange) (fields engine.Fields, events []feature.Event) {
	for i := range changes {
		c := &changes[i]
		changed, said, more := s.decide(tx, o, d, &ConsentSet{Channel: c.Channel, Status: c.Status, Source: c.Source, Campaign: c.Campaign})
		if changed || said {
			fields |= engine.FieldConsents
		}
		events = append(events, more...)
	}
	return fields, events
}
