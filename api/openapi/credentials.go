package openapi

// credentialsConsole are the keys to the services that messages go through, and
// of those that report on them. All three kinds have the same three calls.
func credentialsConsole() group {
	credential := named("Credential", object(
		req("kind", text("webpush", "Which service.")), req("updated_at", instant("")),
		req("details", freeObject(ordered{{"public_key", "BNcR…"}}, "What may be seen of it at any time: nothing that is secret.")),
		opt("once", freeObject(ordered{{"token", "Zm9v…"}}, "What is shown when it is set and never again.")),
	))
	g := group{surface: surfaceConsole, tag: "Console: credentials", title: "Credentials",
		about: "Keys to push services and to providers of texts, and of providers that report to us. They are taken in whole and never shown again. No API key reaches them."}
	for _, k := range []struct {
		path, id, what, about string
		body                  *schema
	}{
		{"/push-credentials", "PushCredential", "push credentials", "", oneOf(
			named("WebPushKeys", object(req("public_key", text("BNcR…", "VAPID, 65 bytes in base64url.")), req("private_key", text("tBHI…", "32 bytes in base64url.")), req("subject", text("mailto:push@example.com", "A mailto: or https: contact."))).strict().says("webpush: a key pair.")),
			named("WebPushGeneration", object(req("generate", boolean(true, "Always true.")), req("subject", text("mailto:push@example.com", ""))).strict().says("webpush: have a key pair made. Browsers subscribe with `details.public_key`.")),
			named("FCMServiceAccount", object(req("type", word("", "service_account")), req("project_id", text("demo-1", "")), req("private_key", text("-----BEGIN PRIVATE KEY-----…", "")),
				req("client_email", text("a@demo-1.iam.gserviceaccount.com", "")), opt("token_uri", text("https://oauth2.googleapis.com/token", "")), opt("private_key_id", text("k1", ""))).says("fcm: a service account's key file, as it was downloaded.").with("additionalProperties", true)),
			named("APNsKey", object(req("key_id", text("ABC123DEFG", "")), req("team_id", text("DEF123GHIJ", "")), req("private_key", text("-----BEGIN PRIVATE KEY-----…", "Content of the .p8 file.")),
				req("topic", text("com.example.app", "The app's bundle id.")), opt("sandbox", boolean(false, "For development builds."))).strict().says("apns: a signing key.")),
		)},
		{"/message-providers", "MessageProvider", "a provider of texts", "", oneOf(
			named("TwilioProvider", object(req("preset", only("TwilioPreset", "twilio")), req("account_sid", text("AC1234", "")), req("auth_token", text("secret", "")), req("from", text("+15005550006", "Number, name or, beginning with MG, a messaging service."))).strict()),
			named("WhatsAppCloudProvider", object(req("preset", only("WhatsAppCloudPreset", "whatsapp_cloud")), req("version", text("v21.0", "")), req("phone_number_id", text("1062840", "")), req("token", text("secret", ""))).strict()),
			textProvider(),
		)},
		{"/inbound-providers", "InboundProvider", "what a provider proves itself with", "The answer has the `path` that the provider is to call, in `details`.", object(
			opt("generate", boolean(true, "For generic, mail and postmark: have a secret made, which is answered in `once`.").def(false)),
			opt("secrets", list(text("whsec_Zm9vYmFyYmF6cXV1eGZvb2JhcmJheg==", ""), "generic: secrets that sign, in base64 behind whsec_.")),
			opt("token", text("a-long-enough-token", "mail: lets in who hands over mail; at least 16 characters.")),
			opt("user", text("postmark", "postmark, ses: name of HTTP basic authentication.")),
			opt("password", text("a-long-enough-password", "postmark, ses: its password; at least 16 characters.")),
			opt("secret", text("a-long-enough-secret", "postmark, ses: sent as ?secret=; at least 16 characters.")),
			opt("signing_key", text("key-1234", "mailgun: the HTTP webhook signing key.")),
			opt("public_key", text("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE…", "sendgrid: the verification key.")),
			opt("topics", list(text("arn:aws:sns:eu-west-1:123456789012:bounces", ""), "ses: ARNs of the topics.")),
		).like(ordered{{"generate", true}})},
	} {
		g.ops = append(g.ops,
			operation{method: "GET", path: k.path, permission: "settings:write", id: "list" + k.id + "s", summary: "List " + k.what, data: list(credential, "Those that are set.")},
			operation{method: "PUT", path: k.path + "/{id}", permission: "settings:write", id: "set" + k.id, summary: "Set " + k.what, about: k.about, body: k.body, data: credential},
			operation{method: "DELETE", path: k.path + "/{id}", permission: "settings:write", id: "delete" + k.id, summary: "Delete " + k.what},
		)
	}
	return g
}

// textProvider describes any provider of texts with an API over HTTP.
func textProvider() *schema {
	fields := func(about string) *schema {
		return list(named("NameAndValue", object(req("name", text("To", "").bytes(1, 128)), req("value", text("{{to}}", "").bytes(0, 8192))).strict()), about).entries(0, 100)
	}
	return named("TextProvider", object(
		req("url", text("https://sms.example.com/send", "Where texts are sent; https.").bytes(1, 2048)),
		opt("method", word("", "POST", "PUT").def("POST")),
		opt("username", text("user", "HTTP basic authentication.")), opt("password", text("secret", "HTTP basic authentication.")), opt("token", text("secret", "Or a bearer token.")),
		opt("headers", fields("Further headers.")),
		req("format", word("How the body is written.", "json", "form")),
		opt("body", text(`{"to":{{to}},"text":{{body}}}`, "With json: the body, with merge tags.")),
		opt("form", fields("With form: its fields, with merge tags.")),
		opt("from", text("+15005550006", "Sender where a message names none.")),
		opt("any_address", boolean(false, "Take recipients that are no phone numbers.")),
		opt("max_body", integer(1600, "Longest text, in characters.").between(0, 65536).def(1600)),
		opt("id_path", text("messages.0.id", "Where the answer has the message's id.")), opt("code_path", text("code", "Where it has an error's code.")), opt("error_path", text("message", "Where it has its text.")),
		opt("codes", mapOf(word("", "accepted", "permanent", "hard", "opted_out", "temporary", "refused"), "What error codes mean.").like(ordered{{"21211", "hard"}})),
	).strict().says("Any provider with an API over HTTP."))
}
