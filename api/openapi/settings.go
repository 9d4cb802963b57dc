package openapi

func settingsConsole() group {
	settings := func() *schema {
		return object(
			req("placeholders", list(text("anonymous", "").with("maxLength", 256), "Values that are no identifiers, compared trimmed and in lower case.").entries(0, 1000)),
			req("identifier_cap", integer(50, "Identifiers a profile may hold.").between(1, 500)),
			req("idempotency_hours", integer(72, "How long an idempotency key holds, in hours.").between(72, 2160)),
			req("double_opt_in", boolean(false, "Who subscribes to e-mail must confirm it first.")),
			req("require_opt_in", boolean(false, "Campaigns go to subscribers only, not also to who never said yes or no.")),
			req("surface_c_per_minute", integer(600, "Requests of a key on Surface C in any 60 seconds. Only administrators of the system raise it.").between(1, 1000000)),
			opt("ignore_unknown_event_fields", boolean(false, "Events may have top-level fields that are not known; else they are refused.")),
			opt("max_event_age_hours", integer(720, "How old the timestamp of an event may be, in hours.").between(0, 87840)),
			opt("flow_event_age_hours", integer(24, "Up to which age an event triggers flows, in hours.").between(0, 87840)),
			opt("confirm_template_id", templateID("Template of the message that asks to confirm a subscription; left out, the service has its own words.")),
		)
	}
	answer := named("Settings", settings())
	return group{surface: surfaceConsole, tag: "Console: settings", title: "Settings", about: "Settings of the account.", ops: []operation{
		{method: "GET", path: "/settings", permission: "settings:read", id: "getSettings", summary: "Read the settings", data: answer},
		{method: "PUT", path: "/settings", permission: "settings:write", id: "setSettings", summary: "Replace the settings", about: "All of them must be given.", body: settings(), data: answer},
		{method: "POST", path: "/app-secret", permission: "settings:write", id: "newAppSecret", summary: "Make a new App Secret", about: "From the answer on only the new one holds. The App ID stays.",
			data: object(req("app_id", appID("")), req("app_secret", text("sk_live_Zm9v…", "Shown this once.")))},
	}}
}
