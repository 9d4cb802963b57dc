package resolver

import (
	"bytes"
	"strings"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
)

// PropertyDomain is the property of the events of e-mails that has the domain of the
// recipient's address, in lower case.
const PropertyDomain = "domain"

// isReport reports whether a command says what became of a message that was sent.
func isReport(name string) bool {
	switch name {
	case messages.CommandOutboxDone, campaigns.CommandResult, messages.CommandOutboxDone1, campaigns.CommandResult1:
		return true
	}
	return false
}

// maxDomain is how long a domain can be, in bytes.
const maxDomain = 255

// noteDomain adds the domain of a recipient's newest address to the event of an e-mail.
func (c *command) noteDomain(p feature.Properties, channel string, d *profile.Document) {
	switch c.name {
	case campaigns.CommandResult1, messages.CommandEngagement1, messages.CommandOutboxDone1:
		return
	}
	if channel != "email" {
		return
	}
	address := d.Newest(IdentityEmail)
	if identifier.IsMasked(address) {
		return // replayed from a redacted record
	}
	if at := bytes.LastIndexByte(address, '@'); at >= 0 && at < len(address)-1 && len(address)-1-at <= maxDomain {
		p[PropertyDomain] = strings.ToLower(string(bytes.TrimSpace(address[at+1:])))
	}
}
