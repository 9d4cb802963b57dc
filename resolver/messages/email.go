package messages

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// CommandEmailSend queues one e-mail to one address.
const CommandEmailSend = "email.send.3"

// CommandEmailSend2 is [CommandEmailSend] in logs of before what a key was used for was
// remembered by a hash that a redacted record still gives.
const CommandEmailSend2 = "email.send.2"

// CommandEmailSend1 is [CommandEmailSend] in logs of before templates were marked
// transactional: it goes to people who have unsubscribed, too, whatever the template.
const CommandEmailSend1 = "email.send"

// RefConfirmation is the Ref of an item of the outbox of a message that asks for the
// confirmation of a subscription.
const RefConfirmation = "confirmation"

// MaxKeyBytes is how long the idempotency key of a single message can be.
const MaxKeyBytes = 256

const maxEmailData = 128 << 10

// Mail is the payload of an e-mail. The template is read when the message
// goes out.
type Mail struct {
	To         string          `json:"to"`
	TemplateID string          `json:"template_id,omitempty"`
	Subject    string          `json:"subject,omitempty"` // instead of the template's
	Sender     string          `json:"sender"`
	SenderName string          `json:"sender_name,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"` // an object
	// Confirm marks the message that asks for the confirmation of a subscription.
	Confirm bool `json:"confirm,omitempty"`
	// Submission is the id of the submission of a form that it asks to confirm instead, "" for
	// a subscription.
	Submission string `json:"submission,omitempty"`

	// What flows send has these, too. HTML and Text are the content where there is
	// no template.
	HTML    string `json:"html,omitempty"`
	Text    string `json:"text,omitempty"`
	ReplyTo string `json:"reply_to,omitempty"`
	// Advertising goes only to people who are subscribed when it goes out, is counted when
	// it is opened and clicked, and says how to unsubscribe.
	Advertising bool `json:"advertising,omitempty"`
	// Event is what started the flow, the object behind the merge tags event.….
	Event json.RawMessage `json:"event,omitempty"`
}

// EmailSend queues an e-mail to an address that need not be on file: it then
// becomes a profile, without a consent.
type EmailSend struct {
	Mail
	// Key makes a repeat harmless: it gets the first answer.
	Key string `json:"key,omitempty"`
	// Unfit says that the template cannot be sent to this person now: the message is refused
	// unless it repeats one that was queued. It is set with a key only.
	Unfit bool `json:"unfit,omitempty"`
}

// EmailSendReply names the queued message.
type EmailSendReply struct {
	MessageID string `json:"message_id"`
	Profile   string `json:"profile_id"`
	Sender    string `json:"sender"`
}

// CheckLengths says what is too long, and what is no object.
func (c *EmailSend) CheckLengths() *refuse.Refusal {
	switch {
	case len(c.To) > contacts.MaxIdentifierBytes:
		return refuse.Invalid("to", "to must have at most %d bytes", contacts.MaxIdentifierBytes)
	case len(c.Subject) > campaigns.MaxSubjectBytes || len(c.SenderName) > campaigns.MaxSubjectBytes:
		return refuse.Invalid("subject", "subject must have at most %d bytes", campaigns.MaxSubjectBytes)
	case len(c.Data) > maxEmailData:
		return refuse.Invalid("data", "data must have at most %d bytes", maxEmailData)
	case len(c.Data) > 0 && !bytes.HasPrefix(bytes.TrimSpace(c.Data), []byte("{")):
		return refuse.Invalid("data", "data Input should be a valid object")
	case len(c.Key) > MaxKeyBytes:
		return refuse.Invalid("idempotency_key", "idempotency_key must have at most %d bytes", MaxKeyBytes)
	}
	return nil
}

// Fingerprint tells messages apart. It is the same of a message whose address was
// masked. The hasher is the account's, buf is scratch.
func (c *EmailSend) Fingerprint(hasher identifier.Hasher, buf *[]byte) uint32 {
	to, ok := hasher.HashIdentifier(identifier.Email, []byte(c.To), buf)
	if !ok {
		return c.Fingerprint2()
	}
	h := hasher.Sum(append(append([]byte{0xf9}, to[:]...), c.TemplateID...))
	return binary.LittleEndian.Uint32(h[:])
}

// Fingerprint2 is that of [CommandEmailSend2].
func (c *EmailSend) Fingerprint2() uint32 {
	h := fnv.New32a()
	h.Write(identity.AppendNormalEmail(nil, []byte(c.To)))
	h.Write([]byte("\x00" + c.TemplateID))
	return h.Sum32()
}

// UnsubscribedReason is why an address does not get a message of a template that is not
// transactional, and what to do.
const UnsubscribedReason = "the person has unsubscribed from e-mail; only templates that are marked transactional (\"transactional\": true) are sent to people who have unsubscribed"

// Undeliverable are the suppressions that hold for messages that are no advertising,
// too.
var Undeliverable = []string{profile.SuppressionBounced.String(), profile.SuppressionComplained.String(), profile.SuppressionByAccount.String()}
