package campaigns

import (
	"cmp"
	"encoding/json"
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

// TagConfirm is the merge tag of the link that confirms a subscription.
const TagConfirm = "confirm_url"

const (
	maxTemplates     = 10_000
	maxTemplateBytes = 1 << 20
)

// Template sources: a saved template, or a draft of the builder.
const (
	TemplateList  = "LIST"
	TemplateDraft = "DRAFT"
)

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
func (s *State) saveTemplate(tx *feature.Tx, c TemplateSave) *refuse.Refusal {
	t := c.Template
	if r := refuse.Name(t.Name); r != nil {
		return r
	}
	switch {
	case t.Source != TemplateList && t.Source != TemplateDraft:
		return refuse.Invalid("source", "source Input should be LIST or DRAFT")
	case len(t.Subject) > MaxSubjectBytes:
		return refuse.Invalid("subject", "subject must have at most %d bytes", MaxSubjectBytes)
	case len(t.HTML)+len(t.Text) > maxTemplateBytes:
		return refuse.AtLimit("html", "html and text must have at most %d bytes together", maxTemplateBytes)
	}
	t.CreatedMs, t.UpdatedMs = tx.AtMs, tx.AtMs
	was := 0
	if t.ID == "" {
		if len(s.templates) >= maxTemplates {
			return refuse.AtLimit("", "this account has %d templates, the most it can have; delete one first", maxTemplates)
		}
		t.ID = feature.NewID("tpl_", tx.Record)
	} else {
		old := s.templates[t.ID]
		if old == nil {
			return NoTemplate()
		}
		if r := feature.OtherVersion(c.IfVersion, func() string { return s.templateVersion(*old) }); r != nil {
			return r
		}
		if strings.TrimSpace(t.Subject) == "" && strings.TrimSpace(old.Subject) != "" {
			// What was checked when they went live must hold.
			if users := s.host.TemplateUsers(t.ID); users != "" {
				return refuse.Conflicts("subject", "subject: the template is used by %s; it must keep a subject", users)
			}
		}
		t.CreatedMs, was = old.CreatedMs, old.TextBytes
	}
	texts := t.texts()
	if r := s.roomForText("html", len(texts)-was); r != nil {
		return r
	}
	reply := t
	t.confirming()
	t.TextBytes = s.putText(textTemplate, t.ID, was, texts)
	t.HTML, t.Text = "", ""
	s.templates[t.ID] = &t
	s.put(state.EntityTemplate, t.ID, must.JSON(t))
	tx.Reply = reply
	return nil
}

// NoTemplate refuses a template_id that names nothing.
func NoTemplate() *refuse.Refusal {
	return refuse.NotFound("template_id", "template_id: there is no such template")
}

func (s *State) deleteTemplate(tx *feature.Tx, c TemplateDelete) *refuse.Refusal {
	old := s.templates[c.ID]
	if old == nil {
		return NoTemplate()
	}
	if users := s.host.TemplateUsers(c.ID); users != "" {
		return refuse.Conflicts("template_id", "the template is used by %s; change those first", users)
	}
	if s.host.ConfirmTemplate() == c.ID {
		return refuse.Conflicts("template_id", "the template is used by the setting confirm_template_id; change that first")
	}
	s.putText(textTemplate, c.ID, old.TextBytes, nil)
	delete(s.templates, c.ID)
	s.put(state.EntityTemplate, c.ID, nil)
	return nil
}

// Templates lists the templates, the oldest first, without their texts.
func (s *State) Templates() []Template {
	out := make([]Template, 0, len(s.templates))
	for _, t := range s.templates {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(x, y Template) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), cmp.Compare(x.ID, y.ID))
	})
	return out
}

// Template finds a template; its texts are not read.
func (s *State) Template(id string) (Template, bool) {
	if t := s.templates[id]; t != nil {
		return *t, true
	}
	return Template{}, false
}

// templateVersion is the version of a template whose texts are in the store.
func (s *State) templateVersion(t Template) string {
	if err := s.readTexts(&t); err != nil {
		panic(err)
	}
	return t.Version()
}

// WholeTemplate is a template with its texts.
func (s *State) WholeTemplate(id string) (t Template, ok bool, err error) {
	if t, ok = s.Template(id); ok {
		err = s.readTexts(&t)
	}
	return t, ok, err
}

// readTexts gives a template its texts, none if they cannot be read.
func (s *State) readTexts(t *Template) error {
	var x templateTexts
	err := s.readText(textTemplate, t.ID, &x)
	t.HTML, t.Text = x.HTML, x.Text
	return err
}

func (s *State) loadTemplate(value []byte) error {
	t := new(Template)
	if err := json.Unmarshal(value, t); err != nil {
		return err
	}
	s.textBytes += int64(t.TextBytes)
	s.templates[t.ID] = t
	return nil
}
