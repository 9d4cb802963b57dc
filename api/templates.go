package api

import (
	"errors"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/resolver"
)

// template is a template as it is answered.
type template struct {
	ID        string  `json:"_id"`
	Name      string  `json:"name"`
	Source    string  `json:"source"` // LIST or DRAFT
	Subject   string  `json:"subject"`
	HTML      *string `json:"html,omitempty"` // not in lists, nor is the text
	Text      *string `json:"text,omitempty"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt string  `json:"updated_at"`
}

func newTemplate(_ *resolver.View, t *resolver.Template) template {
	return template{ID: t.ID, Name: t.Name, Source: t.Source, Subject: t.Subject, CreatedAt: record.Time(t.CreatedMs), UpdatedAt: record.Time(t.UpdatedMs)}
}

// wholeTemplate is a template with the texts that it comes with.
func wholeTemplate(t *resolver.Template) template {
	x := newTemplate(nil, t)
	x.HTML, x.Text = &t.HTML, &t.Text
	return x
}

func (a *API) listTemplates(c *call) (any, error) {
	return aged(a, c, (*resolver.View).Templates, func(t *resolver.Template) paging.Age { return paging.Age{CreatedMs: t.CreatedMs, ID: t.ID} }, newTemplate)
}

func (a *API) getTemplate(c *call) (any, error) {
	var out template
	err := a.read(c, func(v *resolver.View) error {
		t, ok, err := v.WholeTemplate(c.id())
		if err != nil {
			return err
		}
		if !ok {
			return missing("there is no template with this id")
		}
		out = wholeTemplate(&t)
		return nil
	})
	return out, err
}

// saveTemplate answers POST /templates and PUT /templates/{id}.
func (a *API) saveTemplate(c *call) (any, error) {
	in := struct {
		Name    string `json:"name"`
		Source  string `json:"source"`
		Subject string `json:"subject"`
		HTML    string `json:"html"`
		Text    string `json:"text"`
	}{Source: resolver.TemplateList}
	if err := a.decode(c, &in); err != nil {
		return nil, err
	}
	t := resolver.Template{Subject: in.Subject, HTML: in.HTML, Text: in.Text}
	var fault *messaging.ContentError
	if err := messaging.CheckTemplate(&t); errors.As(err, &fault) {
		return nil, badField(fault.Field, "%s", fault)
	} else if err != nil {
		return nil, err
	}
	err := a.command(c, resolver.CommandTemplateSave, resolver.Template{ID: c.id(), Name: in.Name, Source: in.Source, Subject: in.Subject, HTML: in.HTML, Text: in.Text}, &t)
	if err != nil {
		return nil, err
	}
	return wholeTemplate(&t), nil
}

func (a *API) deleteTemplate(c *call) (any, error) {
	return nil, a.command(c, resolver.CommandTemplateDelete, resolver.TemplateDelete{ID: c.id()}, nil)
}
