package resolver

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

// randomOutboxCommand sends e-mails, keeps webhook endpoints and does a piece of
// the dispatcher's work, also out of turn and twice.
func randomOutboxCommand(rng *rand.Rand, world int, node Served) {
	ctx := context.Background()
	send := func(name string, args any) []byte { b, _ := node.Command(ctx, testAccount, name, args); return b }
	var templates []campaigns.Template
	var endpoints []outbox.Endpoint
	var due []view.OutboxWork
	var dead []outbox.DeadLetter
	var logged []outbox.Delivery
	_ = node.Read(ctx, testAccount, func(v *View) (err error) {
		templates, endpoints = v.Campaigns().Templates(), v.Outbox().Endpoints()
		for _, kind := range []string{outbox.KindEmail, outbox.KindWebhook} {
			list, err := v.OutboxDue(kind, 1<<60, 3, func(uint64) bool { return rng.IntN(3) == 0 })
			if err != nil {
				return err
			}
			due = append(due, list...)
		}
		for _, e := range endpoints {
			list, err := v.Outbox().DeadLetters(e.ID, 0, 2)
			if err != nil {
				return err
			}
			dead = append(dead, list...)
			some, err := v.Outbox().Deliveries(e.ID, "", 0, 3)
			if err != nil {
				return err
			}
			logged = append(logged, some...)
		}
		return nil
	})
	if len(templates) == 0 {
		send(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "s", Text: "x {{confirm_url}}"})
		return
	}
	if len(endpoints) == 0 || len(endpoints) < 3 && rng.IntN(4) == 0 {
		url, events := "https://hooks.example.com/", []string{pick(rng, "*", "email.*", "contact.created", "analytics.*")}
		send(outbox.CommandWebhookCreate, outbox.WebhookSave{URL: &url, Events: &events, Secret: "whsec_x"})
		return
	}
	e := pick(rng, endpoints...)
	switch rng.IntN(10) {
	case 0:
		s := DefaultSettings()
		s.DoubleOptIn = rng.IntN(2) == 0
		send(CommandSettingsSet, s)
	case 1:
		send(outbox.CommandWebhookTest, outbox.WebhookRef{ID: e.ID})
	case 2:
		ordered := true
		status := pick(rng, outbox.EndpointActive, outbox.EndpointActive, outbox.EndpointDisabled)
		send(outbox.CommandWebhookUpdate, outbox.WebhookSave{ID: e.ID, Status: &status, Ordered: pick(rng, nil, new(bool), &ordered)})
	case 3:
		switch rng.IntN(4) {
		case 3:
			if len(logged) > 0 {
				x := pick(rng, logged...)
				send(outbox.CommandWebhookReplay, outbox.WebhookReplay{ID: x.Endpoint, Origin: x.Origin})
			}
		case 0:
			send(outbox.CommandWebhookDelete, outbox.WebhookRef{ID: e.ID})
		case 1:
			send(outbox.CommandWebhookRotate, outbox.WebhookRef{ID: e.ID, Secret: "whsec_y"})
		default:
			if len(dead) > 0 {
				x := pick(rng, dead...)
				send(outbox.CommandWebhookReplay, outbox.WebhookReplay{ID: x.Endpoint, Seq: pick(rng, 0, x.Seq)})
			}
		}
	case 4, 5:
		send(CommandCreditsAdd, CreditsAdd{Amount: 3})
		send(messages.CommandEmailSend, messages.EmailSend{Mail: messages.Mail{To: fmt.Sprintf("u%d@x.io", rng.IntN(world)), TemplateID: templates[0].ID, Data: json.RawMessage(`{"a":1}`)},
			Key: pick(rng, "", fmt.Sprintf("k%d", rng.IntN(5)))})
	default:
		for _, w := range due {
			d := outbox.Done{Seq: w.Seq, Attempt: w.Attempt, Reason: "why", DelayMs: rng.Int64N(1000),
				Log:    pick(rng, nil, &outbox.DeliveryAnswer{Status: 200 + rng.IntN(300), TookMs: 7, Answer: "ok"}),
				Result: pick(rng, outbox.ResultSent, outbox.ResultSent, outbox.ResultRetry, outbox.ResultFailed, outbox.ResultBounced, outbox.ResultRefused, outbox.ResultGone, outbox.ResultMoot)}
			for range 1 + rng.IntN(2) {
				send(messages.CommandOutboxDone, d)
			}
		}
	}
}
