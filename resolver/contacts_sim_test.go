package resolver

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// randomContactCommand makes, changes and lists contacts of the small world of
// [randomEvent], so that they meet those who send events.
func randomContactCommand(rng *rand.Rand, world int, node Served) {
	ctx := context.Background()
	var lists, people []string
	_ = node.Read(ctx, testAccount, func(v *View) error {
		for _, l := range v.Contacts().Lists() {
			lists = append(lists, l.ID)
		}
		for range 3 {
			if n := accountOf(v).Profiles.Headers.Count; n > 0 {
				people = append(people, v.Profiles().ID(uint32(rng.IntN(int(n)))).String())
			}
		}
		return nil
	})
	text := func(format string) *string {
		s := fmt.Sprintf(format, rng.IntN(world))
		return &s
	}
	list := func() string {
		if len(lists) == 0 {
			return ""
		}
		return pick(rng, lists...)
	}
	if len(people) == 0 {
		people = []string{"prf_0"}
	}
	send := func(name string, args any) { _, _ = node.Command(ctx, testAccount, name, args) }
	create := contacts.Create{FirstName: "Ada"}
	if rng.IntN(4) > 0 {
		create.Email = *text(pick(rng, "U%d@x.io", "U%d@x.io", "U%d@x.io", "u%dß@x.io", "U%dSS@x.io"))
	}
	if rng.IntN(3) == 0 {
		create.ExternalID = *text("id-%d")
	}
	if rng.IntN(3) == 0 {
		create.Phone = *text("+49 30 %d")
	}
	if rng.IntN(4) == 0 {
		randomCampaignCommand(rng, node, list(), people)
		return
	}
	if rng.IntN(4) == 0 {
		randomOutboxCommand(rng, world, node)
		return
	}
	if rng.IntN(12) == 0 {
		send(CommandContactErase, ContactErase{ID: pick(rng, people...)})
		return
	}
	if rng.IntN(40) == 0 {
		send(erasure.CommandLift, erasure.Lift{Value: create.Email})
	}
	switch rng.IntN(11) {
	case 9, 10:
		randomDeviceCommand(rng, node, people)
	case 0, 1:
		if rng.IntN(2) == 0 {
			create.ListID = list()
		}
		send(contacts.CommandCreate, create)
	case 2:
		if len(lists) < 4 {
			send(contacts.CommandListCreate, contacts.ListSave{Name: "l"})
		}
	case 3, 4:
		send(contacts.CommandListAdd, contacts.ListAdd{ListID: list(), Create: create})
	case 5:
		send(contacts.CommandListRemove, contacts.ListRemove{ListID: list(), Profile: pick(rng, people...)})
	case 6:
		if rng.IntN(4) == 0 {
			send(contacts.CommandListDelete, contacts.ListDelete{ID: list()})
		}
		send(contacts.CommandUpdate, contacts.Update{ID: pick(rng, people...), Phone: text("+49 30 %d"), Attributes: json.RawMessage(pick(rng, `{"plan":"pro"}`, `{"plan":null}`)),
			Consents: []contacts.ConsentChange{{Channel: pick(rng, "email", "sms"), Status: pick(rng, "subscribed", "unsubscribed"), Source: "form", Effective: rng.IntN(2) == 0}}})
	case 7:
		send(contacts.CommandConsentSet, contacts.ConsentSet{ID: pick(rng, people...), Channel: pick(rng, "email", "sms"), Status: pick(rng, "subscribed", "unsubscribed"), Source: "form"})
	case 8:
		send(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: pick(rng, people...), Channel: "email", Reason: pick(rng, "bounced", "complained", "suppressed", "")})
	}
}

// randomCampaignCommand makes campaigns, starts them and does a piece of the
// dispatcher's work, also out of turn.
func randomCampaignCommand(rng *rand.Rand, node Served, list string, people []string) {
	ctx := context.Background()
	var all []campaigns.Campaign
	run := 0
	_ = node.Read(ctx, testAccount, func(v *View) error { all = v.Campaigns().All(); return nil })
	send := func(name string, args any) []byte { b, _ := node.Command(ctx, testAccount, name, args); return b }
	if len(all) < 3 {
		send(campaigns.CommandSave, campaigns.Campaign{Name: "c", Channel: 1})
		return
	}
	c := pick(rng, all...)
	_ = node.Read(ctx, testAccount, func(v *View) error {
		if r, ok := v.Campaigns().Run(c.ID); ok {
			run = r.Run
		}
		return nil
	})
	start := campaigns.Start{ID: c.ID, Plan: campaigns.Plan{BatchSize: 1 + rng.IntN(4)}, Variants: []campaigns.Content{content, content}[:1+rng.IntN(2)], Everybody: list == ""}
	if list != "" {
		start.ListIDs = []string{list}
	}
	if len(start.Variants) > 1 {
		start.AB = &campaigns.ABTest{Percent: 50, Metric: "opens", WaitMs: 50}
	}
	switch rng.IntN(8) {
	case 0:
		send(CommandCreditsAdd, CreditsAdd{Amount: 2})
		send(campaigns.CommandStart, start)
	case 1:
		send(campaigns.CommandFinish, campaigns.Finish{ID: c.ID, Run: run})
	case 2:
		send(campaigns.CommandResume, campaigns.Batch{ID: c.ID, Run: run})
	case 3:
		send(campaigns.CommandDelete, campaigns.Ref{ID: c.ID})
	case 4:
		o := uint32(rng.IntN(20))
		send(messages.CommandEngagement, messages.EngagementRecord{Send: messages.CampaignSend(c.Number, o, 0), Profile: pick(rng, people...), Channel: "email",
			Kind: pick(rng, messages.EngagementOpen, messages.EngagementClick, messages.EngagementBounce, messages.EngagementSoftBounce, messages.EngagementUnsubscribed), Agent: pick(rng, "", messages.AgentPerson, messages.AgentMachine)})
	default:
		var b campaigns.BatchReply
		_ = json.Unmarshal(send(campaigns.CommandBatch, campaigns.Batch{ID: c.ID, Run: run}), &b)
		for _, x := range b.Recipients {
			send(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: run, Ordinal: x.Ordinal, Variant: x.Variant, Result: pick(rng, outbox.ResultSent, outbox.ResultSent, outbox.ResultFailed, outbox.ResultBounced, outbox.ResultRefused)})
		}
	}
}
