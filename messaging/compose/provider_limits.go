package compose

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
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/messages"
)

// CheckProviders says what of the texts of a campaign the account's providers never take; there is
// a content for each of its parts, prepared or not. What depends on the values of merge tags is
// left to the sending. publicURL is where recipients reach the service. A fault is a
// [*ContentError].
func CheckProviders(v *resolver.View, publicURL string, x *campaigns.Campaign, contents []campaigns.Content) error {
	parts := x.Parts()
	for i := range parts {
		if err := checkProvider(v, publicURL, &parts[i], contents[i]); err != nil {
			return ofChannel(x, i, err)
		}
	}
	return nil
}

func checkProvider(v *resolver.View, publicURL string, x *campaigns.Campaign, c campaigns.Content) error {
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
	c = asText(c)
	if x.TrackLinks {
		if c, err = TakeTextLinks(c); err != nil {
			return err
		}
	}
	reason := p.checkText(c, Links{Base: publicURL})
	if reason == "" {
		return nil
	}
	field := "body"
	if x.Body == "" && x.TemplateID != "" {
		field = "template_id"
	}
	return &ContentError{"", fault(field + " Input " + reason)}
}

// FlowProviderFaults lists what of the messages of a flow the account's providers never take, as
// [CheckProviders] does for a campaign. flow is the id of the flow, publicURL where
// recipients reach the service. What is a fault of the definition is left to [flows.Flow.Validate].
func FlowProviderFaults(v *resolver.View, publicURL, flow string, def *flows.Flow) (faults flows.Faults, err error) {
	eachMessage(def, func(s *flows.Step, m *flows.Message, path string) {
		if err != nil || m.SMS == nil && m.WhatsApp == nil {
			return
		}
		var p provider
		if p, err = providerOf(v, m.Channel); err != nil {
			return
		}
		text := func(body string, tracked bool) (reason string, err error) {
			c := campaigns.Content{Text: body}
			if tracked {
				if c, err = TakeTextLinks(c); err != nil {
					return "", err
				}
			}
			return p.checkText(c, Links{Base: publicURL, Flow: flow, Step: s.ID}), nil
		}
		f := &whatsapp.Fault{Field: "text"}
		switch x := m.WhatsApp; {
		case x == nil:
			f.Text, err = text(m.SMS.Text, m.SMS.TrackLinks)
		case x.Template.Name == "":
			f.Text, err = text(x.Text, x.TrackLinks)
		case x.Text != "" || slices.Contains(x.Template.Parameters, "") || x.Template.CheckOptions() != nil:
			// Validate says it.
		default:
			if f = x.Template.CheckHost(); f == nil {
				f = p.checkTemplate(&x.Template)
			}
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

// checkText says why a text can never be sent, "" for nothing. Links that Muster makes count at
// their full length; other merge tags, whose values differ, as nothing.
func (p *provider) checkText(content campaigns.Content, l Links) (reason string) {
	if !p.set {
		return ""
	}
	c, err := Compile(content)
	if err != nil {
		return "" // said elsewhere, with its place
	}
	made := 0
	c.TextTemplate.Paths(func(path []string) { made += utf8.RuneCountInString(c.madeLink(l, path)) })
	n, most := utf8.RuneCountInString(c.TextTemplate.Literal())+made, p.config.Longest()
	switch {
	case n <= most:
		return ""
	case made > 0:
		return fmt.Sprintf("should have at most %d characters, which is what the provider of %s takes; with the links that Muster makes, and without its other merge tags, it has %d", most, p.channel, n)
	}
	return fmt.Sprintf("should have at most %d characters, which is what the provider of %s takes; without its merge tags it has %d", most, p.channel, n)
}

// madeLink is a link as long as the one that stands in the place of a merge tag when a text goes
// out, "" for a tag that is no link of Muster's. Merge tags of the address that a link of a flow
// carries count as nothing.
func (c *Compiled) madeLink(l Links, path []string) string {
	var send messages.ID
	n, click := clickTag(path, len(c.links))
	switch {
	case click && l.Flow != "":
		least := c.links[n].Literal()
		if encoded, err := tracking.Location(c.Links[n], least); err == nil {
			least = encoded // as it goes out
		}
		return l.clickTo(send, n, least)
	case click:
		return l.URL(tracking.Click, send, n)
	case len(path) == 1 && path[0] == TagUnsubscribe:
		return l.URL(tracking.Unsubscribe, send, 0)
	case len(path) == 1 && path[0] == TagPreferences:
		return l.URL(tracking.Preferences, send, 0)
	}
	return ""
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
			switch {
			case field == "header" && strings.HasPrefix(value, "{{"):
				return "https://x", true
			case field == "header_location.latitude" || field == "header_location.longitude":
				return "1", true
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
