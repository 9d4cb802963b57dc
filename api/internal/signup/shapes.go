package signup

import (
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver/forms"
)

func fieldShape() *shape.Schema {
	return shape.Named("FormField", shape.Object(
		shape.Req("name", shape.Text("attributes.city", "`email`, `phone`, `first_name`, `last_name`, or `attributes.` and the name of an attribute.").Bytes(1, 80)),
		shape.Req("label", shape.Text("City", "What people read.").Bytes(1, 200)),
		shape.Opt("type", shape.Word("What an attribute takes; the other fields are text.", forms.TypeText, forms.TypeNumber, forms.TypeBoolean, forms.TypeDate, forms.TypeChoice).Default(forms.TypeText)),
		shape.Opt("required", shape.Boolean(true, "").Default(false)),
		shape.Opt("options", shape.List(shape.Text("Ulm", "").Bytes(1, 200), "Of a choice.").Entries(1, 100)),
	))
}

func consentShape() *shape.Schema {
	return shape.Named("FormConsent", shape.Object(
		shape.Req("text", shape.Text("Yes, send me news by e-mail. I can unsubscribe at any time.", "What the person agrees to. The log of consents keeps it with each consent. Empty, with no channels, the form asks for no consent.").Bytes(0, 1000)),
		shape.Req("channels", shape.List(shape.Word("", "email", "sms", "whatsapp"), "What the person subscribes to. A channel counts where its address was given.").Entries(0, 3)),
		shape.Opt("required", shape.Boolean(true, "The form cannot be sent without it.").Default(false)),
	))
}

// settings are what a form is made or changed with.
func settings(made bool) *shape.Schema {
	req := shape.Opt
	if made {
		req = shape.Req
	}
	return shape.Object(
		req("name", shape.Text("Newsletter", "For your own people.").Bytes(1, 200)),
		req("fields", shape.List(fieldShape(), "What the form asks for, in order. Email or phone must be among them, and one of these required.").Entries(1, 30)),
		shape.Opt("title", shape.Text("Sign up", "Heading of the page.").Bytes(1, 200)),
		shape.Opt("text", shape.Text("News from the shop, once a month.", "Plain text under it.").Bytes(0, 4000)),
		shape.Opt("button", shape.Text("Sign up", "").Bytes(1, 100)),
		shape.Opt("list_ids", shape.List(shape.ListID(""), "Lists that people join. Of a form that must be confirmed they join once it is.").Entries(0, 20)),
		shape.Opt("consent", consentShape()),
		shape.Opt("double_opt_in", shape.Boolean(true, "Everybody confirms by e-mail, also where the settings of the account do not ask for it. People on file always confirm.")),
		shape.Opt("message", shape.Text("Thank you.", "What the page says once the form was sent.").Bytes(0, 1000)),
		shape.Opt("redirect_url", shape.Text("https://shop.example/thanks", "Where the browser goes instead: `https`, or `http` to localhost. Empty for the message.").Bytes(0, 2000)),
		shape.Opt("published", shape.Boolean(true, "The page is shown, and submissions are taken. A new form is not published.")),
		shape.Opt("allowed_origins", shape.List(shape.Text("https://shop.example", "").Bytes(1, 300), "Sites that may embed the form: scheme and host, `https://*.shop.example` for all below, or `*` for all. Empty: only the hosted page.").Entries(0, 50)),
	)
}

func figures() []shape.Field {
	return []shape.Field{
		shape.Req("views", shape.Count(1200, "Of the hosted page, by browsers. Those of the last seconds before a crash are not counted.")),
		shape.Req("submissions", shape.Count(90, "That were taken, without repeats. One that has to be confirmed and comes within an hour of another of the same form and address is in this figure alone.")),
		shape.Req("conversions", shape.Count(80, "Submissions that took effect: at once, or once they were confirmed. The event `signup_form_submitted` is on the profile of each.")),
		shape.Req("unconfirmable", shape.Count(2, "Submissions that had to be confirmed while no message could be sent: the address is suppressed, there were too many for it, or no e-mail credits. Those with an address of an erased person are in no figure.")),
	}
}

// Operations are the calls about forms.
func (a *API) Operations() handler.Group {
	form := shape.Named("Form", shape.Object(
		shape.Req("_id", shape.FormID("")), shape.Req("name", shape.Text("Newsletter", "")), shape.Req("title", shape.Text("Sign up", "")), shape.Req("text", shape.Text("News from the shop, once a month.", "")),
		shape.Req("fields", shape.List(fieldShape(), "")), shape.Req("button", shape.Text("Sign up", "")), shape.Req("list_ids", shape.List(shape.ListID(""), "")),
		shape.Req("consent", consentShape().OrNull()), shape.Req("double_opt_in", shape.Boolean(true, "")), shape.Req("message", shape.Text("Thank you.", "")),
		shape.Req("redirect_url", shape.Text("https://shop.example/thanks", "")), shape.Req("published", shape.Boolean(true, "")), shape.Req("allowed_origins", shape.List(shape.Text("https://shop.example", ""), "")),
		shape.Req("url", shape.Text("https://muster.example/forms/frm_3f9a7c2e5d1b80469a3f5c7e1b2d4860a7f4c3e6b0d8592e", "The hosted page.")),
		shape.Req("html", shape.Text(`<form action="https://muster.example/forms/frm_…" method="post">…</form>`, "Paste it into a page of an allowed site: a plain form without scripts. Paste it again when the fields or the consent change.")),
		shape.Req("figures", shape.Named("FormFigures", shape.Object(figures()...)).Says("Of all days together, also those that are over 400 days old.")),
		shape.Req("created_at", shape.Instant("")), shape.Req("updated_at", shape.Instant("")), shape.Req("version", shape.ContentVersion()),
	))
	stats := shape.Named("FormStats", shape.Object(
		shape.Req("total", shape.Named("FormFigures", shape.Object(figures()...)).Says("Of all days together, also those that are over 400 days old.")),
		shape.Req("days", shape.List(shape.Named("FormDay", shape.Object(append([]shape.Field{shape.Req("date", shape.Text("2026-11-26", "A day of UTC."))}, figures()...)...)), "Days on which something happened, the oldest first.")),
	))
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: forms", Title: "Forms",
		About: "Signup forms: a hosted page, and HTML for your own pages. A submission makes a contact, puts it on lists and records its consents with the text that was read. Nothing of a person on file changes until that person confirms by e-mail."}, Routes: []handler.Route{
		{Handle: a.list, Operation: operation.Operation{Method: "GET", Path: "/forms", Permission: "lists:read", ID: "listForms", Summary: "List forms", About: "The oldest first. An account has at most 200.", Data: shape.List(form, ""), Paged: true}},
		{Handle: a.create, Operation: operation.Operation{Method: "POST", Path: "/forms", Permission: "lists:write", ID: "createForm", Summary: "Create a form", Body: settings(true), Data: form}},
		{Handle: a.get, Operation: operation.Operation{Method: "GET", Path: "/forms/{id}", Permission: "lists:read", ID: "getForm", Summary: "Read a form", Data: form}},
		{Handle: a.update, Operation: operation.Operation{Method: "PATCH", Path: "/forms/{id}", Permission: "lists:write", ID: "updateForm", Summary: "Change a form", About: "Omitted fields keep their values.", Query: handler.IfVersionQuery(), Body: settings(false), Data: form, Also: []int{409}}},
		{Handle: a.remove, Operation: operation.Operation{Method: "DELETE", Path: "/forms/{id}", Permission: "lists:write", ID: "deleteForm", Summary: "Delete a form", About: "With its figures. People, consents and events stay."}},
		{Handle: a.stats, Operation: operation.Operation{Method: "GET", Path: "/forms/{id}/stats", Permission: "lists:read", ID: "formStats", Summary: "Read the figures of a form by day", About: "An account keeps the newest 400 days of a form.",
			Query: []operation.Parameter{
				operation.Query("from", shape.Text("2026-11-01", "First day, of UTC.")),
				operation.Query("to", shape.Text("2026-11-26", "Last day, of UTC.")),
			}, Data: stats}},
	}}
}
