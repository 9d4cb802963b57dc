package messaging

import (
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/view"
)

// CheckProviders is [compose.CheckProviders] with the dispatcher's public URL.
func (d *Dispatcher) CheckProviders(v *resolver.View, x *campaigns.Campaign, contents []campaigns.Content) error {
	return compose.CheckProviders(v, d.opts.PublicURL, x, contents)
}

// OutgoingText is [compose.OutgoingText] with the dispatcher's public URL.
func (d *Dispatcher) OutgoingText(v *resolver.View, account uint64, x *campaigns.Campaign, content campaigns.Content, p *view.Profile) (string, error) {
	return compose.OutgoingText(v, d.opts.PublicURL, account, x, content, p)
}
