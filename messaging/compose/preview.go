package compose

import (
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

// Rendered are the texts of a message to one person, its links as their author wrote
// them: nothing of it is counted when they are followed.
type Rendered struct {
	Subject    string `json:"subject"`
	SenderName string `json:"sender_name"`
	HTML       string `json:"html"`
	Text       string `json:"text"`
	Link       string `json:"link"` // of a push message
}

// Render fills in the merge tags of a content for a profile. data, a JSON object, has
// values of the caller, which come before the profile's as in a single e-mail. A fault is a
// [*ContentError].
func Render(content campaigns.Content, p *view.Profile, company string, data []byte) (out Rendered, err error) {
	c, err := Compile(content)
	if err != nil {
		return out, err
	}
	values := SampleValues(p, company, data)
	for _, f := range []struct {
		t   *merge.Template
		dst *string
	}{{c.SubjectTemplate, &out.Subject}, {c.name, &out.SenderName}, {c.html, &out.HTML}, {c.TextTemplate, &out.Text}, {c.LinkTemplate, &out.Link}} {
		if *f.dst, err = f.t.Render(values); err != nil {
			return out, err
		}
	}
	return out, nil
}

// SampleValues answers the merge tags of what is rendered without sending it.
func SampleValues(p *view.Profile, company string, data []byte) merge.Lookup {
	profile := ProfileValues(p)
	return func(path []string) (string, bool) {
		if len(path) == 1 {
			switch path[0] {
			case TagUnsubscribe:
				return sampleUnsubscribe, true
			case TagPreferences:
				return samplePreferences, true
			case campaigns.TagConfirm:
				return sampleConfirm, true
			case TagCompany:
				return company, company != ""
			}
		}
		if value, ok := rawjson.Scalar(data, path); ok {
			return value, true
		}
		return profile(path)
	}
}

// OutgoingText is the text that a campaign sends to a person, as they are now, on a channel of
// texts: with the person's own links and those that count clicks, which [RenderCampaign] shows
// as their author wrote them. publicURL is where recipients reach the service.
func OutgoingText(v *resolver.View, publicURL string, account uint64, x *campaigns.Campaign, content campaigns.Content, p *view.Profile) (string, error) {
	content = asText(content)
	if x.TrackLinks {
		var err error
		if content, err = TakeTextLinks(content); err != nil {
			return "", err
		}
	}
	c, err := Compile(content)
	if err != nil {
		return "", err
	}
	key, err := AccountKey(v, account)
	if err != nil {
		return "", err
	}
	send := SealSend(key, messages.CampaignSend(x.Number, p.Ordinal, 0).On(x.Medium()))
	return c.TextTemplate.Render(c.Values(Links{Base: publicURL, Account: account, Key: key}, p, send))
}

// RenderCampaign is [Render] of what a campaign sends on its channel.
func RenderCampaign(x *campaigns.Campaign, content campaigns.Content, p *view.Profile, company string) (Rendered, error) {
	if x.Medium() != MediumEmail {
		content = asText(content)
	}
	out, err := Render(content, p, company, nil)
	if err != nil || content.WhatsApp == nil {
		return out, err
	}
	t, err := FillTemplate(content.WhatsApp, SampleValues(p, company, nil))
	if err != nil {
		return out, &ContentError{"whatsapp", err}
	}
	if f := t.CheckOptions(); f != nil { // the send fails, too: WhatsApp does not take a value
		return out, &ContentError{"", fault("whatsapp." + f.Field + " Input " + f.Text)}
	}
	out.Text = t.String()
	return out, nil
}
