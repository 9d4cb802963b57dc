package resolver

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// entitiesOf counts the stored entities of a kind.
func (d *durable) entitiesOf(kind byte) (n int) {
	d.t.Helper()
	d.reload()
	err := d.m.store.Each(state.TableEntity, func(_ uint64, rest, _ []byte) error {
		if rest[0] == kind {
			n++
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

// TestB1ListsAreBoundedAtATime: an account may make lists for ever as long as it
// deletes others; deleted ones cost nothing, and a list made later has no members
// of a deleted one (B1, R1).
func TestB1ListsAreBoundedAtATime(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	kept := r.list("kept")
	onKept := r.segment(fmt.Sprintf(`{"kind":"list","list_id":%q}`, kept))
	id := r.contact(contacts.Create{Email: "ada@x.io", ListID: kept})
	for i := range contacts.MaxLists + 50 {
		l := r.list("l")
		if i%20 == 0 {
			r.must(contacts.CommandListAdd, contacts.ListAdd{ListID: l, Create: contacts.Create{Email: "ada@x.io"}})
		}
		r.must(contacts.CommandListDelete, contacts.ListDelete{ID: l})
		if i == contacts.MaxLists/2 {
			d.reload()
		}
	}
	late := r.list("late")
	p := r.profile(id)
	if len(p.Lists) != 1 || p.Lists[0] != kept || r.countIn(onKept) != 1 {
		t.Errorf("the contact is on %v, %d members", p.Lists, r.countIn(onKept))
	}
	v := r.view()
	if list, _ := v.Contacts().Find(late); v.Contacts().Members(list).GetCardinality() != 0 {
		t.Error("a list that was just made has members")
	}
	a := r.m.accounts[testAccount]
	if len(a.Contacts.Lists()) != 2 || len(a.Contacts.ListIDs()) != 2 {
		t.Errorf("%d lists and %d numbers are in memory", len(a.Contacts.Lists()), len(a.Contacts.ListIDs()))
	}
	if n := d.entitiesOf(state.EntityList); n != 2 {
		t.Errorf("%d lists are stored", n)
	}
	// More than 500 lists ever do not keep the contact from the 500 it may be on.
	if again := r.list("again"); again == late {
		t.Error("one id twice")
	} else {
		r.must(contacts.CommandListAdd, contacts.ListAdd{ListID: again, Create: contacts.Create{Email: "ada@x.io"}})
	}
}

func TestB1ListsHaveABound(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	var last string
	for range contacts.MaxLists {
		last = r.list("l")
	}
	r.refuses("this account has 10000 lists, the most it can have; delete one first", contacts.CommandListCreate, contacts.ListSave{Name: "l"})
	r.must(contacts.CommandListDelete, contacts.ListDelete{ID: last})
	r.list("l")
}

// TestB1CampaignsAreBoundedAtATime: at the bound the oldest push message that is
// over gives way, campaigns that people made do not, and those may be deleted some
// time after they were sent. What is gone costs nothing (B1, R1).
func TestB1CampaignsAreBoundedAtATime(t *testing.T) {
	t.Parallel()
	const limit = 6
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	r.m.campaigns.MaxCampaigns = limit
	reload := func() { d.reload(); r.m.campaigns.MaxCampaigns = limit }
	id := r.contact(contacts.Create{Email: "ada@x.io"})
	r.must(contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: id, Device: "d", Kind: "fcm", Address: "t"})
	own := r.campaign()
	run := func(c string, devices bool) {
		r.must(campaigns.CommandStart, campaigns.Start{ID: c, Plan: campaigns.Plan{BatchSize: 10}, Everybody: !devices, Devices: devices, Variants: []campaigns.Content{content}})
		b := r.batch(c, 1)
		for _, x := range b.Recipients {
			r.must(campaigns.CommandResult, campaigns.Result{ID: c, Run: 1, Ordinal: x.Ordinal, Result: outbox.ResultSent})
		}
		r.must(campaigns.CommandFinish, campaigns.Finish{ID: c, Run: 1})
	}
	r.m.accounts[testAccount].EmailCredits = 100
	run(own.ID, false)
	var first campaigns.Campaign
	push := func() string {
		c := answer[campaigns.Campaign](t, r.must(campaigns.CommandSave, campaigns.Campaign{Name: "p", Channel: 2, Type: 4, Date: "2026-01-01", Message: campaigns.Message{Subject: "hi"}, OneOff: true}))
		if first.ID == "" {
			first = c
		}
		return c.ID
	}
	for i := range 10 * limit {
		run(push(), true)
		if i%15 == 7 {
			reload()
		}
	}
	a := func() *account.State { return r.m.accounts[testAccount] }
	runs, oneOffs := 0, 0
	for _, x := range a().Campaigns.All() {
		if a().Campaigns.Started(x.ID) {
			runs++
		}
		if x.OneOff {
			oneOffs++
		}
	}
	if n := len(a().Campaigns.All()); n != limit || runs != n || oneOffs != n-1 {
		t.Fatalf("%d campaigns, %d runs, %d one-off", n, runs, oneOffs)
	}
	hashOf(t, r.m) // compares what leads to the campaigns with them
	_, kept := a().Campaigns.Campaign(own.ID)
	if _, stays := a().Campaigns.Campaign(first.ID); !kept || stays {
		t.Fatal("not the oldest push message gave way")
	}
	for name, s := range a().Sets.All() {
		if !s.Bits.IsEmpty() && name == fmt.Sprintf("campaign/%d/sent", first.Number) {
			t.Error("a set of what is gone is left")
		}
	}
	for _, kind := range []byte{state.EntityCampaign, state.EntityRun} {
		if n := d.entitiesOf(kind); n > limit {
			t.Errorf("%d entities of kind %c", n, kind)
		}
		r.m.campaigns.MaxCampaigns = limit
	}
	// What is under way does not give way.
	var busy []string
	for range limit - 1 {
		c := push()
		r.must(campaigns.CommandStart, campaigns.Start{ID: c, Plan: campaigns.Plan{BatchSize: 10}, Devices: true, Variants: []campaigns.Content{content}})
		busy = append(busy, c)
	}
	r.refuses("this account has 6 campaigns, the most it can have; delete one first", campaigns.CommandSave, campaigns.Campaign{Name: "n", Channel: 1})
	r.refuses("is being sent", campaigns.CommandDelete, campaigns.Ref{ID: busy[0]})
	r.refuses("stays on record", campaigns.CommandDelete, campaigns.Ref{ID: own.ID})
	r.now += 90 * dayMs
	send := messages.CampaignSend(own.Number, 0, 0).On("email")
	r.must(campaigns.CommandDelete, campaigns.Ref{ID: own.ID})
	made := answer[campaigns.Campaign](t, r.must(campaigns.CommandSave, campaigns.Campaign{Name: "n", Channel: 1}))
	if made.Number <= own.Number {
		t.Errorf("the number %d is used again", made.Number)
	}
	// The recipient of what was deleted may still say no.
	reload()
	s, ok := r.view().Sent(send)
	if !ok || s.Channel != "email" || s.Campaign != "" || !s.OfCampaign {
		t.Errorf("a link of a deleted campaign leads to %+v, %v", s, ok)
	}
	r.must(messages.CommandEngagement, messages.EngagementRecord{Send: send, Channel: "email", Kind: messages.EngagementUnsubscribed, Source: "link"})
	if got := r.profile(id).Consent("email").Status; got != "unsubscribed" {
		t.Error(got)
	}
	if _, ok := r.view().Sent(messages.CampaignSend(made.Number+1, 0, 0).On("email")); ok {
		t.Error("a campaign that was never made has a message")
	}
}
