package messages

// CommandTextAnswer queues an answer to a text that somebody wrote.
const CommandTextAnswer = "text.answer"

// TextAnswer is an answer to a text that somebody wrote, such as what to do for help. It
// goes to who wrote, whatever they have subscribed to.
type TextAnswer struct {
	Profile string `json:"profile_id"`
	Channel string `json:"channel"` // sms or whatsapp
	Text    string `json:"text"`
	// Key makes a repeat harmless: what the provider calls the text that is answered.
	Key string `json:"key"`
}
