package providers

import (
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
)

// Credentials set the keys to the services that messages go through, and
// of those that report on them. All three kinds have the same three calls.
func (a *API) Credentials() handler.Group {
	credential := shape.Named("Credential", shape.Object(
		shape.Req("kind", shape.Text("webpush", "Which service.")), shape.Req("updated_at", shape.Instant("")),
		shape.Req("details", shape.FreeObject(shape.Pairs("public_key", "BNcR…"), "What may be seen of it at any time: nothing that is secret.")),
		shape.Opt("once", shape.FreeObject(shape.Pairs("token", "Zm9v…"), "What is shown when it is set and never again.")),
	))
	g := handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: credentials", Title: "Credentials",
		About: "Keys to push services and to providers of texts, and of providers that report to us. They are taken in whole and never shown again. No API key reaches them."}, Routes: nil}
	for _, k := range []struct {
		of                    *credentialGroup
		path, id, what, about string
		body                  *shape.Schema
	}{
		{pushCredentials, "/push-credentials", "PushCredential", "push credentials", "", shape.OneOf(
			shape.Named("WebPushKeys", shape.Object(shape.Req("public_key", shape.Text("BNcR…", "VAPID, 65 bytes in base64url.")), shape.Req("private_key", shape.Text("tBHI…", "32 bytes in base64url.")), shape.Req("subject", shape.Text("mailto:push@example.com", "A mailto: or https: contact."))).Strict().Says("webpush: a key pair.")),
			shape.Named("WebPushGeneration", shape.Object(shape.Req("generate", shape.Boolean(true, "Always true.")), shape.Req("subject", shape.Text("mailto:push@example.com", ""))).Strict().Says("webpush: have a key pair made. Browsers subscribe with `details.public_key`.")),
			shape.Named("FCMServiceAccount", shape.Object(shape.Req("type", shape.Word("", "service_account")), shape.Req("project_id", shape.Text("demo-1", "")), shape.Req("private_key", shape.Text("-----BEGIN PRIVATE KEY-----…", "")),
				shape.Req("client_email", shape.Text("a@demo-1.iam.gserviceaccount.com", "")), shape.Opt("token_uri", shape.Text("https://oauth2.googleapis.com/token", "")), shape.Opt("private_key_id", shape.Text("k1", "")), shape.Opt("base_url", shape.Text("https://fcm.googleapis.com", "Another server that speaks the same API, and issues tokens at `/token` below it. Add it to the key file."))).Says("fcm: a service account's key file, as it was downloaded.").Open()),
			shape.Named("APNsKey", shape.Object(shape.Req("key_id", shape.Text("ABC123DEFG", "")), shape.Req("team_id", shape.Text("DEF123GHIJ", "")), shape.Req("private_key", shape.Text("-----BEGIN PRIVATE KEY-----…", "Content of the .p8 file.")),
				shape.Req("topic", shape.Text("com.example.app", "The app's bundle id.")), shape.Opt("sandbox", shape.Boolean(false, "For development builds.")), shape.Opt("base_url", shape.Text("https://api.push.apple.com", "Another server that speaks the same API."))).Strict().Says("apns: a signing key.")),
		)},
		{messageProviders, "/message-providers", "MessageProvider", "a provider of texts", "", shape.OneOf(
			shape.Named("TwilioProvider", shape.Object(shape.Req("preset", shape.Only("TwilioPreset", "twilio")), shape.Req("account_sid", shape.Text("AC1234", "")), shape.Req("auth_token", shape.Text("secret", "")), shape.Req("from", shape.Text("+15005550006", "Number, name or, beginning with MG, a messaging service.")), shape.Opt("base_url", shape.Text("https://api.twilio.com", "Another server that speaks the same API."))).Strict()),
			shape.Named("WhatsAppCloudProvider", shape.Object(shape.Req("preset", shape.Only("WhatsAppCloudPreset", "whatsapp_cloud")), shape.Req("version", shape.Text("v21.0", "")), shape.Req("phone_number_id", shape.Text("1062840", "")), shape.Req("token", shape.Text("secret", "")), shape.Opt("base_url", shape.Text("https://graph.facebook.com", "Another server that speaks the same API."))).Strict()),
			textProviderShape(),
		)},
		{inboundProviders, "/inbound-providers", "InboundProvider", "what a provider proves itself with", "The answer has the `path` that the provider is to call, in `details`.", shape.Object(
			shape.Opt("generate", shape.Boolean(true, "For generic, mail, postmark and whatsapp: have a secret made, which is answered in `once`.").Default(false)),
			shape.Opt("secrets", shape.List(shape.Text("whsec_Zm9vYmFyYmF6cXV1eGZvb2JhcmJheg==", ""), "generic: secrets that sign, in base64 behind whsec_.")),
			shape.Opt("token", shape.Text("a-long-enough-token", "mail: lets in who hands over mail; at least 16 characters.")),
			shape.Opt("user", shape.Text("postmark", "postmark, ses: name of HTTP basic authentication.")),
			shape.Opt("password", shape.Text("a-long-enough-password", "postmark, ses: its password; at least 16 characters.")),
			shape.Opt("secret", shape.Text("a-long-enough-secret", "postmark, ses: sent as ?secret=; at least 16 characters.")),
			shape.Opt("signing_key", shape.Text("key-1234", "mailgun: the HTTP webhook signing key.")),
			shape.Opt("public_key", shape.Text("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE…", "sendgrid: the verification key.")),
			shape.Opt("auth_token", shape.Text("0f1e2d3c4b5a69788796a5b4c3d2e1f0", "twilio: the account's auth token.")),
			shape.Opt("app_secret", shape.Text("5ebe2294ecd0e0f08eab7690d2a6ee69", "whatsapp: the secret of the app at Meta.")),
			shape.Opt("verify_token", shape.Text("a-long-enough-token", "whatsapp: what Meta verifies the address with; at least 16 characters.")),
			shape.Opt("phone_number_id", shape.Text("1062840", "whatsapp: the number whose webhooks are taken; left out, all of them.")),
			shape.Opt("stop_reply", shape.Text("You will get no more messages.", "twilio, whatsapp, generic: the answer to STOP. Left out, there is none.")),
			shape.Opt("start_reply", shape.Text("Welcome back.", "The answer to START.")),
			shape.Opt("help_reply", shape.Text("Shop Ltd, help@shop.example", "The answer to HELP.")),
			shape.Opt("topics", shape.List(shape.Text("arn:aws:sns:eu-west-1:123456789012:bounces", ""), "ses: ARNs of the topics.")),
		).Like(shape.Pairs("generate", true))},
	} {
		g.Routes = append(g.Routes,
			handler.Route{Handle: a.listCredentials(k.of), Operation: operation.Operation{Method: "GET", Path: k.path, Permission: "settings:write", ID: "list" + k.id + "s", Summary: "List " + k.what, Data: shape.List(credential, "Those that are set.")}},
			handler.Route{Handle: a.setCredential(k.of), Operation: operation.Operation{Method: "PUT", Path: k.path + "/{id}", Permission: "settings:write", ID: "set" + k.id, Summary: "Set " + k.what, About: k.about, Body: k.body, Data: credential}},
			handler.Route{Handle: a.deleteCredential(k.of), Operation: operation.Operation{Method: "DELETE", Path: k.path + "/{id}", Permission: "settings:write", ID: "delete" + k.id, Summary: "Delete " + k.what}},
		)
	}
	return g
}

// textProviderShape is the shape of any provider of texts with an API over HTTP.
func textProviderShape() *shape.Schema {
	fields := func(about string) *shape.Schema {
		return shape.List(shape.Named("NameAndValue", shape.Object(shape.Req("name", shape.Text("To", "").Bytes(1, 128)), shape.Req("value", shape.Text("{{to}}", "").Bytes(0, 8192))).Strict()), about).Entries(0, 100)
	}
	return shape.Named("TextProvider", shape.Object(
		shape.Req("url", shape.Text("https://sms.example.com/send", "Where texts are sent; https.").Bytes(1, 2048)),
		shape.Opt("method", shape.Word("", "POST", "PUT").Default("POST")),
		shape.Opt("username", shape.Text("user", "HTTP basic authentication.")), shape.Opt("password", shape.Text("secret", "HTTP basic authentication.")), shape.Opt("token", shape.Text("secret", "Or a bearer token.")),
		shape.Opt("headers", fields("Further headers.")),
		shape.Req("format", shape.Word("How the body is written.", "json", "form")),
		shape.Opt("body", shape.Text(`{"to":{{to}},"text":{{body}}}`, "With json: the body, with merge tags.")),
		shape.Opt("form", fields("With form: its fields, with merge tags.")),
		shape.Opt("from", shape.Text("+15005550006", "Sender where a message names none.")),
		shape.Opt("any_address", shape.Boolean(false, "Take recipients that are no phone numbers.")),
		shape.Opt("max_body", shape.Integer(1600, "Longest text, in characters.").Between(0, 65536).Default(1600)),
		shape.Opt("id_path", shape.Text("messages.0.id", "Where the answer has the message's id.")), shape.Opt("code_path", shape.Text("code", "Where it has an error's code.")), shape.Opt("error_path", shape.Text("message", "Where it has its text.")),
		shape.Opt("codes", shape.MapOf(shape.Word("", "accepted", "permanent", "hard", "opted_out", "temporary", "refused"), "What error codes mean.").Like(shape.Pairs("21211", "hard"))),
	).Strict().Says("Any provider with an API over HTTP."))
}
