package sending

import (
	"bytes"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

const (
	ConfirmEveryMs     = 3_600_000
	senderWithoutNames = "no-reply@"
)

// sendEmail queues one message: it goes to any deliverable address, but not to those
// that bounced, complained or are suppressed. People who have unsubscribed get it only
// when its template is transactional.
func (s *State) sendEmail(tx *feature.Tx, c messages.EmailSend) *refuse.Refusal {
	if c.Sender == "" {
		c.Sender = s.DefaultSender()
	}
	c.Confirm = false
	if refusal := s.checkMail(&c); refusal != nil {
		return refusal
	}
	if c.Key != "" {
		if reply, refusal := s.sentBefore(&c); refusal != nil || reply != nil {
			if reply != nil {
				tx.Reply = reply
			}
			return refusal
		}
	}
	if c.Unfit {
		return refuse.Invalid("template_id", "template_id: the template cannot be sent to this person")
	}
	payload := must.JSON(c.Mail)
	if refusal := s.outbox.Room(len(payload)); refusal != nil {
		return refusal
	}
	t, _ := s.campaigns.Template(c.TemplateID)
	o, refusal := s.mailable(tx, c.To, s.host.Command() == messages.CommandEmailSend1 || t.Transactional)
	if refusal != nil {
		return refusal
	}
	if !s.host.SpendCredits(1) {
		panic("e-mail credits were there a moment ago")
	}
	seq, refusal := s.outbox.Queue(tx, outbox.Item{Kind: outbox.KindEmail, Ordinal: o, Ref: c.TemplateID}, payload)
	if refusal != nil {
		panic(refusal) // there was room a moment ago
	}
	if c.Key != "" {
		s.noteSend(tx, &c, o, seq)
	}
	tx.Reply = messages.EmailSendReply{MessageID: messages.OutboxSend(seq, o).Text(s.account), Profile: s.profiles.Headers.Get(o).ID.String(), Sender: c.Sender}
	return nil
}

// checkMail says what cannot be sent to any recipient.
func (s *State) checkMail(c *messages.EmailSend) *refuse.Refusal {
	if strings.TrimSpace(c.To) == "" {
		return refuse.Invalid("to", "to Field required")
	}
	if _, ok := s.campaigns.Template(c.TemplateID); !ok {
		return campaigns.NoTemplate()
	}
	if r := c.CheckLengths(); r != nil {
		return r
	}
	if s.host.EmailCredits() < 1 && c.Key == "" {
		return noCredits()
	}
	return s.domains.MayBeSender(c.Sender)
}

func noCredits() *refuse.Refusal {
	return &refuse.Refusal{Code: "conflict", Message: "the account is out of e-mail credits; top up and send again"}
}

// mailable finds the profile of an address, or makes one, and judges whether it
// may be sent to; transactional messages go to people who have unsubscribed, too. It is
// the last thing that may refuse.
func (s *State) mailable(tx *feature.Tx, to string, transactional bool) (o uint32, refusal *refuse.Refusal) {
	if s.host.EmailCredits() < 1 {
		return 0, noCredits()
	}
	h, ok := s.profiles.Hasher.HashIdentifier(identifier.Email, []byte(to), &s.normal)
	if !ok {
		return 0, refuse.Invalid("to", "to Input should be an e-mail address")
	}
	if o = s.profiles.Identifiers.Owner(h); o != profile.NoOrdinal {
		if err := s.profiles.Load(o, &s.profiles.Doc); err != nil {
			panic(err) // the store is at fault; the record is named
		}
		if reason := s.profiles.Doc.GravestSuppression(profile.ChannelEmail); slices.Contains(messages.Undeliverable, reason.String()) {
			// "Blocked" stands in logs: a replay must give the same outcome.
			return 0, &refuse.Refusal{Code: "conflict", Field: "to", Message: "to: the address is blocked (" + reason.String() + "); lift the block first"}
		}
		if !transactional && s.profiles.Doc.Unsubscribed(profile.ChannelEmail) {
			return 0, &refuse.Refusal{Code: "conflict", Field: "to", Message: "to: " + messages.UnsubscribedReason}
		}
		return o, nil
	}
	o, refusal = s.host.MakeProfile(to)
	if refusal != nil {
		refusal = contacts.OwnField(refusal)
		refusal.Field, refusal.Message = "to", "to"+strings.TrimPrefix(refusal.Message, "email")
		return 0, refusal
	}
	return o, nil
}

// DefaultSender is the sender of e-mails that name none: an address of the oldest verified
// domain, of [domains.Development] when there is none.
func (s *State) DefaultSender() string { return senderWithoutNames + s.domains.Default() }

// What is remembered of a key: whom it was sent to, the number of the item in two
// halves, and what the message was.
const (
	sendOf = iota
	sendLow
	sendHigh
	sendWhat
)

// sentBefore finds the answer to a key that was used before, nil if it was not.
func (s *State) sentBefore(c *messages.EmailSend) (*messages.EmailSendReply, *refuse.Refusal) {
	var parts [identifier.SendKeyParts]uint32
	for i := range parts {
		v, ok, err := s.keys.Get(s.profiles.Hasher.HashSendKey(c.Key, byte(i), &s.normal))
		switch {
		case err != nil:
			panic(err) // the store is at fault; the record is named
		case !ok || v.AtMs <= s.host.KeysFromMs():
			return nil, nil
		}
		parts[i] = v.Ordinal
	}
	if what := parts[sendWhat]; what != c.Fingerprint(s.profiles.Hasher, &s.normal) && what != c.Fingerprint2() {
		return nil, &refuse.Refusal{Code: "conflict", Field: "idempotency_key", Message: "idempotency_key was used for another message; use a new one for each"}
	}
	o := parts[sendOf]
	seq := uint64(parts[sendHigh])<<32 | uint64(parts[sendLow])
	return &messages.EmailSendReply{MessageID: messages.OutboxSend(seq, o).Text(s.account), Profile: s.profiles.Headers.Get(o).ID.String(), Sender: c.Sender}, nil
}

func (s *State) noteSend(tx *feature.Tx, c *messages.EmailSend, o uint32, seq uint64) {
	what := c.Fingerprint2()
	if s.host.Command() == messages.CommandEmailSend {
		what = c.Fingerprint(s.profiles.Hasher, &s.normal)
	}
	for i, v := range [...]uint32{o, uint32(seq), uint32(seq >> 32), what} {
		s.keys.Put(s.profiles.Hasher.HashSendKey(c.Key, byte(i), &s.normal), dedup.Answer{AtMs: tx.AtMs, Ordinal: v})
	}
}

// CheckConfirmTemplate says what keeps a template from asking for confirmations.
func (s *State) CheckConfirmTemplate(id string) *refuse.Refusal {
	if id == "" {
		return nil
	}
	t, ok := s.campaigns.Template(id)
	switch {
	case !ok:
		return refuse.NotFound("confirm_template_id", "confirm_template_id: there is no such template")
	case !t.Confirms:
		return refuse.Invalid("confirm_template_id", "confirm_template_id: the template lacks the link to confirm; put {{%s}} into it", campaigns.TagConfirm)
	}
	return nil
}

// rulesHashedAddress is the first version of the rules under which an address that was asked to
// confirm is noted by its hash, which records have after an erasure, too.
const rulesHashedAddress = 25

// AskToConfirm queues the message with which a contact confirms its
// subscription, at most one an hour to an address. Without credits the contact
// stays pending, and its history says why.
func (s *State) AskToConfirm(tx *feature.Tx, o uint32, d *profile.Document) (events []feature.Event) {
	to := d.Newest(identifier.Email)
	if len(to) == 0 {
		return nil
	}
	if address, ok := s.profiles.Hasher.HashIdentifier(identifier.Email, to, &s.normal); ok && tx.Rules >= rulesHashedAddress {
		s.normal = append(append(s.normal[:0], "confirm\x00"...), address[:]...)
	} else {
		s.normal = identity.AppendNormalEmail(append(s.normal[:0], "confirm\x00"...), to)
	}
	h := s.profiles.Hasher.HashIdempotencyKey(bytes.Clone(s.normal), &s.normal)
	switch v, ok, err := s.keys.Get(h); {
	case err != nil:
		panic(err) // the store is at fault; the record is named
	case ok && v.AtMs > tx.AtMs-ConfirmEveryMs:
		return nil
	}
	if refusal := s.QueueConfirmation(tx, o, string(to), ""); refusal != nil {
		return []feature.Event{feature.NewEvent(failedType("email"), feature.Properties{"purpose": messages.RefConfirmation, "reason": refusal.Message})}
	}
	s.keys.Put(h, dedup.Answer{AtMs: tx.AtMs, Ordinal: o})
	return nil
}

// QueueConfirmation queues the message that asks for a confirmation: of a subscription, or of
// a form's submission, whose id is given. It is refused where there are no credits, or the
// outbox is full.
func (s *State) QueueConfirmation(tx *feature.Tx, o uint32, to, submission string) *refuse.Refusal {
	payload := must.JSON(messages.Mail{To: to, TemplateID: s.host.ConfirmTemplate(), Sender: s.DefaultSender(), Confirm: true, Submission: submission})
	if refusal := s.outbox.Room(len(payload)); refusal != nil {
		return refusal
	}
	if !s.host.SpendCredits(1) {
		return noCredits()
	}
	if _, refusal := s.outbox.Queue(tx, outbox.Item{Kind: outbox.KindEmail, Ordinal: o, Ref: messages.RefConfirmation}, payload); refusal != nil {
		panic(refusal) // there was room a moment ago
	}
	return nil
}
