package messages

import (
	"errors"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/view"
)

// Templates are the calls about templates.
func (a *API) Templates() handler.Group {
	body := func() *shape.Schema {
		return shape.Object(
			shape.Req("name", shape.Text("Order confirmation", "").Bytes(1, 200)),
			shape.Opt("source", shape.Word("LIST is a saved template, DRAFT a draft of the builder.", "LIST", "DRAFT").Default("LIST")),
			shape.Opt("subject", shape.Text("Your order {{order}}", "").Bytes(0, 998)),
			shape.Opt("html", shape.Text("<p>Hello {{first_name}}</p>", "HTML of an e-mail. With `text` at most 1 MiB.")),
			shape.Opt("text", shape.Text("Hello {{first_name}}", "Plain text; left out, it is made of the HTML.")),
			shape.Opt("transactional", shape.Boolean(true, "Marks a message that people expect who have unsubscribed, too, such as a receipt or a new password. `POST /v1/email/send` refuses to send other templates to people who have unsubscribed. Campaigns and flows are marketing whatever their template.").Default(false)),
		)
	}
	template := shape.Named("Template", shape.Object(
		shape.Req("_id", shape.TemplateID("")), shape.Req("name", shape.Text("Order confirmation", "")), shape.Req("source", shape.Word("", "LIST", "DRAFT")),
		shape.Req("subject", shape.Text("Your order {{order}}", "")), shape.Opt("html", shape.Text("<p>Hello {{first_name}}</p>", "Not in lists of templates.")), shape.Opt("text", shape.Text("Hello {{first_name}}", "Not in lists of templates.")),
		shape.Req("transactional", shape.Boolean(true, "Whether `POST /v1/email/send` sends it to people who have unsubscribed, too.")),
		shape.Req("created_at", shape.Instant("")), shape.Req("updated_at", shape.Instant("")), shape.Opt("version", shape.ContentVersion()),
	))
	return handler.Group{Group: operation.Group{Surface: operation.SurfaceConsole, Tag: "Console: templates", Title: "Templates", About: "Reusable texts of messages."}, Routes: []handler.Route{
		{Handle: a.listTemplates, Operation: operation.Operation{Method: "GET", Path: "/templates", Permission: "templates:read", ID: "listTemplates", Summary: "List templates", About: "The oldest first.", Data: shape.List(template, ""), Paged: true}},
		{Handle: a.saveTemplate, Operation: operation.Operation{Method: "POST", Path: "/templates", Permission: "templates:write", ID: "createTemplate", Summary: "Save a template", Body: body(), Data: template}},
		{Handle: a.getTemplate, Operation: operation.Operation{Method: "GET", Path: "/templates/{id}", Permission: "templates:read", ID: "getTemplate", Summary: "Read a template", Data: template}},
		{Handle: a.saveTemplate, Operation: operation.Operation{Method: "PUT", Path: "/templates/{id}", Permission: "templates:write", ID: "updateTemplate", Summary: "Replace a template", Query: handler.IfVersionQuery(), Body: body(), Data: template, Also: []int{409}}},
		{Handle: a.deleteTemplate, Operation: operation.Operation{Method: "DELETE", Path: "/templates/{id}", Permission: "templates:write", ID: "deleteTemplate", Summary: "Delete a template", About: "Refused while a campaign that was not sent uses it."}},
		{Handle: a.renderTemplate, Operation: operation.Operation{Method: "POST", Path: "/templates/{id}/render", Permission: "templates:read", ID: "renderTemplate", Summary: "Render a template for one person",
			About: "Nothing is sent. Merge tags are filled in; links are as they were written, `{{unsubscribe_url}}` is `#unsubscribe`, `{{preferences_url}}` `#preferences` and `{{confirm_url}}` `#confirm`: the recipient's own are made when it is sent. Texts that are given here take the place of those that are saved, and are not saved.",
			Body: shape.Object(
				shape.Opt("profile_id", shape.ProfileID("The person. Give this or `email`.")),
				shape.Opt("email", shape.Text("ann@example.com", "An e-mail of the person.").Bytes(1, 512)),
				shape.Opt("data", shape.FreeObject(shape.Pairs("order", "1001"), "Values of further merge tags, as of a single e-mail.")),
				shape.Opt("subject", shape.Text("Your order {{order}}", "Instead of the template's.").Bytes(0, 998)),
				shape.Opt("html", shape.Text("<p>Hello {{first_name}}</p>", "Instead of the template's.").With("maxLength", 1048576)),
				shape.Opt("text", shape.Text("Hello {{first_name}}", "Instead of the template's.").With("maxLength", 1048576)),
			), Data: shape.Named("RenderedTemplate", shape.Object(
				shape.Req("profile_id", shape.ProfileID("")), shape.Req("subject", shape.Text("Your order 1001", "")),
				shape.Req("html", shape.Text("<p>Hello Ann</p>", "")), shape.Req("text", shape.Text("Hello Ann", "Empty where the template has none: it is made of the HTML when it is sent.")),
			))}},
		templateVersionsRoute(),
		handler.UsedInRoute("/templates", "templates:read", "templateUsedIn", "a template", handler.KeepsFromDeletion, view.UsedIn.Template, errNoTemplate),
	}}
}

// template is a template as it is answered.
type template struct {
	ID      string  `json:"_id"`
	Name    string  `json:"name"`
	Source  string  `json:"source"` // LIST or DRAFT
	Subject string  `json:"subject"`
	HTML    *string `json:"html,omitempty"` // not in lists, nor is the text
	Text    *string `json:"text,omitempty"`
	// Transactional templates go to people who have unsubscribed, too.
	Transactional bool   `json:"transactional"`
	CreatedAt     string `json:"created_at"`
	UpdatedAt     string `json:"updated_at"`
	// Version names the texts and the settings; not in lists.
	Version string `json:"version,omitempty"`
}

func newTemplate(_ *resolver.View, t *campaigns.Template) template {
	return template{ID: t.ID, Name: t.Name, Source: t.Source, Subject: t.Subject, Transactional: t.Transactional, CreatedAt: record.Time(t.CreatedMs), UpdatedAt: record.Time(t.UpdatedMs)}
}

// wholeTemplate is a template with the texts that it comes with.
func wholeTemplate(t *campaigns.Template) template {
	x := newTemplate(nil, t)
	x.HTML, x.Text, x.Version = &t.HTML, &t.Text, t.Version()
	return x
}

func (a *API) listTemplates(c *handler.Call) (any, error) {
	return handler.OldestFirst(c, func(v *resolver.View) []campaigns.Template { return v.Campaigns().Templates() }, func(t *campaigns.Template) paging.Age { return paging.Age{CreatedMs: t.CreatedMs, ID: t.ID} }, newTemplate)
}

func (a *API) getTemplate(c *handler.Call) (any, error) {
	var out template
	err := c.Read(func(v *resolver.View) error {
		t, ok, err := v.Campaigns().WholeTemplate(c.PathID())
		if err != nil {
			return err
		}
		if !ok {
			return errNoTemplate
		}
		out = wholeTemplate(&t)
		return nil
	})
	return out, err
}

// saveTemplate answers POST /templates and PUT /templates/{id}.
func (a *API) saveTemplate(c *handler.Call) (any, error) {
	in := struct {
		Name    string `json:"name"`
		Source  string `json:"source"`
		Subject string `json:"subject"`
		HTML    string `json:"html"`
		Text    string `json:"text"`

		Transactional bool `json:"transactional"`
	}{Source: campaigns.TemplateList}
	if err := c.Decode(&in); err != nil {
		return nil, err
	}
	t := campaigns.Template{Subject: in.Subject, HTML: in.HTML, Text: in.Text}
	var fault *compose.ContentError
	if err := compose.CheckTemplate(&t); errors.As(err, &fault) {
		return nil, handler.BadField(fault.Field, "%s", fault)
	} else if err != nil {
		return nil, err
	}
	err := c.Command(campaigns.CommandTemplateSave, campaigns.TemplateSave{IfVersion: c.IfVersion(), Template: campaigns.Template{ID: c.PathID(), Name: in.Name, Source: in.Source, Subject: in.Subject, HTML: in.HTML, Text: in.Text, Transactional: in.Transactional}}, &t)
	if err != nil {
		return nil, err
	}
	return wholeTemplate(&t), nil
}

func (a *API) deleteTemplate(c *handler.Call) (any, error) {
	return nil, c.Command(campaigns.CommandTemplateDelete, campaigns.TemplateDelete{ID: c.PathID()}, nil)
}

var errNoTemplate = handler.NotFound("there is no template with this id")

func templateVersionsRoute() handler.Route {
	return handler.ContentVersionsRoute("/templates/{id}", "templates:read", "templateVersions", "TemplateVersion", "a template", "template",
		shape.Named("TemplateContent", shape.Object(shape.Req("name", shape.Text("Order confirmation", "")), shape.Req("source", shape.Word("", "LIST", "DRAFT")), shape.Req("subject", shape.Text("Your order {{order}}", "")),
			shape.Req("html", shape.Text("<p>Hello {{first_name}}</p>", "")), shape.Req("text", shape.Text("Hello {{first_name}}", "")), shape.Req("transactional", shape.Boolean(true, "")))), nil,
		func(v *resolver.View, id string) error {
			if _, ok := v.Campaigns().Template(id); !ok {
				return errNoTemplate
			}
			return nil
		})
}
