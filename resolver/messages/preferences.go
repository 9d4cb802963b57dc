package messages

import (
	"unicode/utf8"

	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// CommandPreferences records a person's choices on the preference page.
const CommandPreferences = "preferences.save"

// SourcePreferences is the source of consents and of topics that people chose on their
// preference page.
const SourcePreferences = "preferences"

const (
	// MaxWordingBytes bounds the wording of a choice.
	MaxWordingBytes = 500
	maxClientBytes  = 50
	maxStepBytes    = 200 // of the names of a flow and a step
)

// Preferences is a person's choices on the preference page: of the channels and topics that
// were shown, those that are to change.
type Preferences struct {
	// Send is the message whose link led to the page, or [ProfileSend] where none did.
	Send ID `json:"send"`
	// Profile is the person's, through merges.
	Profile  string          `json:"profile"`
	Channels []ChannelChoice `json:"channels,omitempty"`
	Topics   []TopicChoice   `json:"topics,omitempty"`
	// Flow and Step are as in [EngagementRecord].
	Flow string `json:"flow,omitempty"`
	Step string `json:"step,omitempty"`
	// Client is the network from which the person answered.
	Client string `json:"client,omitempty"`
}

// ChannelChoice opts in or out of a channel.
type ChannelChoice struct {
	Channel string `json:"channel"`
	Status  string `json:"status"` // subscribed or unsubscribed
	Wording string `json:"wording,omitempty"`
}

// TopicChoice joins or leaves a topic.
type TopicChoice struct {
	ListID  string `json:"list_id"`
	Joins   bool   `json:"joins"`
	Wording string `json:"wording,omitempty"`
}

// PreferencesReply says what changed.
type PreferencesReply struct {
	Channels []string `json:"channels"`
	Topics   []string `json:"topics"` // ids of lists
}

// Change is the choice as a change of a consent, which a campaign led to or, with "", none.
func (x *ChannelChoice) Change(campaign string) contacts.ConsentChange {
	return contacts.ConsentChange{Channel: x.Channel, Status: x.Status, Source: SourcePreferences, Campaign: campaign}
}

// Check says what cannot be stored of choices.
func (c *Preferences) Check() *refuse.Refusal {
	if len(c.Topics) > contacts.MaxTopics {
		return refuse.Invalid("topics", "topics must have at most %d entries", contacts.MaxTopics)
	}
	long := func(text string, limit int) bool { return len(text) > limit || !utf8.ValidString(text) }
	var changes []contacts.ConsentChange
	for _, x := range c.Channels {
		if long(x.Wording, MaxWordingBytes) {
			return refuse.Invalid("channels", "wording must have at most %d bytes of UTF-8", MaxWordingBytes)
		}
		changes = append(changes, x.Change(""))
	}
	for _, x := range c.Topics {
		if long(x.Wording, MaxWordingBytes) {
			return refuse.Invalid("topics", "wording must have at most %d bytes of UTF-8", MaxWordingBytes)
		}
	}
	for _, f := range [...]struct {
		name, text string
		limit      int
	}{{"client", c.Client, maxClientBytes}, {"flow", c.Flow, maxStepBytes}, {"step", c.Step, maxStepBytes}} {
		if long(f.text, f.limit) {
			return refuse.Invalid(f.name, "%s must have at most %d bytes of UTF-8", f.name, f.limit)
		}
	}
	return contacts.CheckConsents(&profile.Document{}, changes)
}
