package campaigns

import (
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/whatsapp"
)

// The commands of campaigns.
const (
	CommandSave   = "campaign.save.2"
	CommandDelete = "campaign.delete"

	// CommandSave1 is [CommandSave] in logs of before dates sent anything.
	CommandSave1 = "campaign.save"
)

const (
	maxCampaigns     = 100_000 // of an account, at a time
	maxCampaignBytes = 1 << 20
	maxAudiences     = 1000 // lists and segments of a campaign
)

// Channels and types of campaigns.
const (
	ChannelOmni   = 1
	ChannelSingle = 2

	TypeEmail = 1
	TypeSMS   = 2
	TypeIM    = 3
	TypePush  = 4
	TypeInApp = 5
)

// Campaign is a message to many, once. Its JSON has the fields of its parts beside its own,
// in this order: it is what logs, checkpoints and the state's hash have.
type Campaign struct {
	ID      string `json:"id"`
	Number  uint32 `json:"number"` // dense; names the sets of its recipients
	Name    string `json:"name"`
	Channel int    `json:"channel"`
	Type    int    `json:"type"` // 0 for none
	Date    string `json:"date"` // ISO 8601, as given
	Message
	ListIDs    []string `json:"list_ids,omitempty"`
	SegmentIDs []string `json:"segment_ids,omitempty"`
	Pacing
	ChannelOptions
	// Channels are those of a campaign of [ChannelOmni], in the order of preference: each
	// person is sent one message, on the first that reaches them. Without any it goes out by
	// e-mail.
	Channels  []ChannelMessage `json:"channels,omitempty"`
	CreatedMs int64            `json:"created_ms"`
	UpdatedMs int64            `json:"updated_ms"`
	// OneOff campaigns are made by the service for one send. When the account has as
	// many campaigns as it can have, the oldest that is over gives way to a new one.
	OneOff bool `json:"one_off,omitempty"`
	// BodyBytes is the length of the body.
	BodyBytes int `json:"body_bytes,omitempty"`
	Schedule
}

// Message is a campaign's texts and sender. One without a body of its own may have a
// template's.
type Message struct {
	Subject    string `json:"subject"`
	Body       string `json:"body"` // kept apart: see [State.Body]
	Sender     string `json:"sender"`
	SenderName string `json:"sender_name"`
	ReplyTo    string `json:"reply_to"`
	TemplateID string `json:"template_id,omitempty"`
}

// ChannelOptions are what a campaign has for the one channel that it goes out on, beside
// its message.
type ChannelOptions struct {
	Link string `json:"link,omitempty"` // opened by a push or in-app message
	// Service says by which instant messenger a campaign of type [TypeIM] goes out:
	// [ServiceWhatsApp], or "" for the account's own provider.
	Service string `json:"service,omitempty"`
	// WhatsApp is sent by WhatsApp in place of the body; nil for none.
	WhatsApp *whatsapp.Template `json:"whatsapp,omitempty"`
	// TrackLinks counts the clicks on links of texts and push messages, which become longer by
	// it. Those of e-mails are always counted.
	TrackLinks bool `json:"track_links,omitempty"`
	// Push are the options of a push message; nil for none.
	Push *PushOptions `json:"push,omitempty"`
	// InApp are the options of an in-app message; nil for their defaults.
	InApp *card.Options `json:"in_app,omitempty"`
}

// Ref names a campaign.
type Ref struct {
	ID string `json:"id"`
}

// Medium is the channel that a campaign's messages go out on, by its name in
// consents, and [MediumOmni] for a campaign of several channels.
func (c *Campaign) Medium() string {
	if len(c.Channels) > 0 {
		return MediumOmni
	}
	if c.Channel == ChannelSingle {
		switch c.Type {
		case TypeSMS:
			return mediumSMS
		case TypeIM:
			if c.Service == ServiceWhatsApp {
				return mediumWhatsApp
			}
			return mediumIM
		case TypePush:
			return mediumPush
		case TypeInApp:
			return mediumInApp
		}
	}
	return mediumEmail
}

// Schedule says when a campaign is sent by itself. The time is that of the log:
// the first record from that instant on makes the campaign due, and the dispatcher
// starts its run, once: the start takes the schedule away.
type Schedule struct {
	// Dated campaigns are sent at their date, if it is in the future when they are
	// saved and they have an audience. Cleared by a start and by a cancellation.
	Dated bool `json:"dated,omitempty"`
	// ScheduledMs is when it is sent, 0 for not by itself.
	ScheduledMs int64 `json:"scheduled_ms,omitempty"`
	// Due says that the instant has come and the run is not started yet.
	Due bool `json:"due,omitempty"`
	// ScheduleError is why the last schedule could not be carried out.
	ScheduleError string `json:"schedule_error,omitempty"`
}

// MaxSubjectBytes bounds the subject of a message: a line of it.
const MaxSubjectBytes = 998
