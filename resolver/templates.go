package resolver

import (
	"cmp"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of templates.
const (
	CommandTemplateSave   = "template.save"
	CommandTemplateDelete = "template.delete"
)

const (
	maxTemplates     = 10_000
	maxSubjectBytes  = 998 // a line of a message
	maxTemplateBytes = 1 << 20
)

// Template sources: a saved template, or a draft of the builder.
const (
	TemplateList  = "LIST"
	TemplateDraft = "DRAFT"
)

// Template is a text to be sent more than once.
type Template struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Source    string `json:"source"` // TemplateList or TemplateDraft
	Subject   string `json:"subject"`
	HTML      string `json:"html"` // kept apart, as Text is: see texts.go, [View.WholeTemplate]
	Text      string `json:"text"` // derived from HTML when empty
	CreatedMs int64  `json:"created_ms"`
	UpdatedMs int64  `json:"updated_ms"`
	// TextBytes is what the texts take up in the store.
	TextBytes int `json:"text_bytes,omitempty"`
	// Transactional marks a text that people expect who have unsubscribed, too, such as a
	// receipt. It concerns single e-mails alone, see [CommandEmailSend].
	Transactional bool `json:"transactional,omitempty"`
	// Confirms says that the texts have the link that confirms a subscription.
	Confirms bool `json:"confirms,omitempty"`
}

// TemplateSave makes a template, or changes the one with the ID.
type TemplateSave struct {
	Template
	// IfVersion is the version that is replaced, see [Template.Version]; "" for any.
	IfVersion string `json:"if_version,omitempty"`
}

// TemplateDelete removes a template that nothing refers to.
type TemplateDelete struct {
	ID string `json:"id"`
}

// saveTemplate makes a template, or replaces the one with the ID.
func (m *Machine) saveTemplate(cmd *command, c TemplateSave) *Refusal {
	a, t := cmd.account, c.Template
	if r := refuse.Name(t.Name); r != nil {
		return r
	}
	switch {
	case t.Source != TemplateList && t.Source != TemplateDraft:
		return invalid("source", "source Input should be LIST or DRAFT")
	case len(t.Subject) > maxSubjectBytes:
		return invalid("subject", "subject must have at most %d bytes", maxSubjectBytes)
	case len(t.HTML)+len(t.Text) > maxTemplateBytes:
		return atLimit("html", "html and text must have at most %d bytes together", maxTemplateBytes)
	}
	t.CreatedMs, t.UpdatedMs = m.logTime, m.logTime
	was := 0
	if t.ID == "" {
		if len(a.templates) >= maxTemplates {
			return atLimit("", "this account has %d templates, the most it can have; delete one first", maxTemplates)
		}
		t.ID = feature.NewID("tpl_", cmd.env.ID)
	} else {
		old := a.templates[t.ID]
		if old == nil {
			return noTemplate()
		}
		if r := feature.OtherVersion(c.IfVersion, func() string { return m.templateVersion(a, *old) }); r != nil {
			return r
		}
		if strings.TrimSpace(t.Subject) == "" && strings.TrimSpace(old.Subject) != "" {
			// What was checked when they went live must hold.
			if list := a.usesOfTemplate(t.ID); len(list) > 0 {
				return &Refusal{Code: "conflict", Field: "subject", Message: "subject: the template is used by " + users(list) + "; it must keep a subject"}
			}
		}
		t.CreatedMs, was = old.CreatedMs, old.TextBytes
	}
	texts := t.texts()
	if r := m.roomForText(a, "html", len(texts)-was); r != nil {
		return r
	}
	reply := t
	t.confirming()
	t.TextBytes = m.putText(a, textTemplate, t.ID, was, texts)
	t.HTML, t.Text = "", ""
	a.templates[t.ID] = &t
	m.store.PutEntity(state.EntityKey(a.number, state.EntityTemplate, t.ID), must.JSON(t))
	cmd.reply(reply)
	return nil
}

// confirming notes whether the texts have the link that confirms a subscription.
func (t *Template) confirming() { t.Confirms = strings.Contains(t.HTML+t.Text, TagConfirm) }

func noTemplate() *Refusal {
	return notFound("template_id", "template_id: there is no such template")
}

func (m *Machine) deleteTemplate(cmd *command, c TemplateDelete) *Refusal {
	a := cmd.account
	old := a.templates[c.ID]
	if old == nil {
		return noTemplate()
	}
	if list := a.usesOfTemplate(c.ID); len(list) > 0 {
		return &Refusal{Code: "conflict", Field: "template_id", Message: "the template is used by " + users(list) + "; change those first"}
	}
	if a.Settings.ConfirmTemplateID == c.ID {
		return &Refusal{Code: "conflict", Field: "template_id", Message: "the template is used by the setting confirm_template_id; change that first"}
	}
	m.putText(a, textTemplate, c.ID, old.TextBytes, nil)
	delete(a.templates, c.ID)
	m.store.PutEntity(state.EntityKey(a.number, state.EntityTemplate, c.ID), nil)
	return nil
}

// Templates lists the templates, the oldest first, without their texts.
func (v *View) Templates() []Template {
	out := make([]Template, 0, len(v.a.templates))
	for _, t := range v.a.templates {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(x, y Template) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), cmp.Compare(x.ID, y.ID))
	})
	return out
}

// Template finds a template; its texts are not read.
func (v *View) Template(id string) (Template, bool) {
	if t := v.a.templates[id]; t != nil {
		return *t, true
	}
	return Template{}, false
}
