package api

import (
	"github.com/fasthttp/router"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/operation"
)

// groups are the nouns, in the order in which they are documented.
func (a *API) groups() []handler.Group {
	return []handler.Group{
		a.sessionOperations(), a.userOperations(), a.companyOperations(), a.apiKeyOperations(), a.sourceOperations(),
		a.segmentOperations(), a.profileOperations(), a.deviceOperations(), a.erasureOperations(), a.eventOperations(), a.attributeOperations(),
		a.listOperations(), a.templateOperations(), a.campaignOperations(), a.flowOperations(), a.domainOperations(),
		a.webhookOperations(), a.credentialOperations(), a.settingsOperations(), a.auditOperations(), a.exportOperations(), a.importOperations(),
		{Group: linkOperations(), Routes: nil}, // answered by one handler
		a.inboundOperations(),
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
	a.registerLinks(r)
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
