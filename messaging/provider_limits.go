package messaging

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/credentials"
)

// CheckProviders says what of the texts of a campaign the account's providers never take; there is
// a content for each of its parts, prepared or not. What depends on the values of merge tags is
// left to the sending. A fault is a [*ContentError].
func CheckProviders(v *resolver.View, x *campaigns.Campaign, contents []campaigns.Content) error {
	parts := x.Parts()
	for i := range parts {
		if err := checkProvider(v, &parts[i], contents[i]); err != nil {
			return ofChannel(x, i, err)
		}
	}
	return nil
}

func checkProvider(v *resolver.View, x *campaigns.Campaign, c campaigns.Content) error {
	if !slices.Contains(textMedia, x.Medium()) {
		return nil
	}
	p, err := providerOf(v, x.Medium())
	switch {
	case err != nil:
		return err
	case c.WhatsApp != nil:
		if f := p.checkTemplate(c.WhatsApp); f != nil {
			return &ContentError{"", fault("whatsapp." + f.Field + " Input " + f.Text)}
		}
		return nil
	}
	reason, err := p.checkText(asText(c).Text, x.TrackLinks)
	if err != nil || reason == "" {
		return err
	}
	field := "body"
	if x.Body == "" && x.TemplateID != "" {
		field = "template_id"
	}
	return &ContentError{"", fault(field + " Input " + reason)}
}

// FlowProviderFaults lists what of the messages of a flow the account's providers never take, as
// [CheckProviders] does for a campaign. What is a fault of the definition is left to
// [flows.Flow.Validate].
func FlowProviderFaults(v *resolver.View, def *flows.Flow) (faults flows.Faults, err error) {
	eachMessage(def, func(s *flows.Step, m *flows.Message, path string) {
		if err != nil || m.SMS == nil && m.WhatsApp == nil {
			return
		}
		var p provider
		if p, err = providerOf(v, m.Channel); err != nil {
			return
		}
		f := &whatsapp.Fault{Field: "text"}
		switch x := m.WhatsApp; {
		case x == nil:
			f.Text, err = p.checkText(m.SMS.Text, m.SMS.TrackLinks)
		case x.Template.Name == "":
			f.Text, err = p.checkText(x.Text, x.TrackLinks)
		case x.Text != "" || slices.Contains(x.Template.Parameters, "") || x.Template.CheckOptions() != nil:
			// Validate says it.
		default:
			f = p.checkTemplate(&x.Template)
		}
		if err == nil && f != nil && f.Text != "" {
			faults = append(faults, flows.Fault{Step: s.ID, Path: jsonform.Below(path, f.Field), Message: strings.Replace(f.Text, "should", "must", 1)})
		}
	})
	return faults, err
}

// textMedia are the channels that have a provider of texts.
var textMedia = []string{mediumSMS, mediumWhatsApp, mediumIM}

// provider is what the account's provider of texts on a channel takes.
type provider struct {
	channel string
	set     bool
	config  text.Config
}

func providerOf(v *resolver.View, channel string) (p provider, err error) {
	p.channel = channel
	var c credentials.Credential
	if c, p.set = v.Credentials().Get(credentials.Message, channel); p.set {
		p.config, err = text.ParseConfig(c.Config)
	}
	return p, err
}

// checkText says why a text can never be sent, "" for nothing. tracked has its links counted, which
// makes them longer or shorter.
func (p *provider) checkText(body string, tracked bool) (reason string, err error) {
	if !p.set {
		return "", nil
	}
	c := campaigns.Content{Text: body}
	if tracked {
		if c, err = takeTextLinks(c); err != nil {
			return "", err
		}
	}
	t, err := merge.Parse(c.Text, merge.Text)
	if err != nil {
		return "", nil // said elsewhere, with its place
	}
	n, most := utf8.RuneCountInString(t.Literal()), p.config.Longest()
	if n <= most {
		return "", nil
	}
	return fmt.Sprintf("should have at most %d characters, which is what the provider of %s takes; without its merge tags it has %d", most, p.channel, n), nil
}

// checkTemplate says why a template can never be sent. Without a provider, a name that begins
// with HX is taken for a content SID of Twilio.
func (p *provider) checkTemplate(t *whatsapp.Template) *whatsapp.Fault {
	templates := p.config.Templates
	if !p.set {
		templates = text.CloudTemplates
		if strings.HasPrefix(t.Name, "HX") {
			templates = text.TwilioContent
		}
	}
	// Each merge tag stands for a value that fits; what it has in truth is looked at when the
	// message goes out.
	filled, err := t.Map(func(field, value string, mode merge.Mode) (string, error) {
		m, err := merge.Parse(value, mode)
		if err != nil {
			return "", err
		}
		return m.Render(func([]string) (string, bool) {
			if field == "header" && strings.HasPrefix(value, "{{") {
				return "https://x", true
			}
			return "x", true
		})
	})
	if err != nil {
		return nil // said elsewhere, with its place
	}
	if !p.set {
		filled.Language = cmp.Or(filled.Language, "en") // messages are captured: whether it needs one is known with the provider
	}
	return text.CheckTemplate(templates, filled)
}
