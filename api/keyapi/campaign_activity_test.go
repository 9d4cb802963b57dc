package keyapi

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// TestRecipientActivity: what each recipient opened and clicked, when first, and
// which links; what a machine opened is not a person's.
func TestRecipientActivity(t *testing.T) {
	t.Parallel()
	s := newServiceWith(t, &rowHistory{}, nil)
	for _, email := range []string{"a@x.io", "b@x.io"} {
		s.a("POST", "/contacts", `{"email":"`+email+`"}`, nil)
	}
	var c struct {
		ID string `json:"_id"`
	}
	s.a("POST", "/campaign", `{"name":"n","channel":1}`, &c)
	command := func(name string, args, v any) {
		t.Helper()
		b, err := s.node.Command(t.Context(), s.account, name, args)
		ok(t, err)
		if v != nil {
			ok(t, json.Unmarshal(b, v))
		}
	}
	command(campaigns.CommandStart, campaigns.Start{ID: c.ID, Plan: campaigns.Plan{BatchSize: 10}, Everybody: true,
		Variants: []campaigns.Content{{Sender: "a@" + domains.Development, HTML: "x", Links: []string{"http://l/1"}}}}, nil)
	var batch campaigns.BatchReply
	command(campaigns.CommandBatch, campaigns.Batch{ID: c.ID, Run: 1}, &batch)
	if len(batch.Recipients) != 2 {
		t.Fatalf("batch %+v", batch)
	}
	for _, r := range batch.Recipients {
		command(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: 1, Ordinal: r.Ordinal, Result: outbox.ResultSent}, nil)
	}
	act := func(ordinal uint32, kind, url, agent string) {
		t.Helper()
		s.clock.Advance(time.Minute)
		command(messages.CommandEngagement, messages.EngagementRecord{Send: messages.CampaignSend(0, ordinal, 0), Channel: "email", Kind: kind, URL: url, Agent: agent}, nil)
	}
	act(0, messages.EngagementOpen, "", messages.AgentMachine)
	act(0, messages.EngagementOpen, "", messages.AgentPerson) // 12:02
	act(0, messages.EngagementOpen, "", messages.AgentPerson)
	act(0, messages.EngagementClick, "http://l/1", messages.AgentPerson) // 12:04
	act(1, messages.EngagementOpen, "", messages.AgentMachine)
	var out []recipientActivity
	s.a("GET", "/campaign/"+c.ID+"/recipients/activity", "", &out)
	if len(out) != 2 {
		t.Fatalf("%+v", out)
	}
	a, b := out[0], out[1]
	if !a.Opened || !a.Clicked || a.Opens != 2 || *a.OpenedAt != "2025-03-01T12:02:00.000Z" || a.Clicks != 1 || *a.ClickedAt != "2025-03-01T12:04:00.000Z" ||
		len(a.Links) != 1 || a.Links[0].URL != "http://l/1" || a.Links[0].LastClickedAt != "2025-03-01T12:04:00.000Z" {
		t.Errorf("who opened and clicked: %+v", a)
	}
	if b.Opened || b.Opens != 0 || b.OpenedAt != nil || b.Links == nil || len(b.Links) != 0 {
		t.Errorf("who did nothing: %+v", b)
	}
}
