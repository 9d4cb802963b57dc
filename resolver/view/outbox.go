package view

import (
	"encoding/json"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// Outbox is the account's outbox and webhook endpoints.
func (v *View) Outbox() *outbox.State { return v.a.Outbox }

// OutboxWork is an item to be carried out, with its payload.
type OutboxWork struct {
	outbox.Item
	// Root is the profile that the item concerns now, NoProfile for none.
	Root    uint32
	Payload []byte
	// Moot says why there is no reason any more to carry it out, empty when there is
	// one. Its payload is not whole then.
	Moot string
	// Epoch is that of the lease that this node holds, 0 when embedded.
	Epoch uint64
}

// Send is the id of the item's message.
func (w *OutboxWork) Send() messages.ID { return messages.OutboxSend(w.Origin, w.Ordinal) }

// OutboxDue lists items of a kind that are due, see [outbox.State.Due].
func (v *View) OutboxDue(kind string, nowMs int64, limit int, skip func(seq uint64) bool) ([]OutboxWork, error) {
	return v.outboxWork(v.a.Outbox.Due(kind, nowMs, limit, skip))
}

// WebhooksDue lists webhooks that are due, see [outbox.State.WebhooksDue].
func (v *View) WebhooksDue(nowMs int64, limit int, room func(*outbox.Endpoint) int, skip func(seq uint64) bool) ([]OutboxWork, error) {
	return v.outboxWork(v.a.Outbox.WebhooksDue(nowMs, limit, room, skip))
}

// outboxWork adds what carrying out items takes.
func (v *View) outboxWork(list []*outbox.Item) ([]OutboxWork, error) {
	out := make([]OutboxWork, 0, len(list))
	for _, it := range list {
		payload, err := v.a.Outbox.Payload(it.Origin)
		if err == nil && it.Flow != "" {
			payload, err = flowPayload(v.a, it, payload)
		}
		if err != nil {
			return nil, err
		}
		w := OutboxWork{Item: *it, Root: it.Ordinal, Payload: payload, Epoch: v.epoch()}
		if it.Ordinal != outbox.NoProfile {
			w.Root = v.a.Profiles.Root(it.Ordinal)
		}
		if it.Flow != "" && !v.a.Flows.Has(it.Flow) {
			w.Moot = flowDeleted
		}
		out = append(out, w)
	}
	return out, nil
}

// DefaultSender is the sender of e-mails that name none.
func (v *View) DefaultSender() string { return v.a.Sending.DefaultSender() }

// flowDeleted is why what a flow left in the outbox is not carried out.
const flowDeleted = "the flow was deleted"

// flowPayload puts what a flow's step says into the payload of its item: items
// are queued without it, so that a body is not stored for each recipient. What
// is live cannot change; of a deleted flow nothing is left to say.
func flowPayload(a *account.State, it *outbox.Item, payload []byte) ([]byte, error) {
	s := a.Flows.Step(it.Flow, it.Step)
	if s == nil {
		return payload, nil
	}
	email := s.Email()
	switch {
	case it.Kind == outbox.KindEmail && email != nil && email.TemplateID == "":
		var x messages.Mail
		if err := json.Unmarshal(payload, &x); err != nil {
			return nil, err
		}
		x.HTML, x.Text = email.Body, email.Text
		return must.JSON(x), nil
	case it.Kind == outbox.KindCall && s.Webhook != nil:
		var x messages.Request
		if err := json.Unmarshal(payload, &x); err != nil {
			return nil, err
		}
		x.Body = s.Webhook.Body
		return must.JSON(x), nil
	}
	return payload, nil
}
