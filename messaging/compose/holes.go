package compose

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/reach"
	"github.com/musterhq/muster/resolver/view"
)

// Missing is why a message is not sent to a recipient: a merge tag of it would leave a hole
// in the text ("Hello ,").
func Missing(tag string) string {
	return "{{" + tag + "}} has no value for this person, and no default"
}

// hole finds the first merge tag of an e-mail or a push message without a value and a
// default, "" when there is none.
func (c *Compiled) hole(values merge.Lookup) (tag string) {
	for _, t := range slices.Concat([]*merge.Template{c.SubjectTemplate, c.name, c.html, c.TextTemplate, c.LinkTemplate}, c.links) {
		if tag = t.Missing(values); tag != "" {
			break
		}
	}
	return tag
}

// CheckHoles refuses a message of a flow that has a hole.
func (c *Compiled) CheckHoles(values merge.Lookup) error {
	if tag := c.hole(values); tag != "" {
		return errMissing(tag)
	}
	return nil
}

// HoleOn is [Compiled.hole] of what is sent on a channel of campaigns.
func (c *Compiled) HoleOn(medium string, values merge.Lookup) string {
	switch medium {
	case MediumEmail, MediumPush, MediumInApp:
		return c.hole(values)
	}
	texts := append([]*merge.Template{c.TextTemplate}, c.links...)
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
	content *Compiled
	medium  string
}

// CampaignHoles is for what a campaign sends. It is nil for a content without merge tags,
// and for one that cannot be sent to anybody.
func CampaignHoles(x *campaigns.Campaign, content campaigns.Content) *Holes {
	if x.Medium() != MediumEmail {
		content = asText(content)
	}
	return HolesOf(x.Medium(), content)
}

func HolesOf(medium string, content campaigns.Content) *Holes {
	c, err := Compile(content)
	if err != nil || c.HoleOn(medium, linksOnly) == "" {
		return nil
	}
	return &Holes{c, medium}
}

// linksOnly answers the merge tags that have a value for everybody.
func linksOnly(path []string) (string, bool) {
	return sampleUnsubscribe, path[0] == TagUnsubscribe || path[0] == TagPreferences || ownTag(path)
}

// Reason says why the campaign passes over a person, "" if none of its tags is missing.
func (h *Holes) Reason(p *view.Profile) string {
	if h == nil {
		return ""
	}
	profile := ProfileValues(p)
	tag := h.content.HoleOn(h.medium, func(path []string) (string, bool) {
		if value, ok := linksOnly(path); ok {
			return value, ok
		}
		return profile(path)
	})
	if tag == "" {
		return ""
	}
	return Missing(tag)
}

// MailHole refuses a single e-mail with a merge tag that has no value: neither data nor the
// profile has one, and the template no default. p may be a zero [view.Profile]. A fault
// is a [*ContentError].
func MailHole(t campaigns.Template, subject, senderName string, data []byte, p *view.Profile) error {
	c, err := compileMail(t, subject, senderName)
	if err != nil {
		return err
	}
	profile := ProfileValues(p)
	values := func(path []string) (string, bool) {
		if value, ok := linksOnly(path); ok {
			return value, ok
		}
		if value, ok := rawjson.Scalar(data, path); ok {
			return value, true
		}
		return profile(path)
	}
	for _, f := range []struct {
		field string
		t     *merge.Template
	}{{"subject", c.SubjectTemplate}, {"sender_name", c.name}, {"body", c.html}, {"text", c.TextTemplate}} {
		if tag := f.t.Missing(values); tag != "" {
			return &ContentError{f.field, fmt.Errorf("{{%s}} has no value for this person; give data.%[1]s, or a default in the template, such as {{%[1]s | default: \"\"}}", tag)}
		}
	}
	return nil
}

// Holed says why messages of a flow would not be sent to a person who may be sent to, by the
// place of the step and that of the message among its messages.
type Holed map[int]map[int]string

// FlowHoles finds the [Holed] messages of a flow. What an event of its trigger says is not
// known: tags event.… are taken to have a value.
func FlowHoles(v *resolver.View, def *flows.Flow, p *view.Profile) (Holed, error) {
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
	out := Holed{}
	for i := range def.Steps {
		for k := range def.Steps[i].Messages {
			why, err := messageHole(v, &def.Steps[i].Messages[k], p, values)
			if err != nil {
				return nil, err
			}
			if why == "" {
				continue
			}
			if out[i] == nil {
				out[i] = map[int]string{}
			}
			out[i][k] = why
		}
	}
	return out, nil
}

// messageHole says why a message of a flow would not be sent to a person, "" for nothing.
// What is a fault of the flow is none.
func messageHole(v *resolver.View, m *flows.Message, p *view.Profile, values merge.Lookup) (string, error) {
	var content campaigns.Content
	switch {
	case m.SMS != nil, m.WhatsApp != nil:
		if refused, err := v.Reach().NumberRefused(p.Ordinal, m.Channel); err != nil || refused {
			return reach.ReasonNumberRefused, err
		}
		if x := m.SMS; x != nil {
			content.Text = x.Text
		} else {
			content.Text, content.WhatsApp = m.WhatsApp.Text, &m.WhatsApp.Template
		}
	case m.Push != nil:
		content = campaigns.Content{Subject: m.Push.Title, Text: m.Push.Body, Link: m.Push.Link}
	case m.InApp != nil:
		content = campaigns.Content{Subject: m.InApp.Title, Text: m.InApp.Body, Link: m.InApp.Link}
	case m.Email != nil:
		x := m.Email
		content = campaigns.Content{HTML: x.Body, Text: x.Text}
		if x.TemplateID != "" {
			t, ok, err := v.Campaigns().WholeTemplate(x.TemplateID)
			if err != nil || !ok {
				return "", err
			}
			content = campaigns.Content{Subject: t.Subject, HTML: t.HTML, Text: t.Text}
		}
		content.Subject, content.SenderName = cmp.Or(x.Subject, content.Subject), x.SenderName
	}
	c, err := Compile(content)
	if err != nil {
		return "", nil
	}
	if tag := c.HoleOn(m.Channel, values); tag != "" {
		return Missing(tag), nil
	}
	return "", nil
}
