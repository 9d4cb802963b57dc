package api

import (
	"github.com/fasthttp/router"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/links"
	"github.com/musterhq/muster/api/internal/revenue"
	"github.com/musterhq/muster/api/operation"
)

// groups are the nouns, in the order in which they are documented.
func (a *API) groups() []handler.Group {
	return []handler.Group{
		a.accounts.Session(), a.accounts.Users(), a.accounts.Companies(), a.accounts.APIKeys(), a.settings.Sources(),
		a.segments.Operations(), a.profiles.Operations(), a.profiles.Consents(), a.profiles.Devices(), a.profiles.Erasures(), a.events.Operations(), a.events.Attributes(),
		a.profiles.Lists(), revenue.Operations(), a.signup.Operations(), a.messages.Templates(), a.messages.Campaigns(), a.flows.Operations(), a.settings.Domains(),
		a.messages.Webhooks(), a.providers.Credentials(), a.settings.Settings(), a.settings.InApp(), a.accounts.Audit(), a.exportOperations(), a.importOperations(),
		{Group: links.Operations(), Routes: nil}, // answered by one handler
		a.providers.Reports(),
	}
}

// Operations lists what Register adds, and what [Ops] answers. It needs no options:
// those of a zero API are the same.
func (a *API) Operations() (out []operation.Group) {
	for _, g := range a.groups() {
		for i := range g.Routes {
			g.Operations = append(g.Operations, g.Routes[i].Operation)
		}
		out = append(out, g.Group)
	}
	return append(out, opsOperations())
}

// Register adds the console's calls, what links of messages lead to, and what
// providers report to.
func (a *API) Register(r *router.Router) {
	for _, g := range a.groups() {
		for i := range g.Routes {
			r.Handle(g.Routes[i].Method, g.Surface.Prefix+g.Routes[i].Path, a.chain.Serve(&g.Routes[i]))
		}
	}
	a.links.Register(r)
}

// SharedGroups lists the calls that API keys have because people have them: all of
// the console's whose permission a key may hold, but for those that keys have one of
// their own for. The calls of a zero API are the same, but must not be run.
func (a *API) SharedGroups() []handler.SharedGroup { return a.chain.SharedGroups(a.groups()) }

// RegisterKeyCalls adds the calls that people have because keys have them. The chain of
// the console's calls runs before each: session, permission, body and query.
func (a *API) RegisterKeyCalls(r *router.Router, groups []handler.KeyGroup) {
	a.chain.RegisterKeyCalls(r, groups)
}
