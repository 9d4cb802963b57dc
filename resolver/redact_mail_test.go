package resolver

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// TestReplayOfRedactedMail: once the recipient of an e-mail with an idempotency key is
// erased, replaying the redacted log makes the same state.
func TestReplayOfRedactedMail(t *testing.T) {
	t.Parallel()
	w := &redactWorld{recorder: &recorder{t: t, m: testMachine(t), now: 1_000_000_000_000}, rng: rand.New(rand.NewPCG(1, 1)), account: testAccount}
	b := testBootstrap(DefaultSettings())
	b.HashKey = hex.EncodeToString(make([]byte, 16))
	w.do(CommandBootstrap, b)
	w.do(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "s", HTML: "<p>{{confirm_url}}"})
	a := w.m.accounts[testAccount]
	id := a.Campaigns.Templates()[0].ID
	send := messages.EmailSend{Mail: messages.Mail{To: "u1@x.io", TemplateID: id}, Key: "k1"}
	out := w.do(messages.CommandEmailSend, send)
	if out.Refusal != nil {
		t.Fatal(out.Refusal)
	}
	w.do(CommandContactErase, ContactErase{ID: a.Profiles.Headers.Get(0).ID.String()})
	if a.Erasure.Pending() != 1 {
		t.Fatal("no profile was erased")
	}
	w.redact()
	w.replaysToTheSame(t)
}

// replaysToTheSame checks that a replay of the log makes the state that there is.
func (w *redactWorld) replaysToTheSame(t *testing.T) {
	t.Helper()
	replayed := testMachine(t)
	var rows query.Batch
	var out Outcome
	for offset, rec := range w.log {
		if err := replayed.Apply(int64(offset), rec, &rows, &out); err != nil {
			t.Fatalf("record %d: %v", offset, err)
		}
	}
	if have, want := hashOf(t, replayed), hashOf(t, w.m); have != want {
		t.Errorf("the state is %.16s, %.16s after a replay", want, have)
	}
}

// TestLateOutcomesLeaveTheLog: the outcome of a message that is appended after its recipient was
// erased is redacted, whether it is applied or refused. Rules below version 26 keep it.
func TestLateOutcomesLeaveTheLog(t *testing.T) {
	t.Parallel()
	const reason, secret = "mailbox=u1@x.io: Secret-reason", "Secret-token"
	card := json.RawMessage(`{"title":"Secret-title","body":"Secret-body"}`)
	for _, rules := range []int{rulesLateOutcomes - 1, ApplyVersion} {
		for name, late := range map[string]struct {
			command string
			outcome func(of outbox.Item, campaign string) any
		}{
			"of a message": {messages.CommandOutboxDone, func(of outbox.Item, _ string) any {
				return outbox.Done{Seq: of.Seq, Attempt: of.Attempt, Ordinal: of.Ordinal, ItemName: of.ItemName, Result: outbox.ResultFailed, Reason: reason,
					ProviderID: secret, Retired: []string{secret}, InApp: card}
			}},
			"of a message, to be sent again": {messages.CommandOutboxDone, func(of outbox.Item, _ string) any {
				return outbox.Done{Seq: of.Seq, Attempt: of.Attempt, Ordinal: of.Ordinal, ItemName: of.ItemName, Result: outbox.ResultRetry, Reason: reason}
			}},
			"of a campaign": {campaigns.CommandResult, func(of outbox.Item, campaign string) any {
				return campaigns.Result{ID: campaign, Run: 1, Ordinal: of.Ordinal, Result: outbox.ResultBounced, Reason: reason, Retired: []string{secret}, InApp: card}
			}},
			"of a campaign's earlier run": {campaigns.CommandResult, func(of outbox.Item, campaign string) any {
				return campaigns.Result{ID: campaign, Run: 7, Ordinal: of.Ordinal, Result: outbox.ResultBounced, Reason: reason}
			}},
		} {
			t.Run(fmt.Sprintf("%s under rules %d", name, rules), func(t *testing.T) {
				w := &redactWorld{recorder: &recorder{t: t, m: testMachine(t), now: 1_000_000_000_000}, rng: rand.New(rand.NewPCG(1, 1)), account: testAccount}
				b := testBootstrap(DefaultSettings())
				b.HashKey, b.ApplyVersion = hex.EncodeToString(make([]byte, 16)), rules
				w.do(CommandBootstrap, b)
				w.do(CommandCreditsAdd, CreditsAdd{Amount: 100})
				template := answer[campaigns.Template](t, w.do(campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "s", HTML: "<p>{{confirm_url}}"}))
				list := answer[contacts.List](t, w.do(contacts.CommandListCreate, contacts.ListSave{Name: "L"}))
				w.do(contacts.CommandCreate, contacts.Create{Email: "u1@x.io", ListID: list.ID})
				campaign := answer[campaigns.Campaign](t, w.do(campaigns.CommandSave, campaigns.Campaign{Name: "news", Channel: 2, Type: 1, Date: "2026-01-01"}))
				w.do(campaigns.CommandStart, campaigns.Start{ID: campaign.ID, Plan: campaigns.Plan{ListIDs: []string{list.ID}, BatchSize: 2}, Variants: []campaigns.Content{content}})
				if got := answer[campaigns.BatchReply](t, w.do(campaigns.CommandBatch, campaigns.Batch{ID: campaign.ID, Run: 1})); len(got.Recipients) != 1 {
					t.Fatalf("the campaign goes to %+v", got)
				}
				w.do(messages.CommandEmailSend, mailTo("u1@x.io", template.ID))
				sends := w.due(outbox.KindEmail)
				if len(sends) != 1 {
					t.Fatalf("%+v is to be sent", sends)
				}
				w.do(CommandContactErase, ContactErase{ID: w.m.accounts[testAccount].Profiles.Headers.Get(0).ID.String()})
				w.redact()

				env := w.env(eventlog.KindCommand)
				w.store(eventlog.AppendCommand(env.Append(nil), late.command, must.JSON(late.outcome(sends[0].Item, campaign.ID))))
				_, noted := w.m.NextErasures(0, true)
				if want := rules >= rulesLateOutcomes; noted != want {
					t.Errorf("the outcome is noted: %v, want %v", noted, want)
				}
				w.redact()
				all := bytes.Join(w.log, nil)
				if stays := bytes.Contains(all, []byte("Secret")) || bytes.Contains(all, []byte("u1@x.io")); stays == (rules >= rulesLateOutcomes) {
					t.Errorf("the person is in the log: %v", stays)
				}
				w.replaysToTheSame(t)
			})
		}
	}
}
