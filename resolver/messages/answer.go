package messages

// CommandTextAnswer queues an answer to an inbound text.
const CommandTextAnswer = "text.answer"

// TextAnswer is an answer to an inbound text, such as what to do for help. It goes to
// the sender of that text, whatever they have subscribed to, unless they are suppressed.
type TextAnswer struct {
	Profile string `json:"profile_id"`
	Channel string `json:"channel"` // sms or whatsapp
	Text    string `json:"text"`
	// Start says that it answers START, as in [Text].
	Start bool `json:"start,omitempty"`
	// Key makes a repeat harmless: what the provider calls the text that is answered.
	Key string `json:"key"`
}
