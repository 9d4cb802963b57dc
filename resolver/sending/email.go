package resolver

import (
	"bytes"
	"slices"
	"strings"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

const (
	confirmEveryMs     = 3_600_000
	senderWithoutNames = "no-reply@"
)

// sendEmail queues one message: it goes to whoever can be reached, but not to addresses
// that bounced, complained or are suppressed. People who have unsubscribed get it only
// when its template is transactional.
func (m *Machine) sendEmail(cmd *command, c messages.EmailSend) *Refusal {
	a := cmd.account
	if c.Sender == "" {
		c.Sender = a.defaultSender()
	}
	c.Confirm = false
	if refusal := a.checkMail(&c); refusal != nil {
		return refusal
	}
	if c.Key != "" {
		if reply, refusal := m.sentBefore(a, &c); refusal != nil || reply != nil {
			if reply != nil {
				cmd.reply(reply)
			}
			return refusal
		}
	}
	if c.Unfit {
		return invalid("template_id", "template_id: the template cannot be sent to this person")
	}
	payload := must.JSON(c.Mail)
	if refusal := a.outbox.Room(len(payload)); refusal != nil {
		return refusal
	}
	t, _ := a.campaigns.Template(c.TemplateID)
	o, refusal := m.mailable(cmd, c.To, cmd.name == messages.CommandEmailSend1 || t.Transactional)
	if refusal != nil {
		return refusal
	}
	if !m.spendCredits(a, 1) {
		panic("e-mail credits were there a moment ago")
	}
	seq, refusal := a.outbox.Queue(m.tx(a), outbox.Item{Kind: outbox.KindEmail, Ordinal: o, Ref: c.TemplateID}, payload)
	if refusal != nil {
		panic(refusal) // there was room a moment ago
	}
	if c.Key != "" {
		m.noteSend(cmd, &c, o, seq)
	}
	cmd.reply(messages.EmailSendReply{MessageID: messages.OutboxSend(seq, o).Text(a.number), Profile: a.profiles.Headers.Get(o).ID.String(), Sender: c.Sender})
	return nil
}

// checkMail says what cannot be sent, whoever it is for.
func (a *account) checkMail(c *messages.EmailSend) *Refusal {
	switch {
	case strings.TrimSpace(c.To) == "":
		return invalid("to", "to Field required")
	case !a.hasTemplate(c.TemplateID):
		return campaigns.NoTemplate()
	}
	if r := c.CheckLengths(); r != nil {
		return r
	}
	if a.EmailCredits < 1 && c.Key == "" {
		return noCredits()
	}
	return a.domains.MayBeSender(c.Sender)
}

func noCredits() *Refusal {
	return &Refusal{Code: "conflict", Message: "the account is out of e-mail credits; top up and send again"}
}

// mailable finds the profile of an address, or makes one, and judges whether it
// may be sent to; transactional messages go to people who have unsubscribed, too. It is
// the last thing that may refuse.
func (m *Machine) mailable(cmd *command, to string, transactional bool) (o uint32, refusal *Refusal) {
	a := cmd.account
	if a.EmailCredits < 1 {
		return 0, noCredits()
	}
	h, ok := a.profiles.Hasher.HashIdentifier(IdentityEmail, []byte(to), &m.normal)
	if !ok {
		return 0, invalid("to", "to Input should be an e-mail address")
	}
	if o = a.profiles.Identifiers.Owner(h); o != profile.NoOrdinal {
		if err := a.profiles.Load(o, &m.resolution.Doc); err != nil {
			panic(err) // the store is at fault; the record is named
		}
		if reason := m.resolution.Doc.Blocked(profile.ChannelEmail); slices.Contains(messages.Undeliverable, reason.String()) {
			return 0, &Refusal{Code: "conflict", Field: "to", Message: "to: the address is blocked (" + reason.String() + "); lift the block first"}
		}
		if !transactional && m.resolution.Doc.Unsubscribed(profile.ChannelEmail) {
			return 0, &Refusal{Code: "conflict", Field: "to", Message: "to: " + messages.UnsubscribedReason}
		}
		return o, nil
	}
	p := a.profiles.LookUp(eventlog.Event{Email: []byte(to)})
	r, refusal, err := a.profiles.Resolve(p, m.logTime, identrules.Identifiers{})
	if err != nil {
		panic(err)
	}
	if refusal != nil {
		refusal = ownField(refusal)
		refusal.Field, refusal.Message = "to", "to"+strings.TrimPrefix(refusal.Message, "email")
		return 0, refusal
	}
	a.profiles.Commit(m.tx(a), 0, p, &r, cmd.rows)
	o = r.Ordinal
	m.trackProfile(a, &r)
	a.engine.Settle(o)
	if err := a.profiles.Store(&r); err != nil {
		panic(err)
	}
	return o, nil
}

// DefaultSender is the sender of e-mails that name none.
func (v *View) DefaultSender() string { return v.a.defaultSender() }

// defaultSender is of the oldest verified domain, of [domains.Development] when there is
// none.
func (a *account) defaultSender() string { return senderWithoutNames + a.domains.Default() }

// What is remembered of a key: whom it was sent to, the number of the item in two
// halves, and what the message was.
const (
	sendOf = iota
	sendLow
	sendHigh
	sendWhat
)

// sentBefore finds the answer to a key that was used before, nil if it was not.
func (m *Machine) sentBefore(a *account, c *messages.EmailSend) (*messages.EmailSendReply, *Refusal) {
	var parts [identifier.SendKeyParts]uint32
	for i := range parts {
		v, ok, err := m.keys.Get(a.profiles.Hasher.HashSendKey(c.Key, byte(i), &m.normal))
		switch {
		case err != nil:
			panic(err) // the store is at fault; the record is named
		case !ok || v.AtMs <= a.keysFromMs(m.logTime):
			return nil, nil
		}
		parts[i] = v.Ordinal
	}
	if what := parts[sendWhat]; what != c.Fingerprint(a.profiles.Hasher, &m.normal) && what != c.Fingerprint2() {
		return nil, &Refusal{Code: "conflict", Field: "idempotency_key", Message: "idempotency_key was used for another message; use a new one for each"}
	}
	o := parts[sendOf]
	seq := uint64(parts[sendHigh])<<32 | uint64(parts[sendLow])
	return &messages.EmailSendReply{MessageID: messages.OutboxSend(seq, o).Text(a.number), Profile: a.profiles.Headers.Get(o).ID.String(), Sender: c.Sender}, nil
}

func (m *Machine) noteSend(cmd *command, c *messages.EmailSend, o uint32, seq uint64) {
	a := cmd.account
	what := c.Fingerprint2()
	if cmd.name == messages.CommandEmailSend {
		what = c.Fingerprint(a.profiles.Hasher, &m.normal)
	}
	for i, v := range [...]uint32{o, uint32(seq), uint32(seq >> 32), what} {
		m.keys.Put(a.profiles.Hasher.HashSendKey(c.Key, byte(i), &m.normal), dedup.Answer{AtMs: m.logTime, Ordinal: v})
	}
}

// checkConfirmTemplate says what keeps a template from asking for confirmations.
func (a *account) checkConfirmTemplate(id string) *Refusal {
	if id == "" {
		return nil
	}
	t, ok := a.campaigns.Template(id)
	switch {
	case !ok:
		return notFound("confirm_template_id", "confirm_template_id: there is no such template")
	case !t.Confirms:
		return invalid("confirm_template_id", "confirm_template_id: the template lacks the link to confirm; put {{%s}} into it", campaigns.TagConfirm)
	}
	return nil
}

// askToConfirm queues the message with which a contact confirms its
// subscription, at most one an hour to an address. Without credits the contact
// stays pending, and its history says why.
func (m *Machine) askToConfirm(cmd *command, o uint32, d *profile.Document) (events []feature.Event) {
	a := cmd.account
	to := d.Newest(IdentityEmail)
	if len(to) == 0 {
		return nil
	}
	m.normal = identity.AppendNormalEmail(append(m.normal[:0], "confirm\x00"...), to)
	h := a.profiles.Hasher.HashIdempotencyKey(bytes.Clone(m.normal), &m.normal)
	switch v, ok, err := m.keys.Get(h); {
	case err != nil:
		panic(err) // the store is at fault; the record is named
	case ok && v.AtMs > m.logTime-confirmEveryMs:
		return nil
	}
	failed := func(reason string) []feature.Event {
		return []feature.Event{feature.NewEvent(failedType("email"), feature.Properties{"purpose": messages.RefConfirmation, "reason": reason})}
	}
	payload := must.JSON(messages.Mail{To: string(to), TemplateID: a.Settings.ConfirmTemplateID, Sender: a.defaultSender(), Confirm: true})
	if refusal := a.outbox.Room(len(payload)); refusal != nil {
		return failed(refusal.Message)
	}
	if !m.spendCredits(a, 1) {
		return failed(noCredits().Message)
	}
	if _, refusal := a.outbox.Queue(m.tx(a), outbox.Item{Kind: outbox.KindEmail, Ordinal: o, Ref: messages.RefConfirmation}, payload); refusal != nil {
		panic(refusal) // there was room a moment ago
	}
	m.keys.Put(h, dedup.Answer{AtMs: m.logTime, Ordinal: o})
	return nil
}
