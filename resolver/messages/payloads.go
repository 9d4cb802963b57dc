package messages

import (
	"encoding/json"

	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/resolver/campaigns"
)

// Text is the payload of a text message. It is rendered when it goes out, with the
// profile's values of then.
type Text struct {
	Text string `json:"text"` // with merge tags
	// Event is what started the flow, the object behind the merge tags event.….
	Event json.RawMessage `json:"event,omitempty"`
	// Template is sent by WhatsApp in the place of a text.
	Template *whatsapp.Template `json:"template,omitempty"`
	// Answer marks what answers a text that the person has just written: it goes out also to
	// people who have not subscribed, but to no suppressed address.
	Answer bool `json:"answer,omitempty"`
	// Start marks the answer to START: it goes out only while the person may be sent to.
	Start bool `json:"start,omitempty"`
	// TrackLinks has clicks on links of the text counted.
	TrackLinks bool `json:"track_links,omitempty"`
}

// Push is the payload of a push message, whose texts have merge tags.
type Push struct {
	Title      string                 `json:"title"`
	Body       string                 `json:"body,omitempty"`
	Link       string                 `json:"link,omitempty"`
	Options    *campaigns.PushOptions `json:"options,omitempty"`
	TrackLinks bool                   `json:"track_links,omitempty"` // as of [Text], for Link
	Event      json.RawMessage        `json:"event,omitempty"`       // as of [Text]
}

// InApp is the payload of an in-app message, whose texts have merge tags.
type InApp struct {
	card.Card
	Event json.RawMessage `json:"event,omitempty"` // as of [Text]
}

// Request is the payload of a call.
type Request struct {
	URL     string       `json:"url"` // with merge tags, like Body and header values
	Method  string       `json:"method"`
	Headers []HeaderLine `json:"headers,omitempty"`
	Body    string       `json:"body,omitempty"`
	// TimeoutMs bounds an attempt. After Attempts of them the call has failed.
	TimeoutMs int64           `json:"timeout_ms"`
	Attempts  int             `json:"attempts"`
	Event     json.RawMessage `json:"event,omitempty"`
}

// HeaderLine is a line of a request's head.
type HeaderLine struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
