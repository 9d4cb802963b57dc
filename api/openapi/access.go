package openapi

func password(example, about string) *schema { return text(example, about).bytes(12, 1024) }

func permissions(about string) *schema {
	return list(text("contacts:read", "`<area>:<read|write>`"), about).entries(0, 100)
}

func sessionConsole() group {
	session := func(more ...field) *schema {
		return object(append(more,
			req("expires_at", instant("When it ends.")), req("account_id", accountID("")), req("app_id", appID("")), req("user_id", userID("")),
			req("email", text("owner@example.com", "")), req("name", text("Ann Lee", "")), req("permissions", permissions("What the person may do.")),
			req("admin", boolean(false, "Whether the person administers the whole system.")),
		)...)
	}
	csrf := opt("csrf_token", text("Yk3…", "For a session in a cookie: to be sent as `X-CSRF-Token` with every call that changes something."))
	return group{surface: surfaceConsole, tag: "Console: session", title: "Session", about: "Signing in and out.", ops: []operation{
		{method: "POST", path: "/session", permission: anybody, id: "signIn", summary: "Sign in", about: "After failed attempts the wait grows: for all attempts from the same address, and for attempts with the same e-mail from there. Failures elsewhere hold nobody up. A browser or program that shows that the person signed in with it before (`device_token`, or the cookie `muster_device`) waits for its own failures only.",
			body: object(
				req("email", text("owner@example.com", "").bytes(1, 512)), req("password", text("correct horse battery", "").bytes(1, 1024)),
				opt("account_id", accountID("Which account, where the e-mail is known in several.")),
				opt("cookie", boolean(false, "Keep the tokens in cookies that scripts cannot read, instead of answering them.").def(false)),
				opt("device_token", text("dev_Zm9v…", "What an earlier sign-in answered. One that is not valid is ignored.")),
			),
			data: session(opt("token", text("ses_3f9a7c2e5d1b8046_Zm9v…", "The session's token; absent where it is in a cookie.")),
				opt("device_token", text("dev_Zm9v…", "To be sent with the next sign-in of this person: failures of others do not hold it up then. It is valid for a year, or until the password changes. Absent where it is in a cookie.")), csrf), also: []int{429}},
		{method: "GET", path: "/session", permission: signedIn, id: "getSession", summary: "Who is signed in", data: session(csrf)},
		{method: "DELETE", path: "/session", permission: signedIn, id: "signOut", summary: "Sign out"},
		{method: "PUT", path: "/password", permission: signedIn, id: "changePassword", summary: "Change one's password", about: "All other sessions of the person end.",
			body: object(req("current_password", text("correct horse battery", "").bytes(0, 1024)), req("password", password("a longer battery staple", "The new one."))), also: []int{429}},
	}}
}

var user = named("User", object(
	req("_id", userID("")), req("email", text("ann@example.com", "")), req("name", text("Ann Lee", "")), req("permissions", permissions("")),
	req("admin", boolean(false, "Whether the person administers the whole system.")), req("created_at", instant("")),
))

func usersConsole() group {
	email := text("ann@example.com", "What the person signs in with.").bytes(1, 512)
	rest := []field{opt("name", text("Ann Lee", "").bytes(0, 200)), opt("admin", boolean(false, "Only administrators of the system make others so."))}
	return group{surface: surfaceConsole, tag: "Console: users", title: "Users", about: "People of the account. Nobody gives what they have not got, and nobody rises above who raises them.", ops: []operation{
		{method: "GET", path: "/users", permission: "users:read", id: "listUsers", summary: "List users", about: "The oldest first.", data: list(user, ""), paged: true},
		{method: "POST", path: "/users", permission: "users:write", id: "createUser", summary: "Add a user",
			body: object(append([]field{req("email", email), req("password", password("correct horse battery", "")), req("permissions", permissions("What the person may do."))}, rest...)...), data: user},
		{method: "GET", path: "/users/{id}", permission: "users:read", id: "getUser", summary: "Read a user", data: user},
		{method: "PATCH", path: "/users/{id}", permission: "users:write", id: "updateUser", summary: "Change a user", about: "What is left out stays. API keys that the person made narrow with their permissions.",
			body: object(append([]field{opt("email", email), opt("password", password("correct horse battery", "")), opt("permissions", permissions(""))}, rest...)...), data: user},
		{method: "DELETE", path: "/users/{id}", permission: "users:write", id: "deleteUser", summary: "Remove a user", about: "The person's sessions end, and keys they made stop working."},
	}}
}

var company = object(
	req("_id", companyID("")), req("account_id", accountID("")), req("app_id", appID("")), req("name", text("Example Ltd", "")),
	req("api_access", boolean(true, "Whether API keys are let in.")), req("active", boolean(true, "Whether anybody is let in.")),
	req("email_credits", integer(10000, "E-mails that may still be sent.")), req("surface_c_per_minute", integer(600, "Requests of a key on Surface C in any 60 seconds.")),
	req("users", count(3, "")), req("created_at", instant("")),
)

func companiesConsole() group {
	one := named("Company", company)
	return group{surface: surfaceConsole, tag: "Console: companies", title: "Companies", about: "For administrators of the system.", ops: []operation{
		{method: "GET", path: "/companies", permission: systemAdmin, id: "listCompanies", summary: "List companies", about: "In order of account ids.", data: list(one, ""), paged: true},
		{method: "POST", path: "/companies", permission: systemAdmin, id: "createCompany", summary: "Make a company", about: "Its credentials are in the answer and nowhere else.",
			body: object(req("name", text("Example Ltd", "").bytes(1, 200)), req("email", text("owner@example.com", "What its first user signs in with.").bytes(1, 512)),
				opt("email_credits", integer(100000, "E-mails it may send at first.").between(0, 1000000000).def(100000))),
			data: company.plus(req("app_secret", text("sk_live_Zm9v…", "")), req("api_key", text("svc_live_Zm9v…", "A key with all permissions.")),
				req("console_email", text("owner@example.com", "")), req("console_password", text("Zm9vYmFyYmF6…", "")))},
		{method: "GET", path: "/companies/{id}", permission: systemAdmin, id: "getCompany", summary: "Read a company", data: one},
		{method: "PATCH", path: "/companies/{id}", permission: systemAdmin, id: "updateCompany", summary: "Change a company", about: "What is left out stays.",
			body: object(opt("name", text("Example Ltd", "").bytes(1, 200)), opt("api_access", boolean(true, "Let API keys in.")), opt("active", boolean(true, "Let anybody in.")),
				opt("surface_c_per_minute", integer(600, "Requests of a key on Surface C in any 60 seconds.").between(1, 1000000))), data: one},
		{method: "POST", path: "/companies/{id}/credits", permission: systemAdmin, id: "addCredits", summary: "Top up e-mail credits",
			body: object(req("amount", integer(10000, "How many to add.").between(1, 1000000000))), data: object(req("email_credits", integer(19800, "How many there are now.")))},
	}}
}

func keysConsole() group {
	key := object(
		req("_id", keyID("")), req("name", text("Shop", "")), req("permissions", permissions("What the key was given; it may do what of that its creator may do at the time.")),
		req("created_by", userID("")), req("created_at", instant("")), req("last_used_at", instant("").orNull()),
		req("revoked", boolean(false, "A revoked key keeps its record.")), req("revoked_at", instant("").orNull()),
	)
	one := named("APIKeyRecord", key)
	return group{surface: surfaceConsole, tag: "Console: API keys", title: "API keys", about: "A key is shown once, when it is made; only its hash is kept.", ops: []operation{
		{method: "GET", path: "/api-keys", permission: "api_keys:read", id: "listAPIKeys", summary: "List API keys", about: "The oldest first, also those revoked.", data: list(one, ""), paged: true},
		{method: "POST", path: "/api-keys", permission: "api_keys:write", id: "createAPIKey", summary: "Make an API key",
			body: object(req("name", text("Shop", "What it is for.").bytes(1, 200)), opt("permissions", permissions("What it may do; left out, all that you may do and keys may hold.").entries(1, 100))),
			data: key.plus(req("key", text("svc_live_Zm9v…", "The key itself, this once.")))},
		{method: "DELETE", path: "/api-keys/{id}", permission: "api_keys:write", id: "revokeAPIKey", summary: "Revoke an API key", about: "It stops working at once.", data: one},
	}}
}
