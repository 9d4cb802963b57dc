package profiles

import (
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver"
)

// Consents are the calls about what people said of channels and topics.
func (a *API) Consents() handler.Group {
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: consents", Title: "Consents",
		About: "What people said of channels and topics, with the evidence, and the page on which they choose. `GET /export/consents` has the log of everybody."}, Routes: []handler.Route{
		{Handle: a.consentLog, Operation: operation.Operation{Method: "GET", Path: "/profiles/{id}/consents", Permission: "contacts:read", ID: "profileConsents", Summary: "List what a person consented to",
			About: "The log of consents, the newest first: of each profile the newest 100 entries, and of each channel the newest one at least.", Data: shape.List(shapes.ConsentEntry, "")}},
		a.inboxRoute(),
		{Handle: a.preferencesLink, Operation: operation.Operation{Method: "GET", Path: "/profiles/{id}/preferences-link", Permission: "contacts:write", ID: "preferencesLink", Summary: "Read the link to a person's preference page",
			About: "Whoever has the link can change the person's choices. It belongs to no message.", Data: shape.Object(shape.Req("url", shape.Text("https://mail.example.com/preferences/BQ…", "Of the page.")))}},
	}}
}

// consentLog answers GET /profiles/{id}/consents.
func (a *API) consentLog(c *handler.Call) (any, error) {
	out := []record.ConsentEntry{}
	err := c.Read(func(v *resolver.View) (err error) {
		o, ok := v.Profiles().ResolveText(c.PathID())
		if !ok {
			return handler.ErrNoProfile
		}
		out, err = record.ConsentLog(v, o)
		return err
	})
	return out, err
}

// preferencesLink answers GET /profiles/{id}/preferences-link.
func (a *API) preferencesLink(c *handler.Call) (any, error) {
	url := ""
	err := c.Read(func(v *resolver.View) error {
		o, ok := v.Profiles().ResolveText(c.PathID())
		if !ok {
			return handler.ErrNoProfile
		}
		key, err := compose.AccountKey(v, c.Account)
		url = compose.Links{Base: a.opts.PublicURL, Account: c.Account, Key: key}.PreferencesURL(o)
		return err
	})
	return map[string]string{"url": url}, err
}
