package resolver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/sending"
)

// TestC1LiftedSuppressionLeavesPending: whatever suppresses an address that is not confirmed, and in
// whatever way that comes about, the address is pending again once the suppression is lifted.
// What was applied under older rules replays as it was.
func TestC1LiftedSuppressionLeavesPending(t *testing.T) {
	t.Parallel()
	report := func(r *recorder, id, kind string) {
		r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: id, Channel: "email", Kind: kind})
	}
	suppress := func(r *recorder, id string) {
		r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email", Reason: "suppressed"})
	}
	consent := func(r *recorder, id, status string) {
		r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: status, Source: "form"})
	}
	create := func(r *recorder) string { return r.contact(contacts.Create{Email: "ada@x.io"}) }
	known := func(r *recorder) string { return r.events(ev("email", "ada@x.io")).Events[0].Profile.String() }
	for name, c := range map[string]struct {
		do          func(r *recorder) (id string)
		blocked     string
		olderLifted string
		lifted      string
	}{
		"suppressed": {func(r *recorder) string {
			id := create(r)
			suppress(r, id)
			return id
		}, "suppressed", "", "pending"},
		"the confirmation bounced": {func(r *recorder) string {
			id := create(r)
			r.done(r.due(outbox.KindEmail)[0], outbox.ResultBounced)
			return id
		}, "bounced", "", "pending"},
		"a bounce was reported": {func(r *recorder) string {
			id := create(r)
			report(r, id, messages.EngagementBounce)
			return id
		}, "bounced", "", "pending"},
		"soft bounces": {func(r *recorder) string {
			id := create(r)
			for range 3 {
				report(r, id, messages.EngagementSoftBounce)
			}
			return id
		}, "bounced", "", "pending"},
		"complained, then suppressed": {func(r *recorder) string {
			id := create(r)
			report(r, id, messages.EngagementComplaint)
			suppress(r, id)
			return id
		}, "suppressed", "", "pending"},
		"opted in while suppressed": {func(r *recorder) string {
			id := known(r)
			suppress(r, id)
			consent(r, id, "subscribed")
			return id
		}, "suppressed", "", "pending"},
		"made a contact while suppressed": {func(r *recorder) string {
			id := r.events(ev("phone", "+49 1")).Events[0].Profile.String()
			suppress(r, id)
			r.contact(contacts.Create{Phone: "+49 1"})
			consent(r, id, "subscribed")
			return id
		}, "suppressed", "", "pending"},
		"confirmed while suppressed": {func(r *recorder) string {
			id := create(r)
			suppress(r, id)
			r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "confirmation", Confirm: true})
			return id
		}, "suppressed", "", ""},
		"unsubscribed while suppressed": {func(r *recorder) string {
			id := create(r)
			suppress(r, id)
			consent(r, id, "unsubscribed")
			return id
		}, "suppressed", "", ""},
		"unsubscribed by a link while suppressed": {func(r *recorder) string {
			id := create(r)
			suppress(r, id)
			report(r, id, messages.EngagementUnsubscribed)
			return id
		}, "suppressed", "", ""},
		"on the preference page while suppressed": {func(r *recorder) string {
			id := create(r)
			suppress(r, id)
			r.chooses(id, messages.Preferences{Channels: []messages.ChannelChoice{{Channel: "email", Status: "unsubscribed"}}})
			r.chooses(id, messages.Preferences{Channels: []messages.ChannelChoice{{Channel: "email", Status: "subscribed"}}})
			return id
		}, "suppressed", "", "pending"},
		"merged into a suppressed profile": {func(r *recorder) string {
			id := r.events(ev("external_id", "ada")).Events[0].Profile.String()
			suppress(r, id)
			create(r)
			r.events(ev("external_id", "ada", "email", "ada@x.io"))
			return id
		}, "suppressed", "", "pending"},
		"a suppressed profile merged into it": {func(r *recorder) string {
			id := create(r)
			suppress(r, r.events(ev("external_id", "ada")).Events[0].Profile.String())
			r.events(ev("external_id", "ada", "email", "ada@x.io"))
			return id
		}, "suppressed", "", "pending"},
	} {
		for _, rules := range []int{24, ApplyVersion} {
			t.Run(fmt.Sprintf("%s/%d", name, rules), func(t *testing.T) {
				settings := DefaultSettings()
				settings.DoubleOptIn = true
				d := newDurableUnder(t, settings, rules)
				r := d.recorder
				id := c.do(r)
				if got := r.profile(id).SuppressionReason("email"); got != c.blocked {
					t.Fatalf("the suppression is %q, expected %q", got, c.blocked)
				}
				d.reload()
				r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email"})
				want := c.lifted
				if rules < ApplyVersion {
					want = c.olderLifted
				}
				if got := r.profile(id).SuppressionReason("email"); got != want {
					t.Fatalf("the suppression is %q after the lift, expected %q", got, want)
				}
				if want == "" {
					return
				}
				r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "confirmation", Confirm: true})
				if p := r.profile(id); p.SuppressionReason("email") != "" || p.Consent("email").Status != "subscribed" {
					t.Errorf("after the confirmation: %+v", p)
				}
			})
		}
	}
}

// TestC1LiftAsksToConfirm: who is pending again after a lift is asked to confirm, since
// the request may never have arrived; and the server sends no question to a suppressed address.
func TestC1LiftAsksToConfirm(t *testing.T) {
	t.Parallel()
	settings := DefaultSettings()
	settings.DoubleOptIn = true
	r := newRecorder(t, settings)
	id := r.events(ev("email", "ada@x.io")).Events[0].Profile.String()
	r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email", Reason: "suppressed"})
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "form"})
	if list := r.due(outbox.KindEmail); len(list) != 0 {
		t.Fatalf("%d messages ask to confirm", len(list))
	}
	for range 2 { // at most once an hour
		r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email"})
		r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email", Reason: "bounced"})
	}
	if list := r.due(outbox.KindEmail); len(list) != 1 || list[0].Ref != messages.RefConfirmation {
		t.Fatalf("%d messages ask to confirm", len(list))
	}
	r.now += sending.ConfirmEveryMs
	r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email"})
	if list := r.due(outbox.KindEmail); len(list) != 2 || r.profile(id).SuppressionReason("email") != "pending" {
		t.Fatalf("%d messages ask to confirm", len(list))
	}
}

// TestC1ConfirmationIsOfItsAddress: a confirmation confirms the address that it was sent to,
// and a contact whose address is replaced while it is pending is asked at the new one.
func TestC1ConfirmationIsOfItsAddress(t *testing.T) {
	t.Parallel()
	for _, rules := range []int{24, ApplyVersion} {
		settings := DefaultSettings()
		settings.DoubleOptIn = true
		r := newDurableUnder(t, settings, rules).recorder
		id := r.contact(contacts.Create{Email: "old@x.io"})
		v := r.view()
		older, newer := v.Profiles().EmailHash("old@x.io"), v.Profiles().EmailHash("new@x.io")
		replace := func(email string) {
			r.now++
			r.must(contacts.CommandUpdate, contacts.Update{ID: id, Email: &email})
		}
		confirm := contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "confirmation", Confirm: true, Address: older}
		replace("new@x.io")
		r.refuses("another e-mail by now", contacts.CommandConsentSet, confirm)
		if r.profile(id).SuppressionReason("email") != "pending" {
			t.Fatal("a refused confirmation confirms")
		}
		var asked []string
		for _, w := range r.due(outbox.KindEmail) {
			var m messages.Mail
			if err := json.Unmarshal(w.Payload, &m); err != nil {
				t.Fatal(err)
			}
			asked = append(asked, m.To)
		}
		if want := map[bool]string{false: "[old@x.io]", true: "[old@x.io new@x.io]"}[rules == ApplyVersion]; fmt.Sprint(asked) != want {
			t.Errorf("rules %d: %q are asked, expected %s", rules, asked, want)
		}
		for _, no := range []string{"x", strings.Repeat("0", 32), strings.Repeat("0", 999)} {
			confirm.Address = no
			r.refuses("another e-mail by now", contacts.CommandConsentSet, confirm)
		}
		confirm.Address = newer
		r.must(contacts.CommandConsentSet, confirm)
		if r.profile(id).SuppressionReason("email") != "" {
			t.Error("still pending")
		}
	}
}

// TestC1LogSaysWhatIsPending: the log of consents tells a consent that waits to be confirmed from
// one that holds, also beneath a graver suppression.
func TestC1LogSaysWhatIsPending(t *testing.T) {
	t.Parallel()
	settings := DefaultSettings()
	settings.DoubleOptIn = true
	r := newDurableUnder(t, settings, ApplyVersion).recorder
	id := r.contact(contacts.Create{Email: "ann@x.io"})
	says := func(want string) {
		t.Helper()
		log, err := r.view().Profiles().ConsentLog(r.profile(id).Ordinal)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, x := range log {
			if x.Channel == "email" {
				got += fmt.Sprintf("%s %v, ", x.Status, x.Pending)
			}
		}
		if got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
	says("subscribed true, ")
	r.now++
	r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email", Reason: "suppressed"})
	says("subscribed true, ")
	r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email"})
	r.now++
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "subscribed", Source: "confirmation", Confirm: true})
	says("subscribed false, subscribed false, ")
	r.now++
	r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "email", Status: "unsubscribed", Source: "form"})
	says("unsubscribed false, subscribed false, subscribed false, ")
}
