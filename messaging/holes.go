package messaging

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/jsontext"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/reach"
)

// missing is why a message is not sent to somebody: a merge tag of it would leave a hole in
// the text ("Hello ,").
func missing(tag string) string {
	return "{{" + tag + "}} has no value for this person, and no default"
}

// hole finds the first merge tag of an e-mail or a push message without a value and a
// default, "" when there is none.
func (c *compiled) hole(values merge.Lookup) (tag string) {
	for _, t := range slices.Concat([]*merge.Template{c.subject, c.name, c.html, c.text, c.link}, c.links) {
		if tag = t.Missing(values); tag != "" {
			break
		}
	}
	return tag
}

// holes refuses a message of a flow that has a hole.
func (c *compiled) holes(values merge.Lookup) error {
	if tag := c.hole(values); tag != "" {
		return errMissing(tag)
	}
	return nil
}

// holeOn is [compiled.hole] of what is sent on a channel of campaigns.
func (c *compiled) holeOn(medium string, values merge.Lookup) string {
	switch medium {
	case mediumEmail, mediumPush:
		return c.hole(values)
	}
	texts := append([]*merge.Template{c.text}, c.links...)
	for _, v := range c.whatsApp {
		texts = append(texts, v.t)
	}
	for _, t := range texts {
		if tag := t.Missing(values); tag != "" {
			return tag
		}
	}
	return ""
}

// Holes finds those to whom a campaign is not sent since a merge tag has no value.
type Holes struct {
	content *compiled
	medium  string
}

// CampaignHoles is for what a campaign sends. It is nil for a content without merge tags,
// and for one that cannot be sent to anybody.
func CampaignHoles(x *campaigns.Campaign, content campaigns.Content) *Holes {
	if x.Medium() != mediumEmail {
		content = asText(content)
	}
	c, err := compile(content)
	if err != nil || c.holeOn(x.Medium(), linksOnly) == "" {
		return nil
	}
	return &Holes{c, x.Medium()}
}

// linksOnly answers the merge tags that have a value for everybody.
func linksOnly(path []string) (string, bool) {
	return sampleUnsubscribe, path[0] == TagUnsubscribe || path[0] == TagPreferences || ownTag(path)
}

// Reason says why the campaign passes over a person, "" if none of its tags is missing.
func (h *Holes) Reason(p *resolver.Profile) string {
	if h == nil {
		return ""
	}
	profile := ProfileValues(p)
	tag := h.content.holeOn(h.medium, func(path []string) (string, bool) {
		if value, ok := linksOnly(path); ok {
			return value, ok
		}
		return profile(path)
	})
	if tag == "" {
		return ""
	}
	return missing(tag)
}

// MailHole refuses a single e-mail with a merge tag that has no value: neither data nor the
// profile has one, and the template no default. p may be a zero [resolver.Profile]. A fault
// is a [*ContentError].
func MailHole(t campaigns.Template, subject, senderName string, data []byte, p *resolver.Profile) error {
	c, err := compileMail(t, subject, senderName)
	if err != nil {
		return err
	}
	profile := ProfileValues(p)
	values := func(path []string) (string, bool) {
		if value, ok := linksOnly(path); ok {
			return value, ok
		}
		if value, ok := jsontext.Scalar(data, path); ok {
			return value, true
		}
		return profile(path)
	}
	for _, f := range []struct {
		field string
		t     *merge.Template
	}{{"subject", c.subject}, {"sender_name", c.name}, {"body", c.html}, {"text", c.text}} {
		if tag := f.t.Missing(values); tag != "" {
			return &ContentError{f.field, fmt.Errorf("{{%s}} has no value for this person; give data.%[1]s, or a default in the template, such as {{%[1]s | default: \"\"}}", tag)}
		}
	}
	return nil
}

// textOfStep is all that a step which sends a text says.
func textOfStep(s *flows.Step) string {
	if s.SMS != nil {
		return s.SMS.Text
	}
	return strings.Join(append([]string{s.WhatsApp.Text, s.WhatsApp.Header}, s.WhatsApp.Parameters...), "\n")
}

// FlowHoles says, by the place of the step, why messages of a flow would not be sent to a
// person who may be sent to. What an event of its trigger says is not known: tags event.…
// are taken to have a value.
func FlowHoles(v *resolver.View, def *flows.Flow, p *resolver.Profile) (map[int]string, error) {
	known, profile := flowTags(def.Trigger.Type), ProfileValues(p)
	values := func(path []string) (string, bool) {
		if len(path) > 1 && path[0] == "event" {
			return "event", known.Has(path)
		}
		if value, ok := linksOnly(path); ok {
			return value, ok
		}
		return profile(path)
	}
	out := map[int]string{}
	for i := range def.Steps {
		var content campaigns.Content
		switch s := &def.Steps[i]; {
		case s.SMS != nil, s.WhatsApp != nil:
			refused, err := v.NumberRefused(p.Ordinal, s.Type)
			if err != nil {
				return nil, err
			}
			if refused {
				out[i] = reach.ReasonNumberRefused
				continue
			}
			content = campaigns.Content{Text: textOfStep(s)}
		case s.Email != nil:
			content = campaigns.Content{HTML: s.Email.Body, Text: s.Email.Text}
			if s.Email.TemplateID != "" {
				t, ok, err := v.Campaigns().WholeTemplate(s.Email.TemplateID)
				if err != nil {
					return nil, err
				}
				if !ok {
					continue // it is a fault of the flow
				}
				content = campaigns.Content{Subject: t.Subject, HTML: t.HTML, Text: t.Text}
			}
			content.Subject, content.SenderName = cmp.Or(s.Email.Subject, content.Subject), s.Email.SenderName
		default:
			continue
		}
		c, err := compile(content)
		if err != nil {
			continue // likewise
		}
		if tag := c.hole(values); tag != "" {
			out[i] = missing(tag)
		}
	}
	return out, nil
}
