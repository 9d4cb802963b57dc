package record

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

// SuppressedConsent warns of a consent that was put on record for channels on which the
// person is suppressed: it lifts no suppression, so that nothing is sent. It is "" when
// none of them is.
func SuppressedConsent(p *view.Profile, channels ...string) string {
	var warnings []string
	for _, channel := range channels {
		if reason := p.SuppressionReason(channel); slices.Contains(messages.Undeliverable, reason) {
			warnings = append(warnings, channel+": the consent is on record, but nothing is sent: the address is suppressed ("+reason+"); lift the suppression first")
		}
	}
	return strings.Join(warnings, "; ")
}

// BlankIdentifier refuses an empty identifier of a contact that is changed; the field's name
// stands before it.
const BlankIdentifier = "must not be empty: identifiers are added and never removed; leave it out, and it stays as it is"
