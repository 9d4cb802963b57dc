package keyapi

import (
	"maps"
	"testing"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/reach"
)

// TestSharedNumberIsTheHoldersToRefuse: two contacts share a phone number. When the one
// that it identifies refuses SMS, no campaign reaches the number through the other, also
// where that one said yes in so many words; and it does again when the holder says yes.
func TestSharedNumberIsTheHoldersToRefuse(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	holder := x.contact(`{"email":"holder@x.io","phone":"+49 30 1234567"}`)
	other := x.contact(`{"email":"other@x.io","phone":"+49301234567"}`)
	x.contact(`{"email":"own@x.io","phone":"+4930765"}`)
	say := func(id, channel, status string) {
		t.Helper()
		ok(t, second(x.node.Command(t.Context(), x.account, contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: channel, Status: status, Source: "form"})))
	}
	var id string
	send := func(fields string) (out sendResult) {
		t.Helper()
		var c struct {
			ID string `json:"_id"`
		}
		x.call("success", "POST", "/campaign", `{"name":"n","body":"Hello","date":"2026-01-01",`+fields+`}`, &c)
		id = c.ID
		x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, &out)
		return out
	}
	expect := func(channel string, want map[string]int) {
		t.Helper()
		have := map[string]int{}
		for _, m := range x.captured(channel) {
			have[m.To]++
		}
		if !maps.Equal(have, want) {
			t.Errorf("%s went to %v, want %v", channel, have, want)
		}
	}
	const sms = `"channel":2,"type":2`
	send(sms)
	expect("sms", map[string]int{"+49301234567": 2, "+4930765": 1})

	say(holder, "sms", "unsubscribed")
	say(other, "sms", "subscribed")
	r := send(sms)
	expect("sms", map[string]int{"+49301234567": 2, "+4930765": 2})
	if r.EmailsSent != 1 {
		t.Errorf("%+v", r)
	}
	var stats campaignStats
	x.call("success", "GET", "/campaign/"+id+"/stats", nil, &stats)
	if stats.EmailsSent != 1 || stats.Failed != 0 || stats.Skipped["unsubscribed"] != 1 || stats.Skipped[reach.ReasonNumberRefused] != 1 {
		t.Errorf("statistics %+v", stats)
	}
	var c struct {
		ID string `json:"_id"`
	}
	x.call("success", "POST", "/campaign", `{"name":"n","body":"Hello","date":"2026-01-01",`+sms+`}`, &c)
	var audience struct {
		Count, Reachable int
		Skipped          map[string]int
	}
	x.console1("POST", "/campaigns/"+c.ID+"/audience", `{"all_contacts":true}`, &audience)
	if want := map[string]int{"unsubscribed": 1, reach.ReasonNumberRefused: 1}; audience.Count != 3 || audience.Reachable != 1 || !maps.Equal(audience.Skipped, want) {
		t.Errorf("%+v, want skipped %v", audience, want)
	}

	// A suppressed number is refused too; other channels are asked for themselves.
	say(holder, "sms", "subscribed")
	ok(t, second(x.node.Command(t.Context(), x.account, contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: holder, Channel: "sms", Reason: "complained"})))
	send(sms)
	expect("sms", map[string]int{"+49301234567": 2, "+4930765": 3})
	say(other, "im", "subscribed")
	send(`"channel":2,"type":3`)
	expect("im", map[string]int{"+49301234567": 1})
	say(holder, "im", "unsubscribed")
	x.call("success", "POST", "/campaign", `{"name":"n","body":"Hello","date":"2026-01-01","channel":2,"type":3}`, &c)
	if m := x.call("failure", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil); m != reach.ReasonNumberRefused {
		t.Error(m)
	}
	expect("im", map[string]int{"+49301234567": 1})

	ok(t, second(x.node.Command(t.Context(), x.account, contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: holder, Channel: "sms"})))
	send(sms)
	expect("sms", map[string]int{"+49301234567": 4, "+4930765": 4})
	// After the holder is erased, the number identifies no other profile and counts as the contact's
	// own.
	say(holder, "sms", "unsubscribed")
	ok(t, second(x.node.Command(t.Context(), x.account, resolver.CommandContactErase, resolver.ContactErase{ID: holder})))
	send(sms)
	expect("sms", map[string]int{"+49301234567": 5, "+4930765": 5})
}

// TestRefusedNumberInAnotherSpelling: a number whose holder refused SMS gets no text
// through another contact that has it with 00 in place of the plus sign, or with neither,
// and the other way round.
func TestRefusedNumberInAnotherSpelling(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"+49 30 1234567", "0049301234567"}, {"+49301234567", "49 30 1234567"}, {"0049301234567", "+49301234567"}, {"49301234567", "+49-30-1234567"}, {"0049301234567", "49301234567"}} {
		x := newSending(t)
		holder := x.contact(`{"email":"holder@x.io","phone":"` + pair[0] + `"}`)
		x.contact(`{"email":"other@x.io","phone":"` + pair[1] + `"}`)
		x.contact(`{"email":"own@x.io","phone":"+4930765"}`)
		ok(t, second(x.node.Command(t.Context(), x.account, contacts.CommandConsentSet, contacts.ConsentSet{ID: holder, Channel: "sms", Status: "unsubscribed"})))
		var c struct {
			ID string `json:"_id"`
		}
		x.call("success", "POST", "/campaign", `{"name":"n","body":"Hello","date":"2026-01-01","channel":2,"type":2}`, &c)
		var audience campaignAudience
		x.console1("POST", "/campaigns/"+c.ID+"/audience", `{"all_contacts":true}`, &audience)
		if want := map[string]uint64{"unsubscribed": 1, reach.ReasonNumberRefused: 1}; audience.Reachable != 1 || !maps.Equal(audience.Skipped, want) {
			t.Errorf("%q: %+v, want skipped %v", pair, audience, want)
		}
		x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil)
		if list := x.captured("sms"); len(list) != 1 || list[0].To != "+4930765" {
			t.Errorf("%q: sent to %+v", pair, list)
		}
		ok(t, x.node.Read(t.Context(), x.account, func(v *resolver.View) error {
			if reason, err := v.Reach().KeptFrom("sms", pair[1]); err != nil || reason != "unsubscribed" {
				t.Errorf("%q: a test is kept from the number by %q, %v", pair, reason, err)
			}
			return nil
		}))
	}
}
