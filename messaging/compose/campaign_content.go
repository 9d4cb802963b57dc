package compose

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// CampaignContents is what a campaign sends by itself, not yet prepared: one content, and of
// a campaign of several channels one for each of its parts.
func CampaignContents(v *resolver.View, x *campaigns.Campaign) (out []campaigns.Content, err error) {
	for _, part := range x.Parts() {
		c, err := OwnContent(v, &part)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// PrepareContents is [PrepareCampaign] of a content for each part of a campaign. A fault of
// one names its channel.
func PrepareContents(x *campaigns.Campaign, contents []campaigns.Content) ([]campaigns.Content, error) {
	out := make([]campaigns.Content, len(contents))
	for i, part := range x.Parts() {
		var err error
		if out[i], err = PrepareCampaign(&part, contents[i]); err != nil {
			return nil, ofChannel(x, i, err)
		}
	}
	return out, nil
}

// ofChannel names the channel of a campaign that a fault is of. The texts of e-mails are
// those of the campaign itself.
func ofChannel(x *campaigns.Campaign, i int, err error) error {
	var fault *ContentError
	if len(x.Channels) == 0 || x.Channels[i].Channel == MediumEmail || !errors.As(err, &fault) {
		return err
	}
	field := campaigns.ChannelField(i)
	if fault.Field == "text" { // as requests call it
		return &ContentError{field + ".body", fault.Err}
	}
	if fault.Field == "" { // its own words begin with the field
		return &ContentError{"", fmt.Errorf("%s.%w", field, fault.Err)}
	}
	return &ContentError{field + "." + fault.Field, fault.Err}
}

// PrepareCampaign checks what a campaign on one channel is to send, takes the links out of
// an e-mail, and returns the contents for the state machine. A fault is a [*ContentError].
func PrepareCampaign(x *campaigns.Campaign, c campaigns.Content) (campaigns.Content, error) {
	out, err := prepareCampaign(x, c)
	var f *ContentError
	if x.Medium() != MediumEmail && c.Text == "" && errors.As(err, &f) && f.Field == "text" {
		f.Field = "body" // it was the text of a campaign that has no markup
	}
	return out, err
}

func prepareCampaign(x *campaigns.Campaign, c campaigns.Content) (campaigns.Content, error) {
	switch empty := c.HTML == "" && c.Text == ""; {
	case c.WhatsApp != nil && !empty:
		return c, &ContentError{"", fault("whatsapp Input should be left out where a body or a template of Muster is sent: only one of them can be")}
	case c.WhatsApp == nil && empty:
		return c, &ContentError{"", fault("body Field required: the campaign has nothing to send")}
	}
	switch x.Medium() {
	case MediumEmail:
		return PrepareEmail(c)
	case MediumPush:
		out, err := PreparePush(asText(c))
		var f *ContentError
		if errors.As(err, &f) && f.Field == "title" {
			f.Field = "subject"
		}
		if err == nil && x.TrackLinks && IsWebLink(out.Link) {
			out.Links, out.Link = []string{out.Link}, ""
		}
		return out, err
	}
	if x.Medium() == MediumInApp {
		return PrepareInApp(asText(c))
	}
	// The sender is a number or a name; without one the provider's is taken, which by
	// WhatsApp is the only one.
	c.Sender = x.Sender
	if x.Medium() == mediumWhatsApp {
		c.Sender = ""
	}
	if c = asText(c); x.TrackLinks {
		var err error
		if c, err = TakeTextLinks(c); err != nil {
			return c, err
		}
	}
	return PrepareText(c)
}

// asText is a content that has no markup: what the body says, as it is.
func asText(c campaigns.Content) campaigns.Content {
	if c.Text == "" {
		c.Text = c.HTML
	}
	c.HTML = ""
	return c
}

// ownTexts are the texts, addresses and options that stand in a campaign itself.
func ownTexts(x *campaigns.Campaign) campaigns.Content {
	return campaigns.Content{Subject: x.Subject, HTML: x.Body, Sender: x.Sender, SenderName: x.SenderName, ReplyTo: x.ReplyTo, Link: x.Link, WhatsApp: x.WhatsApp, Push: x.Push, InApp: x.InApp}
}

// OwnContent is what a campaign on one channel sends by itself: its own texts, those of its template
// where it has no body.
func OwnContent(v *resolver.View, x *campaigns.Campaign) (campaigns.Content, error) {
	out := ownTexts(x)
	out.Sender = cmp.Or(x.Sender, v.DefaultSender())
	if x.Body != "" || x.TemplateID == "" {
		return out, nil
	}
	t, ok, err := v.Campaigns().WholeTemplate(x.TemplateID)
	if err != nil || !ok {
		return out, err // it is in use, so it is there
	}
	out.HTML, out.Text, out.Subject = t.HTML, t.Text, cmp.Or(t.Subject, out.Subject)
	return out, nil
}
