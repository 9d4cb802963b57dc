package keyapi

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/api/keyapi/internal/analytics"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver/campaigns"
)

// channelFields are a channel of a campaign in a request.
type channelFields struct {
	Channel  string          `json:"channel"`
	Subject  string          `json:"subject"`
	Body     string          `json:"body"`
	Sender   string          `json:"sender"`
	Link     string          `json:"link"`
	WhatsApp *whatsAppFields `json:"whatsapp"`
	Push     *pushFields     `json:"push"`
	InApp    *inAppFields    `json:"in_app"`
}

func channelMessages(list []channelFields) []campaigns.ChannelMessage {
	out := make([]campaigns.ChannelMessage, len(list))
	for i, f := range list {
		out[i] = campaigns.ChannelMessage{Channel: f.Channel, Subject: f.Subject, Body: f.Body, Sender: f.Sender, Link: f.Link}
		if f.WhatsApp != nil {
			out[i].WhatsApp = f.WhatsApp.template()
		}
		if f.Push != nil {
			out[i].Push = f.Push.options()
		}
		if f.InApp != nil {
			out[i].InApp = f.InApp.options()
		}
	}
	return out
}

func channelFieldsShape() []shape.Field {
	return []shape.Field{
		shape.Req("channel", shape.Word("Each channel once.", analytics.Media...)),
		shape.Opt("subject", shape.Text("Our January sale", "Title of a push or in-app message.").Bytes(0, 998)),
		shape.Opt("body", shape.Text("The sale is on, {{first_name}}", "The text. That of an e-mail is the campaign's own body.").Bytes(0, 4096)),
		shape.Opt("sender", shape.Text("Example", "The number or name that an SMS or instant message comes from; left out, the provider's.").Bytes(0, 998)),
		shape.Opt("link", shape.Text("https://example.com/sale", "What a push or in-app message opens, as `link` of the campaign.")),
		shape.Opt("whatsapp", shape.Object(whatsAppFieldsShape()...).Says("With `whatsapp`, a template in place of the body.")),
		shape.Opt("push", shape.Object(pushFieldsShape("ttl_seconds")...).Says("With `push`, what the message has beside its texts and its link.")),
		shape.Opt("in_app", shape.Object(inAppFieldsShape()...).Says("With `in_app`, what the message has beside its texts and its link.")),
	}
}

// viaShape is the field that names one of a campaign's channels.
func viaShape(otherwise string) shape.Field {
	return shape.Opt("via", shape.Word("Of a campaign of several channels, the one that is meant; left out, "+otherwise+".", analytics.Media...))
}

// part is the part of a campaign that goes out on a channel; "" is the first.
func part(x *campaigns.Campaign, via string) (*campaigns.Campaign, error) {
	i := 0
	if via != "" {
		i = slices.Index(x.Media(), via)
	}
	if i < 0 {
		return nil, noSuchPart(x)
	}
	return &x.Parts()[i], nil
}

func noSuchPart(x *campaigns.Campaign) error {
	return keycall.Fail("via Input should be a channel of the campaign: %s", strings.Join(x.Media(), ", "))
}
