package uploads

import (
	"slices"

	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/view"
)

// refuses are the channels that a row unsubscribes that says that the person is not
// subscribed: those that it would subscribe else, and e-mail in any case.
func (x *person) refuses() []string {
	switch {
	case x.Subscribed == nil || *x.Subscribed:
		return nil
	case x.Phone == "":
		return []string{"email"}
	}
	return []string{"email", "sms"}
}

// consents are the row's changes to the consents of a person on file; silent says that
// they said nothing of e-mail yet.
func (x *person) consents(silent bool) (out []contacts.ConsentChange) {
	for _, channel := range x.refuses() {
		out = append(out, contacts.ConsentChange{Channel: channel, Status: "unsubscribed", Source: contacts.SourceImport})
	}
	if x.Subscribed != nil && *x.Subscribed && x.Email != "" && silent {
		out = append(out, contacts.ConsentChange{Channel: "email", Status: "subscribed", Source: contacts.SourceImport})
	}
	return out
}

// saidNothing reports whether a person on file said nothing of e-mail yet; a complaint is
// a word, too. A row may subscribe them; what others said stays.
func saidNothing(p *view.Profile) bool {
	return !slices.ContainsFunc(p.Consents, func(c view.Consent) bool {
		return c.Channel == "email" && (c.Status == "subscribed" || c.Status == "unsubscribed")
	}) &&
		!slices.ContainsFunc(p.Suppressions, func(b view.Suppression) bool { return b.Channel == "email" && b.Reason == "complained" })
}
