package resolver

import (
	"cmp"
	"encoding/json"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// HasRoom keeps half of the outbox for events and waits.
func (p flowPort) HasRoom() bool { return p.a.Outbox.Len() < outbox.MaxItems/2 }

// queue queues an item for a step; not ok means that there is no room.
func (p flowPort) queue(kind string, from *automation.Source, ref string, payload any) (seq uint64, ok bool) {
	it := outbox.Item{Kind: kind, Ordinal: from.Ordinal, Flow: from.Flow, Step: from.Step, Ref: ref}
	seq, refusal := p.a.Outbox.Queue(p.m.tx(p.a), it, must.JSON(payload))
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
	event := json.RawMessage(from.Event)
	switch {
	case m.Email != nil:
		return p.queueEmail(from, d, m.Email)
	case m.SMS != nil:
		seq, ok = p.queue(outbox.KindSMS, from, "", messages.Text{Text: m.SMS.Text, TrackLinks: m.SMS.TrackLinks, Event: event})
	case m.WhatsApp != nil:
		t := messages.Text{Text: m.WhatsApp.Text, TrackLinks: m.WhatsApp.TrackLinks, Event: event}
		if x := m.WhatsApp; x.Template != "" {
			t.Template = &campaigns.WhatsAppTemplate{Name: x.Template, Language: x.Language, Parameters: x.Parameters, Header: x.Header}
		}
		seq, ok = p.queue(outbox.KindWhatsApp, from, "", t)
	case m.Push != nil:
		x := m.Push
		n := messages.Push{Title: x.Title, Body: x.Body, Link: x.Link, TrackLinks: x.TrackLinks, Event: event}
		if x.Image != "" || x.TTLSeconds != 0 || x.Collapse != "" {
			n.Options = &campaigns.PushOptions{Image: x.Image, TTLSeconds: int(x.TTLSeconds), Collapse: x.Collapse}
		}
		seq, ok = p.queue(outbox.KindPush, from, "", n)
	case m.InApp != nil:
		seq, ok = p.queue(outbox.KindInApp, from, "", messages.InApp{Card: *m.InApp, Event: event})
	}
	return seq, ok
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
	r := messages.Request{URL: x.URL, Method: x.Method, TimeoutMs: int64(x.TimeoutSeconds) * 1000, Attempts: x.Attempts, Event: json.RawMessage(from.Event)}
	for _, l := range x.Headers {
		r.Headers = append(r.Headers, messages.HeaderLine(l))
	}
	return p.queue(outbox.KindCall, &from, "", r)
}
