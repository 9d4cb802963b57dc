package api

import "github.com/fasthttp/router"

// registerContents adds the calls about who is written to and with what:
// contacts, lists, templates, sender domains, campaigns, credits, what was
// captured, and files of all of it. Sender domains are a setting of the account.
func (a *API) registerContents(r *router.Router) {
	for _, x := range []struct {
		method, path string
		access       access
		handle       func(*call) (any, error)
	}{
		{"PATCH", "/profiles/{id}", "contacts:write", a.updateProfile},
		{"DELETE", "/profiles/{id}", "contacts:write", a.eraseProfile},
		{"POST", "/profiles/{id}/consent", "contacts:write", a.setConsent},
		{"POST", "/profiles/{id}/suppression", "contacts:write", a.suppress},
		{"DELETE", "/profiles/{id}/suppression", "contacts:write", a.unsuppress},
		{"GET", "/erasures", "settings:read", a.listErasures},
		{"DELETE", "/erasures/{id}", "settings:write", a.liftErasure},

		{"GET", "/lists", "lists:read", a.listLists},
		{"POST", "/lists", "lists:write", a.createList},
		{"GET", "/lists/{id}", "lists:read", a.getList},
		{"PUT", "/lists/{id}", "lists:write", a.updateList},
		{"DELETE", "/lists/{id}", "lists:write", a.deleteList},
		{"GET", "/lists/{id}/members", "lists:read", a.listMembers},
		{"DELETE", "/lists/{id}/members/{profile}", "lists:write", a.removeMember},

		{"GET", "/templates", "templates:read", a.listTemplates},
		{"POST", "/templates", "templates:write", a.saveTemplate},
		{"GET", "/templates/{id}", "templates:read", a.getTemplate},
		{"PUT", "/templates/{id}", "templates:write", a.saveTemplate},
		{"DELETE", "/templates/{id}", "templates:write", a.deleteTemplate},

		{"GET", "/sender-domains", "settings:read", a.listDomains},
		{"POST", "/sender-domains", "settings:write", a.addDomain},
		{"GET", "/sender-domains/{id}", "settings:read", a.getDomain},
		{"POST", "/sender-domains/{id}/verify", "settings:write", a.verifyDomain},
		{"DELETE", "/sender-domains/{id}", "settings:write", a.deleteDomain},

		{"GET", "/campaigns", "campaigns:read", a.listCampaigns},
		{"GET", "/campaigns/{id}", "campaigns:read", a.getCampaign},
		{"GET", "/campaigns/{id}/stats", "campaigns:read", a.campaignStats},
		{"GET", "/credits", signedIn, a.getCredits},
		{"GET", "/outbox", "campaigns:read", a.listOutbox},

		{"GET", "/export/profiles", "contacts:read", a.exportProfiles},
		{"GET", "/export/segments/{id}", "contacts:read", a.exportSegment},
		{"GET", "/export/events", "events:read", a.exportEvents},
	} {
		r.Handle(x.method, Prefix+x.path, a.serve(x.method+" "+x.path, x.access, x.handle))
	}
}
