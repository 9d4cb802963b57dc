package resolver

import (
	"cmp"
	"encoding/json"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// HasRoom keeps half of the outbox for events and waits.
func (p flowPort) HasRoom() bool { return p.a.Outbox.Len() < outbox.MaxItems/2 }

// queue queues an item for a step; not ok means that there is no room.
func (p flowPort) queue(kind string, from *automation.Source, ref string, payload any) (seq uint64, ok bool) {
	it := outbox.Item{Kind: kind, Ordinal: from.Ordinal, Flow: from.Flow, Step: from.Step, Ref: ref}
	seq, refusal := p.a.Outbox.Queue(p.m.tx.on(p.a), it, must.JSON(payload))
	return seq, refusal == nil
}

func (p flowPort) QueueMessage(from automation.Source, d *profile.Document, m *flows.Message) bool {
	seq, ok := p.queueMessage(&from, d, m)
	if ok && !m.IgnoresLimits {
		it := p.a.Outbox.Find(seq, from.Ordinal, outbox.ItemName{})
		p.m.countMessage(p.a, from.Ordinal, m.Channel, messageOf(it))
	}
	return ok
}

// queueMessage queues a message of a step; not ok means that there is no room.
func (p flowPort) queueMessage(from *automation.Source, d *profile.Document, m *flows.Message) (seq uint64, ok bool) {
	if m.Email != nil {
		return p.queueEmail(from, d, m.Email)
	}
	return p.queue(m.Channel, from, "", messages.OfStep(m, from.Event)) // kinds of items are named as channels are
}

func (p flowPort) queueEmail(from *automation.Source, d *profile.Document, x *flows.Email) (seq uint64, ok bool) {
	seq, ok = p.queue(outbox.KindEmail, from, x.TemplateID, messages.Mail{
		To: string(d.Newest(IdentityEmail)), TemplateID: x.TemplateID, Subject: x.Subject,
		Sender: cmp.Or(x.Sender, p.a.Sending.DefaultSender()), SenderName: x.SenderName, ReplyTo: x.ReplyTo,
		Advertising: true, Event: json.RawMessage(from.Event),
	})
	if ok && !p.m.spendCredits(p.a, 1) {
		panic("e-mail credits were there a moment ago")
	}
	return seq, ok
}

func (p flowPort) QueueCall(from automation.Source, x *flows.Webhook) (seq uint64, ok bool) {
	return p.queue(outbox.KindCall, &from, "", messages.CallOf(x, from.Event))
}
