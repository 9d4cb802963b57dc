package record

import (
	"cmp"

	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// Campaign is a campaign.
type Campaign struct {
	ID      string  `json:"_id"`
	Name    string  `json:"name"`
	Channel int     `json:"channel"`
	Type    *int    `json:"type"`
	Date    *string `json:"date"`
	CampaignContent
	// LocalTime says that the date is what each person's clocks show.
	LocalTime bool `json:"local_time"`
	// Rate is how fast it is sent at most, null for no bound.
	Rate                *Rate    `json:"rate"`
	IgnoreSendingLimits bool     `json:"ignore_sending_limits"`
	ListID              []string `json:"list_id"`
	SegmentIDs          []string `json:"segment_ids"`
	// Status is draft, scheduled, sending, testing, waiting, sent or stopped.
	Status string `json:"status"`
	// ScheduledAt is when it is sent by itself, ScheduleError why the last schedule could
	// not be carried out.
	ScheduledAt   *string `json:"scheduled_at"`
	ScheduleError *string `json:"schedule_error"`

	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
}

// Rate is how many people a campaign is sent to at most in any minute or hour.
type Rate struct {
	Messages int    `json:"messages"`
	Per      string `json:"per"`
}

// CampaignContent is the content of a campaign.
type CampaignContent struct {
	Subject    string            `json:"subject"`
	Body       *string           `json:"body,omitempty"` // not in lists
	Sender     string            `json:"sender"`
	SenderName string            `json:"sender_name"`
	ReplyTo    string            `json:"reply_to"`
	Link       *string           `json:"link"` // opened by a push message
	TemplateID *string           `json:"template_id"`
	Service    *string           `json:"service"` // whatsapp, in_app, or null
	TrackLinks bool              `json:"track_links"`
	Push       *PushOptions      `json:"push"`     // null for none
	InApp      *InAppOptions     `json:"in_app"`   // null for their defaults
	WhatsApp   *WhatsAppTemplate `json:"whatsapp"` // null for none
	Channels   []ChannelMessage  `json:"channels"`
}

// ChannelMessage is the message of an omnichannel campaign on one channel.
type ChannelMessage struct {
	Channel  string            `json:"channel"`
	Subject  string            `json:"subject"`
	Body     string            `json:"body"`
	Sender   string            `json:"sender"`
	Link     *string           `json:"link"`
	WhatsApp *WhatsAppTemplate `json:"whatsapp"`
	Push     *PushOptions      `json:"push"`
	InApp    *InAppOptions     `json:"in_app"`
}

// InAppOptions are what an in-app message has beside its texts and its link.
type InAppOptions struct {
	Display  string `json:"display"`
	Image    string `json:"image"`
	Priority int    `json:"priority"`
	TTLHours int    `json:"ttl_hours"`
}

func inAppOptions(o *card.Options) *InAppOptions {
	if o == nil {
		return nil
	}
	return &InAppOptions{cmp.Or(o.Display, card.Inbox), o.Image, o.Priority, cmp.Or(o.TTLHours, card.DefaultTTLHours)}
}

// PushOptions are what a push message has beside its texts and its link.
type PushOptions struct {
	Image      string `json:"image"`
	Collapse   string `json:"collapse"`
	TTLSeconds int    `json:"ttl_seconds"`
}

// WhatsAppTemplate is the template that a campaign sends by WhatsApp.
type WhatsAppTemplate struct {
	Template        string             `json:"template"`
	Language        string             `json:"language"`
	Parameters      []string           `json:"parameters"`
	NamedParameters map[string]string  `json:"named_parameters"`
	Header          string             `json:"header"`
	HeaderType      string             `json:"header_type"`
	HeaderName      string             `json:"header_name"`
	HeaderFilename  string             `json:"header_filename"`
	HeaderLocation  *whatsapp.Location `json:"header_location"`
	Buttons         []whatsapp.Button  `json:"buttons"`
}

// WholeCampaign is a campaign with the body that it comes with.
func WholeCampaign(v *resolver.View, x *campaigns.Campaign) Campaign {
	out := NewCampaign(v, x)
	out.Body = &x.Body
	return out
}

// NewCampaign is a campaign of the view's state as lists have it: without its body,
// which may be long.
func NewCampaign(v *resolver.View, x *campaigns.Campaign) Campaign {
	out := Campaign{
		ID: x.ID, Name: x.Name, Channel: x.Channel, Date: TextOrNull(x.Date),
		CampaignContent: CampaignContent{Subject: x.Subject, Sender: x.Sender, SenderName: x.SenderName, ReplyTo: x.ReplyTo, Link: TextOrNull(x.Link), TemplateID: TextOrNull(x.TemplateID), TrackLinks: x.TrackLinks},
		ListID:          Texts(x.ListIDs), SegmentIDs: Texts(x.SegmentIDs), Status: CampaignStatus(v, x),
		ScheduledAt: TimeOrNull(x.ScheduledMs), ScheduleError: TextOrNull(x.ScheduleError),
		CreatedAt: Time(x.CreatedMs), UpdatedAt: Time(x.UpdatedMs),
	}
	out.LocalTime, out.IgnoreSendingLimits = x.LocalTime, x.IgnoresLimits
	if x.Rate != nil {
		out.Rate = &Rate{x.Rate.Messages, x.Rate.Per}
	}
	out.Service = TextOrNull(x.Service)
	out.Push, out.WhatsApp, out.InApp = pushOptions(x.Push), whatsAppTemplate(x.WhatsApp), inAppOptions(x.InApp)
	out.Channels = make([]ChannelMessage, len(x.Channels))
	for i, m := range x.Channels {
		out.Channels[i] = ChannelMessage{m.Channel, m.Subject, m.Body, m.Sender, TextOrNull(m.Link), whatsAppTemplate(m.WhatsApp), pushOptions(m.Push), inAppOptions(m.InApp)}
	}
	switch kind := x.Type; {
	case kind == campaigns.TypeInApp:
		kind = campaigns.TypePush
		out.Service = TextOrNull(campaigns.ServiceInApp)
		fallthrough
	case kind != 0:
		out.Type = &kind
	}
	return out
}

func pushOptions(p *campaigns.PushOptions) *PushOptions {
	if p == nil {
		return nil
	}
	return &PushOptions{p.Image, p.Collapse, p.TTLSeconds}
}

func whatsAppTemplate(t *whatsapp.Template) *WhatsAppTemplate {
	if t == nil {
		return nil
	}
	out := &WhatsAppTemplate{
		Template: t.Name, Language: t.Language, Parameters: Texts(t.Parameters), NamedParameters: t.Named, Header: t.Header,
		HeaderType: t.HeaderType, HeaderName: t.HeaderName, HeaderFilename: t.HeaderFilename, HeaderLocation: t.Location, Buttons: append([]whatsapp.Button{}, t.Buttons...),
	}
	if out.NamedParameters == nil {
		out.NamedParameters = map[string]string{}
	}
	return out
}

// CampaignStatus is scheduled for a campaign that will be sent by itself, and draft for
// one that was never sent.
func CampaignStatus(v *resolver.View, x *campaigns.Campaign) string {
	if x.ScheduledMs != 0 {
		return "scheduled"
	}
	if r, ok := v.Campaigns().Run(x.ID); ok {
		return r.Status
	}
	return "draft"
}
