package sending

import (
	"bytes"
	"strings"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
)

// IsReport reports whether a command says what became of a message that was sent.
func IsReport(name string) bool {
	switch name {
	case messages.CommandOutboxDone, campaigns.CommandResult, messages.CommandOutboxDone1, campaigns.CommandResult1:
		return true
	}
	return false
}

// maxDomain is how long a domain can be, in bytes.
const maxDomain = 255

// NoteDomain adds the domain of a recipient's newest address to the event of an e-mail.
func (s *State) NoteDomain(p feature.Properties, channel string, d *profile.Document) {
	switch s.host.Command() {
	case campaigns.CommandResult1, messages.CommandEngagement1, messages.CommandOutboxDone1:
		return
	}
	if channel != "email" {
		return
	}
	address := d.Newest(identifier.Email)
	if identifier.IsMasked(address) {
		return // replayed from a redacted record
	}
	if at := bytes.LastIndexByte(address, '@'); at >= 0 && at < len(address)-1 && len(address)-1-at <= maxDomain {
		p[messages.PropertyDomain] = strings.ToLower(string(bytes.TrimSpace(address[at+1:])))
	}
}
