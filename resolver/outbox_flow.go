package resolver

import "encoding/json"

// OutboxText is the payload of a text message. It is rendered when it goes out,
// for whoever the profile is then.
type OutboxText struct {
	Text string `json:"text"` // with merge tags
	// Event is what started the flow, the object behind the merge tags event.….
	Event json.RawMessage `json:"event,omitempty"`
}

// OutboxRequest is the payload of a call.
type OutboxRequest struct {
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
