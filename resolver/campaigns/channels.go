package campaigns

import (
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// MediumOmni is the [Campaign.Medium] of campaigns that go out on several channels.
const MediumOmni = "omni"

// The channels of messages by their names in consents.
const (
	mediumEmail = "email"
	mediumSMS   = "sms"
	mediumIM    = "im"
	mediumPush  = "push"
	mediumInApp = "in_app"
)

// NoChannel is the reason for which people are passed over whom none of a campaign's
// channels reaches. The counts of each channel have its own reasons.
const NoChannel = "no channel of the campaign reaches the person"

// maxChannelBody bounds the text of one channel, in bytes: what WhatsApp takes.
const maxChannelBody = 4096

// ChannelMessage is what a campaign of [ChannelOmni] sends on one of its channels. That of
// e-mail has no texts of its own: it is the campaign's own subject, body and template.
type ChannelMessage struct {
	Channel string `json:"channel"`           // email, sms, whatsapp, im, push or in_app
	Subject string `json:"subject,omitempty"` // title of a push or in-app message
	Body    string `json:"body,omitempty"`
	Sender  string `json:"sender,omitempty"` // number or name that texts come from
	Link    string `json:"link,omitempty"`   // opened by a push message
	// WhatsApp is sent by WhatsApp in place of the body, Push are options of a push message;
	// nil for none.
	WhatsApp *whatsapp.Template `json:"whatsapp,omitempty"`
	Push     *PushOptions       `json:"push,omitempty"`
	// InApp are the options of an in-app message; nil for their defaults.
	InApp *card.Options `json:"in_app,omitempty"`
}

// channelNames are all channels, in a fixed order.
var channelNames = [...]string{mediumEmail, mediumSMS, mediumWhatsApp, mediumIM, mediumPush, mediumInApp}

// types are the types of campaigns by their channels.
var types = map[string]int{mediumEmail: TypeEmail, mediumSMS: TypeSMS, mediumWhatsApp: TypeIM, mediumIM: TypeIM, mediumPush: TypePush, mediumInApp: TypeInApp}

// Parts are the single-channel campaigns that a campaign of several channels consists of,
// in its order of preference, with its id and number. Those of any other campaign are the
// campaign itself.
func (c *Campaign) Parts() []Campaign {
	if len(c.Channels) == 0 {
		return []Campaign{*c}
	}
	out := make([]Campaign, len(c.Channels))
	for i, m := range c.Channels {
		x := *c
		x.Channel, x.Type, x.Channels = ChannelSingle, types[m.Channel], nil
		if m.Channel != mediumEmail {
			x.Subject, x.Body, x.Sender, x.Link, x.WhatsApp, x.Push = m.Subject, m.Body, m.Sender, m.Link, m.WhatsApp, m.Push
			x.InApp = m.InApp
			x.TemplateID = ""
		}
		if m.Channel == mediumWhatsApp {
			x.Service = ServiceWhatsApp
		}
		out[i] = x
	}
	return out
}

// Media are the channels that a campaign goes out on, in its order of preference.
func (c *Campaign) Media() []string {
	if len(c.Channels) == 0 {
		return []string{c.Medium()}
	}
	out := make([]string, len(c.Channels))
	for i, m := range c.Channels {
		out[i] = m.Channel
	}
	return out
}

// ChannelNames are the channels of a campaign of several, none of any other.
func (c *Campaign) ChannelNames() []string {
	if len(c.Channels) == 0 {
		return nil
	}
	return c.Media()
}

// ChannelField is the name in requests of the channel i of a campaign of several channels,
// which stands before the names of its fields.
func ChannelField(i int) string { return "channels[" + strconv.Itoa(i) + "]" }

// CheckChannels says what is wrong with the channels of a campaign; nil for nothing.
func (c *Campaign) CheckChannels() *refuse.Refusal {
	switch {
	case len(c.Channels) == 0:
		return nil
	case c.Channel != ChannelOmni:
		return refuse.Invalid("channels", "channels Input should be left out where channel is not 1: a single-channel campaign has its type")
	case len(c.Channels) > len(types):
		return refuse.Invalid("channels", "channels Input should have at most %d entries", len(types))
	}
	parts := c.Parts()
	for i := range parts {
		if r := c.checkChannel(i, &parts[i]); r != nil {
			field := ChannelField(i)
			r.Field, r.Message = field+"."+r.Field, field+"."+r.Message
			return r
		}
	}
	return nil
}

// checkChannel says what is wrong with one channel, by the names of its own fields.
func (c *Campaign) checkChannel(i int, part *Campaign) *refuse.Refusal {
	m := &c.Channels[i]
	same := func(x ChannelMessage) bool { return x.Channel == m.Channel }
	switch {
	case types[m.Channel] == 0:
		return refuse.Invalid("channel", "channel Input should be email, sms, whatsapp, im, push or in_app")
	case slices.IndexFunc(c.Channels, same) < i:
		return refuse.Invalid("channel", "channel Input should name each channel once; %s stands there twice", m.Channel)
	case m.Channel == mediumEmail && *m != ChannelMessage{Channel: mediumEmail}:
		return refuse.Invalid("channel", "channel email Input should stand alone: an e-mail has the campaign's own subject, body, template_id and sender")
	case m.Channel != mediumPush && m.Channel != mediumInApp && m.Subject+m.Link != "":
		return refuse.Invalid("subject", "subject and link should be left out where channel is not push or in_app")
	case m.Channel != mediumPush && m.Push != nil:
		return refuse.Invalid("push", "push Input should be left out where channel is not push")
	case m.Channel != mediumInApp && m.InApp != nil:
		return refuse.Invalid("in_app", "in_app Input should be left out where channel is not in_app")
	case m.Channel != mediumWhatsApp && m.WhatsApp != nil:
		return refuse.Invalid("whatsapp", "whatsapp Input should be left out where channel is not whatsapp")
	case m.Channel != mediumSMS && m.Channel != mediumIM && m.Sender != "":
		return refuse.Invalid("sender", "sender Input should be left out where channel is not sms or im")
	case len(m.Subject) > MaxSubjectBytes:
		return refuse.Invalid("subject", "subject must have at most %d bytes", MaxSubjectBytes)
	case len(m.Body) > maxChannelBody:
		return refuse.Invalid("body", "body must have at most %d bytes", maxChannelBody)
	case strings.ContainsAny(m.Sender, "\r\n") || len(m.Sender) > MaxSubjectBytes:
		return refuse.Invalid("sender", "sender must be one line of at most %d bytes", MaxSubjectBytes)
	}
	if m.Channel == mediumEmail {
		return nil
	}
	if r := part.CheckService(); r != nil {
		return r
	}
	if r := part.checkPush(); r != nil {
		return r
	}
	return part.checkInApp()
}

// claimSet names the set of those to whom a campaign of several channels is about to be sent
// by one of them: its pending recipients, and those of a run that was stopped, of whom it is
// not known whether their message has gone out.
func claimSet(medium string) string { return "via/" + medium }

// channelSet names the set of those of whom something is known of their message on one
// channel of a campaign of several, such as [Opened].
func channelSet(medium, which string) string { return "by/" + medium + "/" + which }

// channelSets are the sets of recipients by channel.
var channelSets = [...]string{setSent, Delivered, Opened, Clicked, Bounced, Complained, Unsubscribed, Dismissed}
