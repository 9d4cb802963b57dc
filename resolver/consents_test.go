package resolver

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

// person says something of a channel, or the account does for it. The table of
// docs/behaviour/contacts.md lists all of these and what they may do.
type saying struct {
	name string
	do   func(r *recorder, id, channel string)
	// status and blocked are the consent and the block that it leaves behind.
	status, blocked string
}

func sayings() []saying {
	consent := func(status string) func(r *recorder, id, channel string) {
		return func(r *recorder, id, channel string) {
			r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: channel, Status: status, Source: "form"})
		}
	}
	reported := func(kind string) func(r *recorder, id, channel string) {
		return func(r *recorder, id, channel string) {
			r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: id, Channel: channel, Kind: kind, Source: "link"})
		}
	}
	suppress := func(r *recorder, id, channel string) {
		r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: channel, Reason: "suppressed"})
	}
	return []saying{
		{"nothing", func(*recorder, string, string) {}, "never_subscribed", ""},
		{"opted in", consent("subscribed"), "subscribed", ""},
		{"opted out", consent("unsubscribed"), "unsubscribed", ""},
		{"one click", reported(messages.EngagementUnsubscribed), "unsubscribed", ""},
		{"complained", reported(messages.EngagementComplaint), "never_subscribed", "complained"},
		{"bounced", reported(messages.EngagementBounce), "never_subscribed", "bounced"},
		{"suppressed", suppress, "never_subscribed", "suppressed"},
		{"opted out and bounced", func(r *recorder, id, channel string) {
			consent("unsubscribed")(r, id, channel)
			reported(messages.EngagementBounce)(r, id, channel)
		}, "unsubscribed", "bounced"},
		{"opted in, then complained", func(r *recorder, id, channel string) {
			consent("subscribed")(r, id, channel)
			reported(messages.EngagementComplaint)(r, id, channel)
		}, "subscribed", "complained"},
	}
}

// way is something that happens to a profile and is no word of the person's on a
// channel.
type way struct {
	name string
	// assumes are the channels on which it subscribes a person without a consent.
	assumes []string
	do      func(r *recorder, id, list string)
}

func ways() []way {
	text := func(s string) *string { return &s }
	return []way{
		{"contact.create with the phone", []string{"sms"}, func(r *recorder, _, _ string) {
			r.contact(contacts.Create{Phone: "+49 1"})
		}},
		{"contact.create with the external id", nil, func(r *recorder, _, _ string) {
			r.contact(contacts.Create{ExternalID: "anna"})
		}},
		{"contact.create with another e-mail and the phone", nil, func(r *recorder, _, _ string) {
			r.contact(contacts.Create{Email: "bert@x.io", Phone: "+49 1", ExternalID: "anna"})
		}},
		{"contact.create of before version 8 with another e-mail and the phone", []string{"email", "sms"}, func(r *recorder, _, _ string) {
			r.must(identrules.CommandContactCreate1, contacts.Create{Email: "bert@x.io", Phone: "+49 1"})
		}},
		{"contact.create of before version 8 with another e-mail and the external id", []string{"email"}, func(r *recorder, _, _ string) {
			r.must(identrules.CommandContactCreate1, contacts.Create{Email: "bert@x.io", ExternalID: "anna"})
		}},
		{"list.add with another e-mail and the phone", nil, func(r *recorder, _, list string) {
			r.must(contacts.CommandListAdd, contacts.ListAdd{ListID: list, Create: contacts.Create{Email: "bert@x.io", Phone: "+49 1"}})
		}},
		{"list.add of before version 8, which makes a contact", []string{"email", "sms"}, func(r *recorder, _, list string) {
			r.must(identrules.CommandListAdd1, contacts.ListAdd{ListID: list, Create: contacts.Create{Email: "bert@x.io", Phone: "+49 1"}})
		}},
		{"list.add of a contact on file", nil, func(r *recorder, _, list string) {
			r.must(contacts.CommandListAdd, contacts.ListAdd{ListID: list, Create: contacts.Create{Email: "anna@x.io", Phone: "+49 1"}})
		}},
		{"contact.update with a new phone", []string{"sms"}, func(r *recorder, id, _ string) {
			r.must(contacts.CommandUpdate, contacts.Update{ID: id, Phone: text("+49 2")})
		}},
		{"contact.update with the same phone", nil, func(r *recorder, id, _ string) {
			r.must(contacts.CommandUpdate, contacts.Update{ID: id, Phone: text("+491")})
		}},
		{"contact.update with a new e-mail", nil, func(r *recorder, id, _ string) {
			r.must(contacts.CommandUpdate, contacts.Update{ID: id, Email: text("bert@x.io")})
		}},
		{"an event", nil, func(r *recorder, _, _ string) { r.events(ev("email", "anna@x.io", "phone", "+49 1")) }},
		{"a device", []string{"push"}, func(r *recorder, id, _ string) {
			r.must(contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: id, Device: "d", Kind: "fcm", Address: "token"})
		}},
		{"an open", nil, func(r *recorder, id, _ string) {
			r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: id, Channel: "email", Kind: messages.EngagementOpen})
		}},
		{"a merge with a contact subscribed later by an address", []string{"sms"}, func(r *recorder, _, _ string) {
			r.contact(contacts.Create{Phone: "+49 3"})
			r.events(ev("external_id", "anna", "phone", "+49 3"))
		}},
		{"a merge into a contact subscribed later by an address", []string{"email"}, func(r *recorder, _, _ string) {
			r.contact(contacts.Create{Email: "bert@x.io"})
			r.events(ev("email", "bert@x.io", "phone", "+49 9"))
		}},
	}
}

// TestC1NothingButAWordLiftsARefusal walks every channel, what was said of it and
// what happens then: only a person without a consent is subscribed, and blocks stay
// (C1, docs/behaviour/contacts.md).
func TestC1NothingButAWordLiftsARefusal(t *testing.T) {
	t.Parallel()
	tries := 0 // at the quick level each saying and way meet on some channel
	for _, doubleOptIn := range []bool{false, true} {
		for _, channel := range profile.Channels {
			for _, s := range sayings() {
				for _, w := range ways() {
					if tries++; tries%testlevel.Count(5, 1) != 0 {
						continue
					}
					t.Run(fmt.Sprintf("%v/%s/%s/%s", doubleOptIn, channel, s.name, w.name), func(t *testing.T) { refusalHolds(t, doubleOptIn, channel, s, w) })
				}
			}
		}
	}
}

func refusalHolds(t *testing.T, doubleOptIn bool, channel string, s saying, w way) {
	settings := DefaultSettings()
	settings.DoubleOptIn = doubleOptIn
	r := newRecorder(t, settings)
	l := r.list("news")
	// Anna is known by events, so that nothing is assumed of her at first.
	identifiers := []string{"email", "anna@x.io", "external_id", "anna", "phone", "+49 1"}
	if w.name == "a merge into a contact subscribed later by an address" {
		identifiers = []string{"phone", "+49 9"}
	}
	id := r.events(ev(identifiers...)).Events[0].Profile.String()
	s.do(r, id, channel)
	pending := r.profile(id).SuppressionReason(channel) == "pending"
	r.now += 1000
	w.do(r, id, l)

	p := r.profile(id)
	status, blocked := s.status, s.blocked
	for _, c := range w.assumes {
		if c == channel && status == "never_subscribed" && blocked != "complained" {
			status = "subscribed"
		}
	}
	if got := p.Consent(channel); got.Status != status {
		t.Errorf("the consent is %+v, expected %s", got, status)
	}
	if got := p.SuppressionReason(channel); got != blocked && !(blocked == "" && got == "pending" && doubleOptIn && status == "subscribed") || pending && got != "pending" {
		t.Errorf("the block is %q, expected %q", got, blocked)
	}
	if status == "unsubscribed" && p.Status(channel, r.now) == view.StatusSubscribed {
		t.Error("may be sent to")
	}
}

// TestC1AWordLifts is the other half: what the person says, or the account says
// for the person, counts, in the order in which it was said (C1).
func TestC1AWordLifts(t *testing.T) {
	t.Parallel()
	set := func(r *recorder, id, status, source string, confirm bool) {
		r.now += 1000
		r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "sms", Status: status, Source: source, Confirm: confirm})
	}
	for _, x := range []struct {
		name string
		// what is said of the profile with the external id, and of the one with the
		// phone, before an event makes them one
		first, second func(r *recorder, id string)
		want          string
	}{
		{"opted in after the refusal", func(r *recorder, id string) { set(r, id, "unsubscribed", "link", false) },
			func(r *recorder, id string) { set(r, id, "subscribed", "form", false) }, "subscribed"},
		{"confirmed what was assumed", func(r *recorder, id string) { set(r, id, "unsubscribed", "link", false) },
			func(r *recorder, id string) {
				r.contact(contacts.Create{Phone: "+49 3"})
				set(r, id, "subscribed", "confirmation", true)
			}, "subscribed"},
		{"refused after having opted in", func(r *recorder, id string) { set(r, id, "subscribed", "form", false) },
			func(r *recorder, id string) { set(r, id, "unsubscribed", "link", false) }, "unsubscribed"},
		{"refused before it was assumed", func(r *recorder, id string) { set(r, id, "unsubscribed", "link", false) },
			func(r *recorder, id string) { r.now += 1000; r.contact(contacts.Create{Phone: "+49 3"}) }, "unsubscribed"},
	} {
		for _, swapped := range []bool{false, true} {
			r := newRecorder(t, DefaultSettings())
			one := r.events(ev("external_id", "anna")).Events[0].Profile.String()
			two := r.events(ev("phone", "+49 3")).Events[0].Profile.String()
			if swapped {
				one, two = two, one
			}
			if swapped && (x.name == "confirmed what was assumed" || x.name == "refused before it was assumed") {
				continue // the phone is the other profile's
			}
			x.first(r, one)
			x.second(r, two)
			id := r.events(ev("external_id", "anna", "phone", "+49 3")).Events[0].Profile.String()
			if got := r.profile(id).Consent("sms").Status; got != x.want {
				t.Errorf("%s (swapped %v): %s, expected %s", x.name, swapped, got, x.want)
			}
		}
	}
	// Without a merge, too.
	r := newRecorder(t, DefaultSettings())
	id := r.contact(contacts.Create{Phone: "+49 3"})
	set(r, id, "unsubscribed", "link", false)
	set(r, id, "subscribed", "form", false)
	if got := r.profile(id).Consent("sms"); got.Status != "subscribed" || got.Source != "form" {
		t.Errorf("an explicit consent lifts a refusal: %+v", got)
	}
}
