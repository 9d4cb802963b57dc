package resolver

import (
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/messages"
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
	replayed := testMachine(t)
	var rows query.Batch
	var again Outcome
	for offset, rec := range w.log {
		if err := replayed.Apply(int64(offset), rec, &rows, &again); err != nil {
			t.Fatalf("record %d: %v", offset, err)
		}
	}
	have, err := replayed.Hash()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := w.m.Hash(); err != nil || have != want {
		t.Errorf("the state is %.16s, %.16s after a replay (%v)", want, have, err)
	}
}
