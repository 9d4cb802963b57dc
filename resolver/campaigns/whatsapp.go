package campaigns

import (
	"strings"

	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// ServiceWhatsApp is the [Campaign.Service] of campaigns of type [TypeIM] that go out by
// WhatsApp.
const ServiceWhatsApp = "whatsapp"

// ServiceInApp is what answers and requests call [TypeInApp]: there it is a service of
// [TypePush], since types are those that clients know.
const ServiceInApp = "in_app"

const mediumWhatsApp = "whatsapp"

// The bounds of templates, as those of a flow's step.
const (
	maxTemplateName     = 512
	maxTemplateLanguage = 20
)

// TextOnly reports whether a campaign goes only to people who wrote by WhatsApp in the last
// 24 hours, since it has no template.
func (c *Campaign) TextOnly() bool { return c.Medium() == mediumWhatsApp && c.WhatsApp == nil }

// CheckService says what is wrong with what a campaign says of WhatsApp.
func (c *Campaign) CheckService() *refuse.Refusal {
	t := c.WhatsApp
	switch {
	case c.Service != "" && c.Service != ServiceWhatsApp:
		return refuse.Invalid("service", "service Input should be whatsapp with type 3, in_app with type 4, or left out for the account's own instant messenger and for push messages")
	case c.Service != "" && (c.Channel != ChannelSingle || c.Type != TypeIM):
		return refuse.Invalid("service", "service Input should be left out where channel is not 2 or type not 3: WhatsApp is an instant messenger")
	case t == nil:
		return nil
	case c.Service == "":
		return refuse.Invalid("whatsapp", `whatsapp Input should be left out without "service": "whatsapp"`)
	case c.Body != "" || c.TemplateID != "":
		return refuse.Invalid("whatsapp", "whatsapp Input should be left out where there is a body or template_id: only one of them can be sent; empty the others to send a template of WhatsApp")
	case strings.TrimSpace(t.Name) == "" || len(t.Name) > maxTemplateName:
		return refuse.Invalid("whatsapp.template", "whatsapp.template Field required: the name of a template that WhatsApp has approved, of at most %d bytes; leave whatsapp out to send the body as a text", maxTemplateName)
	case len(t.Language) > maxTemplateLanguage:
		return refuse.Invalid("whatsapp.language", "whatsapp.language Input should have at most %d bytes, such as en_US", maxTemplateLanguage)
	case len(t.Parameters) > whatsapp.MaxParameters:
		return refuse.Invalid("whatsapp.parameters", "whatsapp.parameters Input should have at most %d entries", whatsapp.MaxParameters)
	case len(t.Header) > whatsapp.MaxValueBytes:
		return refuse.Invalid("whatsapp.header", "whatsapp.header Input should have at most %d bytes", whatsapp.MaxValueBytes)
	}
	for i, p := range t.Parameters {
		if strings.TrimSpace(p) == "" || len(p) > whatsapp.MaxValueBytes {
			return refuse.Invalid("whatsapp.parameters", "whatsapp.parameters[%d] Input should have 1 to %d bytes; WhatsApp takes no empty values", i, whatsapp.MaxValueBytes)
		}
	}
	if f := t.CheckOptions(); f != nil {
		return refuse.Invalid("whatsapp."+f.Field, "whatsapp.%s Input %s", f.Field, f.Text)
	}
	return nil
}
