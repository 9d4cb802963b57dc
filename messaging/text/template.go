package text

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/must"
)

// How providers take WhatsApp templates, see [Config.Templates].
const (
	// CloudTemplates is the form of Meta's Cloud API.
	CloudTemplates = "whatsapp_cloud"
	// TwilioContent is that of Twilio: the name is a content SID, which begins with HX.
	TwilioContent = "twilio_content"
)

// The bounds of templates.
const (
	maxTemplateParameters = 20
	maxParameterBytes     = 1024
)

// Template is a message that WhatsApp has approved, with values for its placeholders. It
// may be sent at any time, while free texts may be sent only within a day of what the
// person wrote last.
type Template struct {
	Name       string
	Language   string   // such as en_US; not with TwilioContent
	Parameters []string // of the body, in order
	Header     string   // of the header: a text, or the https URL of a picture; "" for none
}

// String is the template with its values, one in each line, for people who look at what is
// sent.
func (t *Template) String() string {
	out := "template " + t.Name
	if t.Language != "" {
		out += " (" + t.Language + ")"
	}
	for _, p := range append([]string{t.Header}, t.Parameters...) {
		if p != "" {
			out += "\n" + p
		}
	}
	return out
}

// Shown is what a message says, for people who look at what was captured.
func (m *Message) Shown() string {
	if m.Template == nil {
		return m.Body
	}
	return m.Template.String()
}

// checkTemplate names what keeps a template from being sent.
func (s *Sender) checkTemplate(t *Template) error {
	switch {
	case s.c.Templates == "":
		return errors.New("the provider takes no templates; use the preset whatsapp_cloud or twilio")
	case t.Name == "" || len(t.Name) > 512:
		return errors.New("template: name is missing, or longer than 512 bytes")
	case s.c.Templates == CloudTemplates && (t.Language == "" || len(t.Language) > 20):
		return errors.New("template: language is missing; give the template's, such as en_US")
	case len(t.Parameters) > maxTemplateParameters:
		return fmt.Errorf("template: %d parameters, at most %d are allowed", len(t.Parameters), maxTemplateParameters)
	}
	for i, p := range append(t.Parameters, t.Header) {
		if i < len(t.Parameters) && strings.TrimSpace(p) == "" {
			return fmt.Errorf("template: parameter %d is empty; WhatsApp takes no empty ones", i+1)
		}
		if len(p) > maxParameterBytes || strings.ContainsAny(p, "\n\t") || strings.Contains(p, "    ") {
			return fmt.Errorf("template: parameter %d is longer than %d bytes, or has a line break, a tab or four spaces", i+1, maxParameterBytes)
		}
	}
	return nil
}

type object = map[string]any

// cloudBody is the message in the form of Meta's Cloud API.
func (m *Message) cloudBody() []byte {
	t := m.Template
	var components []object
	if t.Header != "" {
		value := object{"type": "text", "text": t.Header}
		if strings.HasPrefix(t.Header, "https://") {
			value = object{"type": "image", "image": object{"link": t.Header}}
		}
		components = append(components, object{"type": "header", "parameters": []object{value}})
	}
	if len(t.Parameters) > 0 {
		var values []object
		for _, p := range t.Parameters {
			values = append(values, object{"type": "text", "text": p})
		}
		components = append(components, object{"type": "body", "parameters": values})
	}
	template := object{"name": t.Name, "language": object{"code": t.Language}}
	if components != nil {
		template["components"] = components
	}
	return must.PlainJSON(object{"messaging_product": "whatsapp", "recipient_type": "individual", "to": m.To, "type": "template", "template": template, "biz_opaque_callback_data": m.ID})
}

// contentForm makes the form one of Twilio's Content API: the header's value is the first
// variable.
func (m *Message) contentForm(form url.Values) {
	t := m.Template
	values := t.Parameters
	if t.Header != "" {
		values = append([]string{t.Header}, values...)
	}
	form.Del("Body")
	form.Set("ContentSid", t.Name)
	if len(values) > 0 {
		variables := map[string]string{}
		for i, v := range values {
			variables[strconv.Itoa(i+1)] = v
		}
		form.Set("ContentVariables", string(must.PlainJSON(variables)))
	}
}
