package resolver

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// TestOmniChannelStory sends a campaign of several channels while people change: each is
// claimed on the first channel that reaches them, continues to the next when a message
// bounces, and who opted out, was merged or was erased meanwhile gets nothing more. Later
// engagement counts for the channel of the message.
func TestOmniChannelStory(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	a := r.m.accounts[testAccount]
	a.EmailCredits = 2
	l := r.list("one")
	ids, ordinals := map[string]string{}, map[string]uint32{}
	for i, name := range []string{"push", "sms", "mail", "bounces", "nothing", "merged", "erased", "poor"} {
		c := contacts.Create{Email: name + "@x.io", ListID: l}
		if name != "mail" && name != "poor" {
			c.Phone = fmt.Sprintf("+49 30 %d", i)
		}
		ids[name] = r.contact(c)
		ordinals[name], _ = r.view().Profiles().ResolveText(ids[name])
	}
	r.must(contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: ids["push"], Device: "d", Kind: "fcm", Address: "token-one-1234567890"})
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: ids["nothing"], Channel: "email", Status: "unsubscribed"})
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: ids["nothing"], Channel: "sms", Status: "unsubscribed"})
	c := answer[campaigns.Campaign](t, r.must(campaigns.CommandSave, campaigns.Campaign{Name: "n", Channel: campaigns.ChannelOmni, Channels: []campaigns.ChannelMessage{
		{Channel: "push", Subject: "s", Body: "b"}, {Channel: "sms", Body: "b"}, {Channel: "email"},
	}}))
	r.refuses("nowhere.example is not verified", campaigns.CommandStart, campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 9}, Channels: []string{"push", "sms", "email"}, Variants: []campaigns.Content{{}, {}, {Sender: "a@nowhere.example"}}})
	r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 9}, Channels: []string{"push", "sms", "email"}, Variants: []campaigns.Content{{Subject: "s", Text: "b"}, {Text: "b"}, {HTML: "b", Sender: "news@" + domains.Development}}})
	b := r.batch(c.ID, 1)
	want := map[string]int{"push": 0, "sms": 1, "mail": 2, "bounces": 1, "merged": 1, "erased": 1, "poor": 2}
	if len(b.Recipients) != len(want) || a.EmailCredits != 0 {
		t.Fatalf("%+v, %d credits", b, a.EmailCredits)
	}
	claimed := map[uint32]int{}
	for _, x := range b.Recipients {
		claimed[x.Ordinal] = x.Variant
	}
	for name, variant := range want {
		if have, ok := claimed[ordinals[name]]; !ok || have != variant {
			t.Errorf("%s is claimed on %d, expected %d", name, have, variant)
		}
	}
	report := func(name string, variant int, result string, unreachable bool) *campaigns.Recipient {
		t.Helper()
		out := r.must(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: 1, Ordinal: ordinals[name], Variant: variant, Result: result, Reason: "why", Unreachable: unreachable})
		if len(out.Reply) == 0 {
			return nil
		}
		return answer[campaigns.ResultReply](t, out).Next
	}
	// One e-mail fails, so that there is a credit for the next.
	if next := report("poor", 2, "failed", true); next != nil || a.EmailCredits != 1 {
		t.Errorf("next %+v, %d credits", next, a.EmailCredits)
	}
	if next := report("bounces", 1, outbox.ResultBounced, true); next == nil || next.Variant != 2 || a.EmailCredits != 0 {
		t.Fatalf("next %+v, %d credits", next, a.EmailCredits)
	}
	r.contact(contacts.Create{Email: "new@x.io"})
	r.events(ev("email", "sms@x.io", "external_id", "8"))
	r.must(CommandContactErase, ContactErase{ID: ids["erased"]})
	if next := report("erased", 1, campaigns.ResultSkipped, true); next != nil {
		t.Errorf("an erased person continues to %+v", next)
	}
	// Opted out of e-mail meanwhile: there is nothing after the text.
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: ids["merged"], Channel: "email", Status: "unsubscribed"})
	if next := report("merged", 1, campaigns.ResultSkipped, true); next != nil {
		t.Errorf("who unsubscribed continues to %+v", next)
	}
	for name, variant := range map[string]int{"push": 0, "sms": 1, "mail": 2, "bounces": 2} {
		for range 2 {
			report(name, variant, outbox.ResultSent, false)
		}
	}
	done := answer[campaigns.Run](t, r.must(campaigns.CommandFinish, campaigns.Finish{ID: c.ID, Run: 1}))
	if done.Sent != 4 || done.Failed != 1 || done.Skipped[campaigns.NoChannel] != 2 || done.Total != 8 {
		t.Errorf("%+v", done)
	}
	if a.EmailCredits != 0 || a.Types.Get("email_sent").Count != 2 || a.Types.Get("push_sent").Count != 1 || a.Types.Get("sms_sent").Count != 1 || a.Types.Get("sms_bounced").Count != 1 {
		t.Errorf("%d credits, %d e-mails", a.EmailCredits, a.Types.Get("email_sent").Count)
	}
	send := messages.CampaignSend(c.Number, ordinals["sms"], 0).On("sms")
	r.must(messages.CommandEngagement, messages.EngagementRecord{Send: send, Channel: "sms", Kind: messages.EngagementUnsubscribed, Source: "link"})
	if s, ok := r.view().Sent(send); !ok || s.Channel != "sms" || s.Campaign != c.ID || s.Variant != 1 {
		t.Errorf("%+v", s)
	}
	got := map[string]string{}
	for _, n := range r.view().Campaigns().ByChannel(c) {
		got[n.Channel] = fmt.Sprint(n.Sent, n.Failed, n.Bounced, n.Unsubscribed, n.Skipped)
	}
	if want := map[string]string{"push": "1 0 0 0 map[no device:7]", "sms": "1 1 1 1 map[no phone:2 unsubscribed:1 why:1]", "email": "2 1 0 0 map[unsubscribed:2]"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, expected %v", got, want)
	}
	// The second run has others of the campaign's channels.
	c.Channels = []campaigns.ChannelMessage{{Channel: "sms", Body: "b"}, {Channel: "im", Body: "b"}}
	r.must(campaigns.CommandSave, c)
	r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}, BatchSize: 9}, Channels: []string{"sms", "im"}, Variants: []campaigns.Content{{Text: "b"}, {Text: "b"}}, CountsSent: true})
	if b := r.batch(c.ID, 2); len(b.Recipients) != 1 || b.Recipients[0].Ordinal != ordinals["merged"] {
		t.Errorf("%+v", b)
	}
	r.must(campaigns.CommandFinish, campaigns.Finish{ID: c.ID, Run: 2, Stopped: "enough"})
	r.must(campaigns.CommandDelete, campaigns.Ref{ID: r.campaign().ID})
	if err := r.m.accounts[testAccount].CheckSets(); err != nil {
		t.Error(err)
	}
}
