package resolver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/consentlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

func addr[T any](v T) *T { return &v }

// topic makes a list that people see on their preference page.
func (r *recorder) topic(name string) string {
	r.t.Helper()
	return answer[contacts.List](r.t, r.must(contacts.CommandListCreate, contacts.ListSave{Name: name,
		TopicSave: contacts.TopicSave{Public: addr(true), PublicName: addr("News of " + name), PublicDescription: addr("Monthly.")}})).ID
}

// chooses is what a person chooses on the preference page, by a link to the profile.
func (r *recorder) chooses(id string, c messages.Preferences) messages.PreferencesReply {
	r.t.Helper()
	o, _ := r.view().Profiles().ResolveText(id)
	if c.Profile = id; c.Send == (messages.ID{}) {
		c.Send = messages.ProfileSend(o)
	}
	return answer[messages.PreferencesReply](r.t, r.must(messages.CommandPreferences, c))
}

// log is what a person said, the newest first, in a line each.
func (r *recorder) log(id string) (lines []string) {
	r.t.Helper()
	for _, x := range r.entries(id) {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s%s %s %s %s", x.Channel, x.Name, x.Status, x.Source, x.Client)))
	}
	return lines
}

func (r *recorder) entries(id string) []consentlog.Entry {
	r.t.Helper()
	o, ok := r.view().Profiles().ResolveText(id)
	if !ok {
		r.t.Fatalf("there is no profile %s", id)
	}
	list, err := r.view().Profiles().ConsentLog(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

func (r *recorder) logged(id string, want ...string) {
	r.t.Helper()
	if got := r.log(id); !slices.Equal(got, want) {
		r.t.Fatalf("the log of consents is %q, expected %q", got, want)
	}
}

// TestPreferencesStory: what people choose on their page, what the log of consents has of it,
// through a restart, a merge and an erasure.
func TestPreferencesStory(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	weekly, monthly := r.topic("weekly"), r.topic("monthly")
	ann := r.contact(contacts.Create{Email: "ann@x.io", Phone: "+491701234567", ListID: weekly})
	r.logged(ann, "sms subscribed manual", "email subscribed manual")

	c := r.campaign()
	run := r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{weekly}}})
	b := r.batch(c.ID, run.Run)
	r.must(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: run.Run, Ordinal: b.Recipients[0].Ordinal, Result: outbox.ResultSent})
	x, _ := r.view().Campaigns().Campaign(c.ID)
	send := messages.CampaignSend(x.Number, b.Recipients[0].Ordinal, 0).On("email")

	// Another campaign is being sent when she chooses.
	late := r.campaign()
	r.start(campaigns.Start{ID: late.ID, Plan: campaigns.Plan{ListIDs: []string{weekly}}})
	both := r.campaign()
	r.now += 1000
	r.start(campaigns.Start{ID: both.ID, Plan: campaigns.Plan{ListIDs: []string{weekly, monthly}}})
	r.chooses(ann, messages.Preferences{Topics: []messages.TopicChoice{{ListID: weekly}}})
	for campaign, want := range map[string]string{late.ID: view.LeftTopics, both.ID: view.LeftTopics} {
		c, _ := r.view().Campaigns().Campaign(campaign)
		if why, err := r.view().PassedOver(&c, b.Recipients[0].Ordinal, r.now); err != nil || why != want {
			t.Errorf("passed over because %q, %v; expected %q", why, err, want)
		}
	}
	r.now += 1000
	r.chooses(ann, messages.Preferences{Topics: []messages.TopicChoice{{ListID: weekly, Joins: true}}})

	r.now += 1000
	choice := messages.Preferences{Send: send, Client: "192.0.2.0/24",
		Channels: []messages.ChannelChoice{{Channel: "email", Status: "unsubscribed", Wording: "E-mail"}, {Channel: "sms", Status: "subscribed", Wording: "SMS"}},
		Topics:   []messages.TopicChoice{{ListID: weekly, Wording: "News of weekly"}, {ListID: monthly, Joins: true, Wording: "News of monthly"}, {ListID: "lst_gone", Joins: true}}}
	if got := r.chooses(ann, choice); !slices.Equal(got.Channels, []string{"email", "sms"}) || !slices.Equal(got.Topics, []string{weekly, monthly}) {
		t.Fatalf("%+v", got)
	}
	r.logged(ann, "News of monthly subscribed preferences 192.0.2.0/24", "News of weekly unsubscribed preferences 192.0.2.0/24", "sms subscribed preferences 192.0.2.0/24", "email unsubscribed preferences 192.0.2.0/24",
		"News of weekly subscribed preferences", "News of weekly unsubscribed preferences", "sms subscribed manual", "email subscribed manual")
	if e := r.entries(ann)[3]; e.Campaign != c.ID || e.Message != send.Text(testAccount) || e.Wording != "E-mail" || e.AtMs != r.now {
		t.Errorf("%+v", e)
	}
	if n := r.view().Campaigns().Numbers(x); n.Unsubscribed != 1 {
		t.Errorf("%d unsubscribed by the campaign", n.Unsubscribed)
	}
	if p := r.profile(ann); !slices.Equal(p.Lists, []string{monthly}) || p.Consent("email").Status != "unsubscribed" {
		t.Errorf("%v %+v", p.Lists, p.Consents)
	}
	before := hashOf(t, r.m)
	if got := r.chooses(ann, choice); len(got.Channels)+len(got.Topics) > 0 || r.seen("unsubscribed") != 1 || r.seen(contacts.EventListLeft) != 2 {
		t.Errorf("a repeat changed %+v, from %s", got, before)
	}
	// Only the person puts herself on the topic again.
	r.refuses("the contact left this list", contacts.CommandListAdd, contacts.ListAdd{ListID: weekly, Create: contacts.Create{Email: "ann@x.io"}})
	r.events(eventlog.Event{Type: []byte("seen"), ExternalID: []byte("7"), Phone: []byte("+491701234567")})
	r.refuses("the contact left this list", contacts.CommandCreate, contacts.Create{ExternalID: "7", ListID: weekly})
	r.must(contacts.CommandListUpdate, contacts.ListSave{ID: weekly, Name: "weekly", TopicSave: contacts.TopicSave{Public: addr(false)}})
	r.refuses("the contact left this list", contacts.CommandListAdd, contacts.ListAdd{ListID: weekly, Create: contacts.Create{Email: "ann@x.io"}})
	if got := r.chooses(ann, messages.Preferences{Topics: []messages.TopicChoice{{ListID: weekly, Joins: true}}}); len(got.Topics) > 0 {
		t.Error("a list that is not public was joined")
	}
	r.must(contacts.CommandListUpdate, contacts.ListSave{ID: weekly, Name: "weekly", TopicSave: contacts.TopicSave{Public: addr(true)}})
	d.reload()
	r.refuses("the contact left this list", contacts.CommandListAdd, contacts.ListAdd{ListID: weekly, Create: contacts.Create{Email: "ann@x.io"}})

	// STOP and START, then a call.
	r.now += 1000
	r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: ann, Channel: "sms", Kind: messages.EngagementUnsubscribed, Source: "reply", Key: "1"})
	r.now += 1000
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: ann, Channel: "sms", Status: "subscribed", Source: "api", Campaign: c.ID})
	r.logged(ann, "sms subscribed api", "sms unsubscribed reply", "News of monthly subscribed preferences 192.0.2.0/24", "News of weekly unsubscribed preferences 192.0.2.0/24",
		"sms subscribed preferences 192.0.2.0/24", "email unsubscribed preferences 192.0.2.0/24",
		"News of weekly subscribed preferences", "News of weekly unsubscribed preferences", "sms subscribed manual", "email subscribed manual")

	// Another profile of hers, which is on the list that she left, and said something else.
	r.now += 1000
	bob := r.contact(contacts.Create{Email: "ann@work.io", ListID: weekly})
	r.now += 1000
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: bob, Channel: "email", Status: "subscribed", Source: "form"})
	r.events(eventlog.Event{Type: []byte("seen"), ExternalID: []byte("8"), AnonymousID: []byte("d-1")})
	other := r.contact(contacts.Create{ExternalID: "9", ListID: weekly})
	r.now += 1000
	r.chooses(other, messages.Preferences{Channels: []messages.ChannelChoice{{Channel: "whatsapp", Status: "unsubscribed"}}})
	r.events(eventlog.Event{Type: []byte("seen"), Email: []byte("ann@work.io"), ExternalID: []byte("9")})
	if one, two := r.profile(bob), r.profile(other); one.ID != two.ID {
		t.Fatal("the profiles stayed apart")
	}
	r.logged(bob, "whatsapp unsubscribed preferences", "email subscribed form", "email subscribed manual")
	r.chooses(bob, messages.Preferences{Topics: []messages.TopicChoice{{ListID: weekly}}})
	third := r.contact(contacts.Create{ExternalID: "10", ListID: weekly})
	r.events(eventlog.Event{Type: []byte("seen"), Phone: []byte("+491709"), ExternalID: []byte("10")}, eventlog.Event{Type: []byte("seen"), Email: []byte("third@x.io"), Phone: []byte("+491709")})
	fourth := r.contact(contacts.Create{Email: "fourth@x.io"})
	r.chooses(fourth, messages.Preferences{Topics: []messages.TopicChoice{{ListID: weekly}}})
	r.events(eventlog.Event{Type: []byte("seen"), Email: []byte("fourth@x.io"), AnonymousID: []byte("d-9")})
	if l := r.profile(third).Lists; !slices.Contains(l, weekly) {
		t.Fatalf("%v", l)
	}
	d.reload()
	d.reload()

	r.must(contacts.CommandListDelete, contacts.ListDelete{ID: r.topic("gone")})
	r.must(CommandContactErase, ContactErase{ID: ann})
	o := b.Recipients[0].Ordinal
	if text, err := r.m.store.Entity(r.m.accounts[testAccount].ConsentLog.Keys(o)[0]); err != nil || text != nil {
		t.Errorf("the log of an erased person: %s, %v", text, err)
	}
	r.refuses("there is no contact", messages.CommandPreferences, messages.Preferences{Profile: ann, Channels: choice.Channels})
	d.reload()
}

// TestPreferencesRefused: bad input of the commands is refused and changes nothing.
func TestPreferencesRefused(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	list := r.list("plain")
	ann := r.contact(contacts.Create{Email: "ann@x.io", ListID: list})
	long := strings.Repeat("x", messages.MaxWordingBytes+1)
	many := make([]messages.TopicChoice, contacts.MaxTopics+1)
	channel := func(name, status, wording string) []messages.ChannelChoice {
		return []messages.ChannelChoice{{Channel: name, Status: status, Wording: wording}}
	}
	for _, c := range []messages.Preferences{
		{Profile: ann, Channels: channel("pigeon", "subscribed", "")}, {Profile: ann, Channels: channel("email", "pending", "")},
		{Profile: ann, Channels: append(channel("sms", "subscribed", ""), channel("sms", "unsubscribed", "")...)},
		{Profile: ann, Channels: channel("email", "unsubscribed", long)}, {Profile: ann, Channels: channel("email", "unsubscribed", "\xff")},
		{Profile: ann, Topics: []messages.TopicChoice{{ListID: list, Wording: long}}}, {Profile: ann, Topics: many},
		{Profile: ann, Client: long}, {Profile: ann, Flow: long}, {Profile: ann, Step: long},
	} {
		if c.Channels != nil && c.Channels[0].Wording == "\xff" {
			if c.Check() == nil {
				t.Error("a wording that is no UTF-8 may be stored")
			}
			continue // JSON has no such text
		}
		r.refusedWhole("invalid", messages.CommandPreferences, c)
	}
	r.refusedWhole("not_found", messages.CommandPreferences, messages.Preferences{Profile: "prf_none"})
	// A list that never was a topic cannot be left by the page.
	if got := r.chooses(ann, messages.Preferences{Topics: []messages.TopicChoice{{ListID: list}}}); len(got.Topics) > 0 || len(r.profile(ann).Lists) != 1 {
		t.Errorf("%+v", got)
	}
	for _, c := range []contacts.TopicSave{{Public: addr(true)}, {Public: addr(true), PublicName: addr("")}, {PublicName: addr(strings.Repeat("x", 201))}, {PublicDescription: addr(strings.Repeat("x", 1001))}} {
		r.refusedWhole("invalid", contacts.CommandListCreate, contacts.ListSave{Name: "x", TopicSave: c})
		r.refusedWhole("invalid", contacts.CommandListUpdate, contacts.ListSave{ID: list, Name: "plain", TopicSave: c})
	}
	for range contacts.MaxTopics {
		r.topic("t")
	}
	r.refusedWhole("limit", contacts.CommandListCreate, contacts.ListSave{Name: "x", TopicSave: contacts.TopicSave{Public: addr(true), PublicName: addr("x")}})
	s := DefaultSettings()
	s.PreferencePage = &PreferencePage{Title: strings.Repeat("x", account.MaxPageTitle+1)}
	r.refusedWhole("invalid", CommandSettingsSet, s)
	s.PreferencePage = &PreferencePage{Text: strings.Repeat("x", account.MaxPageText+1)}
	r.refusedWhole("invalid", CommandSettingsSet, s)
}

// TestConsentLogBegins: accounts of before have a log of consents from when they first use
// what came with it, and what was said before is the first thing in it.
func TestConsentLogBegins(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(r *recorder, id string){
		"page": func(r *recorder, id string) { r.chooses(id, messages.Preferences{}) },
		"topic": func(r *recorder, _ string) {
			r.topic("news")
		},
		"settings": func(r *recorder, _ string) {
			s := DefaultSettings()
			s.PreferencePage = &PreferencePage{Title: "T"}
			r.must(CommandSettingsSet, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{t: t, m: testMachine(t), now: 1_000_000_000_000}
			b := testBootstrap(DefaultSettings())
			b.ApplyVersion = applyVersionConsentLog - 1
			r.command(CommandBootstrap, b)
			id := r.contact(contacts.Create{Email: "ann@x.io"})
			set := func(status string) {
				r.now += 1000
				r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: status, Source: "api"})
			}
			set("unsubscribed")
			r.logged(id, "email unsubscribed api") // all that is known
			begin(r, id)
			set("subscribed")
			r.logged(id, "email subscribed api", "email unsubscribed api")
		})
	}
}

// naivePerson is the oracle's state of a person: the present consent of e-mail and SMS and
// whether it was said, the lists, and the topics left.
type naivePerson struct {
	consent map[string]string
	assumed map[string]bool
	on      map[string]bool
	left    map[string]bool
	log     []string // the oldest first
}

// TestPreferencesMatchNaive: submits of the page, changes of lists, STOP and START, calls of
// the API and merges at random. After each step a campaign to every list reaches none of those who
// opted out of e-mail, or left the list, by the page, and the log has what was said.
func TestPreferencesMatchNaive(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count[uint64](5, 30)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { comparePreferences(t, seed) })
	}
}

func comparePreferences(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	r.m.accounts[testAccount].EmailCredits = 1 << 30
	lists := []string{r.topic("a"), r.topic("b"), r.topic("c")}
	type person struct {
		id, email string
		*naivePerson
	}
	var people []*person
	mail := func() *person {
		p := &person{email: fmt.Sprintf("u%d@x.io", len(people)), naivePerson: &naivePerson{map[string]string{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, nil}}
		p.id = r.contact(contacts.Create{Email: p.email, Phone: fmt.Sprintf("+49170%07d", len(people))})
		for _, ch := range []string{"email", "sms"} {
			p.consent[ch], p.assumed[ch] = "subscribed", true
			p.log = append(p.log, ch+" subscribed manual")
		}
		people = append(people, p)
		return p
	}
	for range 4 {
		mail()
	}
	say := func(p *person, ch, status, source string) {
		if p.consent[ch] == status && !(p.assumed[ch] && status == "subscribed") {
			return
		}
		if p.consent[ch] == status && source == messages.SourcePreferences {
			p.assumed[ch] = false // said now, though nothing changes of what may be sent
			p.log = append(p.log, ch+" "+status+" "+source)
			return
		}
		p.assumed[ch] = false
		p.consent[ch] = status
		p.log = append(p.log, ch+" "+status+" "+source)
	}
	for step := range 120 {
		r.now += 1000
		p := pick(rng, people...)
		list, ch := pick(rng, lists...), pick(rng, "email", "sms")
		status := pick(rng, "subscribed", "unsubscribed")
		switch rng.IntN(9) {
		case 0, 1:
			var c messages.Preferences
			for _, ch := range []string{"email", "sms"} {
				if rng.IntN(2) == 0 {
					s := pick(rng, "subscribed", "unsubscribed")
					c.Channels = append(c.Channels, messages.ChannelChoice{Channel: ch, Status: s})
					say(p, ch, s, messages.SourcePreferences)
				}
			}
			for i, l := range lists {
				if rng.IntN(3) > 0 {
					continue
				}
				joins := rng.IntN(2) == 0
				c.Topics = append(c.Topics, messages.TopicChoice{ListID: l, Joins: joins})
				name := "News of " + string(rune('a'+i))
				switch {
				case joins && (!p.on[l] || p.left[l]):
					p.log = append(p.log, name+" subscribed preferences")
				case !joins && (p.on[l] || !p.left[l]):
					p.log = append(p.log, name+" unsubscribed preferences")
				}
				p.on[l], p.left[l] = joins, !joins
			}
			r.chooses(p.id, c)
		case 2:
			add := contacts.ListAdd{ListID: list, Create: contacts.Create{Email: p.email}}
			if p.left[list] {
				r.refuses("left this list", contacts.CommandListAdd, add)
			} else {
				r.must(contacts.CommandListAdd, add)
				p.on[list] = true
			}
		case 3:
			if p.on[list] {
				r.must(contacts.CommandListRemove, contacts.ListRemove{ListID: list, Profile: p.id})
				p.on[list] = false
			}
		case 4:
			kind := messages.EngagementUnsubscribed
			if status == "subscribed" {
				kind = messages.EngagementSubscribed
			}
			r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: p.id, Channel: "sms", Kind: kind, Source: "reply"})
			say(p, "sms", status, "reply")
		case 5, 6:
			r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: p.id, Channel: ch, Status: status, Source: "api"})
			say(p, ch, status, "api")
		case 7:
			if len(people) > 8 || rng.IntN(3) > 0 {
				break
			}
			mail()
		case 8:
			if rng.IntN(4) == 0 {
				d.reload()
			}
		}
		for _, p := range people {
			got := r.log(p.id)
			slices.Reverse(got)
			// Of one instant the order is that of the page.
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(p.log))) {
				t.Fatalf("step %d: the log of %s is %q, expected %q", step, p.email, got, p.log)
			}
			o, _ := r.view().Profiles().ResolveText(p.id)
			why, err := r.view().Reach().WhyUnreachable(o, "email")
			if err != nil || (why == "") != (p.consent["email"] == "subscribed") {
				t.Fatalf("step %d: %s is unreachable because %q, %v; e-mail is %s", step, p.email, why, err, p.consent["email"])
			}
			for _, l := range lists {
				x, _ := r.view().Contacts().Find(l)
				if on := r.view().Contacts().Members(x).Contains(o); on != p.on[l] || on && p.left[l] || slices.Contains(r.profile(p.id).Lists, l) != on {
					t.Fatalf("step %d: %s on %s is %v, expected %v, left %v", step, p.email, x.Name, on, p.on[l], p.left[l])
				}
			}
		}
	}
	for _, l := range lists {
		c := r.campaign()
		run := r.start(campaigns.Start{ID: c.ID, Plan: campaigns.Plan{ListIDs: []string{l}}})
		for {
			b := r.batch(c.ID, run.Run)
			for _, x := range b.Recipients {
				i := slices.IndexFunc(people, func(p *person) bool { o, _ := r.view().Profiles().ResolveText(p.id); return o == x.Ordinal })
				if p := people[i]; p.left[l] || p.consent["email"] != "subscribed" {
					t.Errorf("%s is sent to, who left %v and is %s", p.email, p.left[l], p.consent["email"])
				}
				r.must(campaigns.CommandResult, campaigns.Result{ID: c.ID, Run: run.Run, Ordinal: x.Ordinal, Result: outbox.ResultSent})
			}
			if b.Left == 0 {
				break
			}
		}
		r.must(campaigns.CommandFinish, campaigns.Finish{ID: c.ID, Run: run.Run})
	}
}

// TestMergedProfileStaysOffTopicsLeft: whichever of two profiles of a person left a topic, and
// whichever is on its list, the one that they become is off it.
func TestMergedProfileStaysOffTopicsLeft(t *testing.T) {
	t.Parallel()
	for _, left := range []string{"known", "visitor"} {
		for _, on := range []string{"known", "visitor"} {
			if left == on {
				continue // one who left is on it no more
			}
			d := newDurable(t, DefaultSettings())
			r := d.recorder
			topic := r.topic("news")
			segment := r.segment(`{"kind":"list","list_id":"` + topic + `"}`) // the list is empty, so it is live at once
			of := map[string]contacts.Create{"known": {Email: "ann@x.io"}, "visitor": {ExternalID: "7"}}
			ids := map[string]string{}
			for who, c := range of {
				if who == on {
					c.ListID = topic
				}
				ids[who] = r.contact(c)
			}
			r.now += 1000
			r.chooses(ids[left], messages.Preferences{Topics: []messages.TopicChoice{{ListID: topic}}})
			r.events(eventlog.Event{Type: []byte("seen"), Email: []byte("ann@x.io"), ExternalID: []byte("7")})
			if r.profile(ids["known"]).ID != r.profile(ids["visitor"]).ID {
				t.Fatal("the profiles stayed apart")
			}
			x, _ := r.view().Contacts().Find(topic)
			if n := len(r.profile(ids["known"]).Lists); n != 0 || !r.view().Contacts().Members(x).IsEmpty() || r.countIn(segment) != 0 {
				t.Errorf("%s left, %s was on it: on %d lists, %d members, %d in the segment", left, on, n, r.view().Contacts().Members(x).GetCardinality(), r.countIn(segment))
			}
			r.refuses("left this list", contacts.CommandListAdd, contacts.ListAdd{ListID: topic, Create: contacts.Create{Email: "ann@x.io"}})
			r.logged(ids["known"], "News of news unsubscribed preferences", "email subscribed manual")
			d.reload()
		}
	}
}

// TestConfirmationIsInTheLog: of a double opt-in the log has what was asked for and the
// confirmation.
func TestConfirmationIsInTheLog(t *testing.T) {
	t.Parallel()
	s := DefaultSettings()
	s.DoubleOptIn = true
	r := newRecorder(t, s)
	id := r.contact(contacts.Create{Email: "ann@x.io"})
	r.now += 1000
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "confirmation", Confirm: true})
	r.logged(id, "email subscribed confirmation", "email subscribed manual")
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "unsubscribed", Source: "api"})
	r.now += 1000
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "form"})
	r.now += 1000
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "confirmation", Confirm: true})
	r.logged(id, "email subscribed confirmation", "email subscribed form", "email unsubscribed api", "email subscribed confirmation", "email subscribed manual")
	if c := r.profile(id).Consent("email"); c.Source != "form" {
		t.Errorf("%+v", c)
	}
}

// TestLeavingMakesRoomForJoining: a person on the most lists that are possible leaves one and
// joins one by the same form, in whatever order it has them; one more is refused, and changes
// nothing.
func TestLeavingMakesRoomForJoining(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	first, second, third := r.topic("first"), r.topic("second"), r.topic("third")
	ann := r.contact(contacts.Create{Email: "ann@x.io", ListID: first})
	for i := range contacts.MaxProfileLists - 1 {
		r.must(contacts.CommandListAdd, contacts.ListAdd{ListID: r.list(fmt.Sprint(i)), Create: contacts.Create{Email: "ann@x.io"}})
	}
	o, _ := r.view().Profiles().ResolveText(ann)
	r.refuses("the most it can be on", messages.CommandPreferences, messages.Preferences{Profile: ann, Send: messages.ProfileSend(o), Topics: []messages.TopicChoice{
		{ListID: second, Joins: true}, {ListID: third, Joins: true}, {ListID: first}, {ListID: first},
	}})
	if l := r.profile(ann).Lists; len(l) != contacts.MaxProfileLists || !slices.Contains(l, first) {
		t.Fatalf("on %d lists", len(l))
	}
	if reply := r.chooses(ann, messages.Preferences{Topics: []messages.TopicChoice{{ListID: second, Joins: true}, {ListID: first}}}); len(reply.Topics) != 2 {
		t.Errorf("%+v", reply)
	}
	if l := r.profile(ann).Lists; len(l) != contacts.MaxProfileLists || slices.Contains(l, first) || !slices.Contains(l, second) {
		t.Errorf("on %d lists", len(l))
	}
}
