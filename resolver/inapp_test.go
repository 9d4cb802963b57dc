package resolver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// inboxOf lists the titles of a profile's messages, with what the person did.
func (r *recorder) inboxOf(id ProfileID) (out []string, list []inapp.Message) {
	r.t.Helper()
	o, ok := r.view().Profiles().Resolve(id)
	if !ok {
		r.t.Fatal("no profile")
	}
	list, err := r.view().InApp().Inbox(o, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range list {
		deeds := ""
		for _, x := range []struct {
			ms   int64
			deed string
		}{{m.SeenMs, " seen"}, {m.ClickedMs, " clicked"}, {m.DismissedMs, " dismissed"}} {
			if x.ms != 0 {
				deeds += x.deed
			}
		}
		out = append(out, m.Title+deeds)
	}
	return out, list
}

func (r *recorder) expectInbox(id ProfileID, want ...string) []inapp.Message {
	r.t.Helper()
	got, list := r.inboxOf(id)
	if !slices.Equal(got, want) {
		r.t.Fatalf("the inbox is %q, want %q", got, want)
	}
	return list
}

// TestInAppStory: campaigns and flows put messages into inboxes, once whatever is repeated;
// people see, click and dismiss them, are merged and erased, and messages end.
func TestInAppStory(t *testing.T) {
	t.Parallel()
	r := newDurable(t, DefaultSettings())
	r.must(inapp.CommandRotate, inapp.Rotate{Secret: strings.Repeat("s", 40), OverlapHours: 24})
	r.must(inapp.CommandConfigure, inapp.Configure{AllowedOrigins: []string{"https://shop.example"}})
	r.refuses("is no origin", inapp.CommandConfigure, inapp.Configure{AllowedOrigins: []string{"shop"}})
	seen := func(kind, id string) ProfileID {
		c := contacts.Create{}
		*map[string]*string{"external_id": &c.ExternalID, "email": &c.Email, "phone": &c.Phone}[kind] = id
		r.contact(c)
		return r.events(ev(kind, id, "type", "seen")).Events[0].Profile
	}
	ann, bob, cy, phone := seen("external_id", "ann"), seen("email", "bob@x.io"), seen("external_id", "cy"), seen("phone", "+491701")
	save := campaigns.Campaign{Name: "Sale", Channel: 2, Type: campaigns.TypeInApp, Date: "2026-01-01", Message: campaigns.Message{Subject: "Sale"}, ChannelOptions: campaigns.ChannelOptions{InApp: &card.Options{TTLHours: 10}}}
	x := answer[campaigns.Campaign](t, r.must(campaigns.CommandSave, save))
	bad := save
	bad.InApp = &card.Options{Display: "popup"}
	r.refuses("in_app.display", campaigns.CommandSave, bad)
	bad.InApp, bad.Type = &card.Options{}, campaigns.TypePush
	r.refuses("in_app Input should be left out", campaigns.CommandSave, bad)
	run := r.start(campaigns.Start{ID: x.ID, Everybody: true, Plan: campaigns.Plan{BatchSize: 10}, Variants: []campaigns.Content{{Subject: "Sale", InApp: save.InApp}}})
	b := r.batch(x.ID, run.Run)
	if len(b.Recipients) != 3 || r.run(x.ID).Skipped["no e-mail and no external_id"] != 1 {
		t.Fatalf("%+v %+v", b, r.run(x.ID).Skipped)
	}
	sale := must.PlainJSON(card.Card{Title: "Sale", Link: "https://shop.example", Options: card.Options{TTLHours: 10}})
	for range 2 { // a repeat changes nothing
		for _, p := range b.Recipients {
			r.must(campaigns.CommandResult, campaigns.Result{ID: x.ID, Run: run.Run, Ordinal: p.Ordinal, Result: campaigns.ResultSent, InApp: sale})
		}
	}
	r.must(campaigns.CommandFinish, campaigns.Finish{ID: x.ID, Run: run.Run})
	m := r.expectInbox(ann, "Sale")[0]
	r.expectInbox(bob, "Sale")
	r.expectInbox(phone)
	numbers := func(want string) {
		t.Helper()
		n := r.view().Campaigns().Numbers(x)
		if got := fmt.Sprint(n.Sent, n.Delivered, n.Opened, n.Clicked, n.Dismissed, n.Expired); got != want {
			t.Fatalf("sent, delivered, seen, clicked, dismissed, expired: %s, want %s", got, want)
		}
	}
	numbers("3 3 0 0 0 0")

	mark := func(id ProfileID, message, deed string) {
		t.Helper()
		r.must(inapp.CommandMark, inapp.MarkDeed{Profile: id.String(), Message: message, Deed: deed})
	}
	mark(ann, m.ID, inapp.Clicked)
	mark(ann, m.ID, inapp.Clicked)
	mark(ann, m.ID, inapp.Seen)
	r.expectInbox(ann, "Sale seen clicked")
	r.refuses("no message with this id", inapp.CommandMark, inapp.MarkDeed{Profile: bob.String(), Message: m.ID, Deed: inapp.Seen})
	r.refuses("deed must be", inapp.CommandMark, inapp.MarkDeed{Profile: ann.String(), Message: m.ID, Deed: "read"})
	numbers("3 3 1 1 0 0")
	for typ, want := range map[string]int{"in_app_sent": 3, "in_app_seen": 1, "in_app_clicked": 1, "in_app_dismissed": 0} {
		if got := r.seen(typ); got != want {
			t.Errorf("%d events %s, want %d", got, typ, want)
		}
	}

	// A flow's message. A repeat of the report finds no item.
	flow := r.flow(loopFlow("x", "ordered", `"type":"in_app","title":"Thanks","priority":5,"ttl_hours":1`))
	r.events(ev("external_id", "ann", "type", "ordered"))
	r.rest()
	r.expectEnrolment(flow, ann, "#1 s:queued completed")
	for _, w := range r.due(outbox.KindInApp) {
		for range 2 {
			r.must(messages.CommandOutboxDone, outbox.Done{Seq: w.Seq, Attempt: w.Attempt, Ordinal: w.Ordinal, ItemName: w.ItemName, Result: outbox.ResultSent,
				InApp: must.PlainJSON(card.Card{Title: "Thanks", Options: card.Options{Priority: 5, TTLHours: 1}})})
		}
	}
	r.reload()
	r.expectInbox(ann, "Thanks", "Sale seen clicked")

	// Ann and Bob are one: the message of the campaign is there once.
	ann = r.events(ev("email", "bob@x.io", "external_id", "ann", "type", "seen")).Events[0].Profile
	r.expectInbox(ann, "Thanks", "Sale seen clicked")
	mark(ann, r.expectInbox(ann, "Thanks", "Sale seen clicked")[0].ID, inapp.Dismissed)

	// What ended is gone at once, and counted when its hour is over.
	r.now += 2 * hourMs
	r.expectInbox(ann, "Sale seen clicked")
	r.must(CommandContactErase, ContactErase{ID: ann.String()})
	r.now += 10 * hourMs
	if due, ok := r.m.NextDue(); !ok || due > r.now {
		t.Errorf("no tick is due: %d, %v", due, ok)
	}
	r.expectInbox(cy)
	r.tick()
	r.tick()
	n := r.view().Campaigns().Numbers(x)
	if n.Expired != 1 {
		t.Errorf("%+v", n)
	}
	r.reload()
}
