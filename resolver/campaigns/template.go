package campaigns

import (
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
)

// Template is a text to be sent more than once.
type Template struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Source    string `json:"source"` // TemplateList or TemplateDraft
	Subject   string `json:"subject"`
	HTML      string `json:"html"` // kept apart, as Text is: see [State.WholeTemplate]
	Text      string `json:"text"` // derived from HTML when empty
	CreatedMs int64  `json:"created_ms"`
	UpdatedMs int64  `json:"updated_ms"`
	// TextBytes is what the texts take up in the store.
	TextBytes int `json:"text_bytes,omitempty"`
	// Transactional marks a text that people expect who have unsubscribed, too, such as a
	// receipt. It concerns single e-mails alone.
	Transactional bool `json:"transactional,omitempty"`
	// Confirms says that the texts have the link that confirms a subscription.
	Confirms bool `json:"confirms,omitempty"`
}

// Version names the template's content, see [TemplateSave]. The texts must be there, as
// [State.WholeTemplate] has them.
func (t *Template) Version() string {
	return feature.Version(t.Name, t.Source, t.Subject, t.HTML, t.Text, strconv.FormatBool(t.Transactional))
}

// confirming notes whether the texts have the link that confirms a subscription.
func (t *Template) confirming() { t.Confirms = strings.Contains(t.HTML+t.Text, TagConfirm) }

// templateTexts are the texts of a template as they are stored.
type templateTexts struct {
	HTML string `json:"html"`
	Text string `json:"text"`
}

func (t *Template) texts() []byte {
	if t.HTML == "" && t.Text == "" {
		return nil
	}
	return must.JSON(templateTexts{t.HTML, t.Text})
}
