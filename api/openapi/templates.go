package openapi

func templatesConsole() group {
	body := func() *schema {
		return object(
			req("name", text("Order confirmation", "").bytes(1, 200)),
			opt("source", word("LIST is a saved template, DRAFT a draft of the builder.", "LIST", "DRAFT").def("LIST")),
			opt("subject", text("Your order {{order}}", "").bytes(0, 998)),
			opt("html", text("<p>Hello {{first_name}}</p>", "HTML of an e-mail. With `text` at most 1 MiB.")),
			opt("text", text("Hello {{first_name}}", "Plain text; left out, it is made of the HTML.")),
		)
	}
	template := named("Template", object(
		req("_id", templateID("")), req("name", text("Order confirmation", "")), req("source", word("", "LIST", "DRAFT")),
		req("subject", text("Your order {{order}}", "")), opt("html", text("<p>Hello {{first_name}}</p>", "Not in lists of templates.")), opt("text", text("Hello {{first_name}}", "Not in lists of templates.")),
		req("created_at", instant("")), req("updated_at", instant("")),
	))
	return group{surface: surfaceConsole, tag: "Console: templates", title: "Templates", about: "Texts that are sent more than once.", ops: []operation{
		{method: "GET", path: "/templates", permission: "templates:read", id: "listTemplates", summary: "List templates", about: "The oldest first.", data: list(template, ""), paged: true},
		{method: "POST", path: "/templates", permission: "templates:write", id: "createTemplate", summary: "Save a template", body: body(), data: template},
		{method: "GET", path: "/templates/{id}", permission: "templates:read", id: "getTemplate", summary: "Read a template", data: template},
		{method: "PUT", path: "/templates/{id}", permission: "templates:write", id: "updateTemplate", summary: "Replace a template", body: body(), data: template},
		{method: "DELETE", path: "/templates/{id}", permission: "templates:write", id: "deleteTemplate", summary: "Delete a template", about: "Refused while a campaign that was not sent uses it."},
	}}
}

func domainsConsole() group {
	domain := named("SenderDomain", object(
		req("domain", text("mail.example.com", "")), req("verified", boolean(true, "")), req("verified_at", instant("").orNull()),
		req("verified_by", word("", "dns", "administrator").orNull()), req("created_at", instant("")),
		req("records", list(object(
			req("type", text("TXT", "")), req("name", text("muster1._domainkey.mail.example.com", "")), req("value", text("v=DKIM1; k=ed25519; p=…", "")),
			req("purpose", text("dkim", "ownership, dkim or dmarc.")), req("required", boolean(true, "Whether the domain is verified only with it.")),
			opt("ok", boolean(true, "After a verification: whether it is published.")), opt("problem", text("", "After a verification: what is wrong; empty when nothing is.")),
		), "What DNS must say. It may take up to 48 hours to be seen everywhere.")),
	))
	return group{surface: surfaceConsole, tag: "Console: sender domains", title: "Sender domains", about: "Domains that e-mails may come from.", ops: []operation{
		{method: "GET", path: "/sender-domains", permission: "settings:read", id: "listDomains", summary: "List sender domains", data: list(domain, "")},
		{method: "POST", path: "/sender-domains", permission: "settings:write", id: "addDomain", summary: "Add a sender domain", about: "The answer has the records to publish.",
			body: object(req("domain", text("mail.example.com", ""))), data: domain},
		{method: "GET", path: "/sender-domains/{id}", permission: "settings:read", id: "getDomain", summary: "Read a sender domain", data: domain},
		{method: "POST", path: "/sender-domains/{id}/verify", permission: "settings:write", id: "verifyDomain", summary: "Verify a sender domain", about: "DNS is asked. Where records are missing or wrong, the message and the records say so.",
			body: object(opt("force", boolean(false, "An administrator of the system vouches for the domain, and DNS is not asked.").def(false))), optional: true, data: domain},
		{method: "DELETE", path: "/sender-domains/{id}", permission: "settings:write", id: "deleteDomain", summary: "Remove a sender domain"},
	}}
}
