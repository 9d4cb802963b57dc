package resolver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/view"
)

// conflictsOf are a profile's conflicts, each as its kind, value and the other profile.
func (r *recorder) conflictsOf(id string) (out []string) {
	r.t.Helper()
	for _, c := range r.profile(id).Conflicts {
		other := "nobody"
		if c.Other != nil {
			other = c.Other.String()
		}
		out = append(out, fmt.Sprintf("%s %s %s: %s", c.Kind, c.Value, other, c.Reason))
	}
	return out
}

// TestColleaguesWithOneNumberAreContactsOfTheirOwn: five colleagues gave the number of
// one switchboard, and three a customer number.
func TestColleaguesWithOneNumberAreContactsOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	l := r.list("news")
	bySMS := r.segment(`{"kind":"consent","channel":"sms","status":"subscribed"}`)
	byPhone := r.segment(`{"kind":"attribute","field":"phone","op":"=","value":"+49301"}`)
	var ids []string
	for i, name := range []string{"Ada", "Grace", "Alan", "Edsger", "Barbara"} {
		c := contacts.Create{Email: strings.ToLower(name) + "@x.io", FirstName: name, Phone: "+49 30 1", ListID: l}
		if i < 3 {
			c.ExternalID = "acme"
		}
		ids = append(ids, r.contact(c))
	}
	for i, id := range ids {
		p := r.profile(id)
		if p.ID.String() != id || p.FirstName != []string{"Ada", "Grace", "Alan", "Edsger", "Barbara"}[i] {
			t.Errorf("contact %d is %s %q", i, p.ID, p.FirstName)
		}
		if p.Newest(IdentityPhone) != "+49 30 1" || (p.Newest(IdentityExternalID) == "acme") != (i < 3) || p.Consent("sms").Status != "subscribed" {
			t.Errorf("contact %d shows %+v, SMS %+v", i, p.Identities, p.Consent("sms"))
		}
		if i == 0 {
			continue
		}
		const why = "another profile held the identifier first, and is identified by it"
		want := []string{"phone +49 30 1 " + ids[0] + ": " + why}
		if i < 3 {
			want = append([]string{"external_id acme " + ids[0] + ": " + why}, want...)
		}
		if got := r.conflictsOf(id); !slices.Equal(got, want) {
			t.Errorf("contact %d has the conflicts %q, expected %q", i, got, want)
		}
	}
	if got := r.conflictsOf(ids[0]); len(got) != 6 || got[0] != "external_id acme "+ids[1]+": "+view.HeldHere {
		t.Errorf("the first contact has the conflicts %q", got)
	}
	if n := r.countIn(bySMS); n != 5 {
		t.Errorf("%d subscribed to SMS", n)
	}
	if n := r.countIn(byPhone); n != 5 {
		t.Errorf("%d with the number", n)
	}
	// It identifies the first only.
	if got := r.events(ev("phone", "+49301")).Events[0].Profile.String(); got != ids[0] {
		t.Errorf("an event with the number went to %s", got)
	}
	if got := r.events(ev("email", "grace@x.io", "phone", "+49 30 1", "external_id", "acme")).Events[0].Profile.String(); got != ids[1] || r.m.resolution.Merges != 0 {
		t.Errorf("Grace's event went to %s after %d merges", got, r.m.resolution.Merges)
	}
	// Without an e-mail, too, the first identifier says who it is.
	one := r.contact(contacts.Create{ExternalID: "no-mail", Phone: "+49 30 1"})
	if again := r.contact(contacts.Create{ExternalID: "no-mail", Phone: "+49 30 1", LastName: "L"}); again != one || slices.Contains(ids, one) {
		t.Errorf("the contact without an e-mail is %s, then %s", one, again)
	}
	if got := r.contact(contacts.Create{Phone: "+49 30 1"}); got != ids[0] {
		t.Errorf("the number alone led to %s", got)
	}
	// A contact's own value is no conflict when it is given again.
	phone := "+4930 1"
	r.must(contacts.CommandUpdate, contacts.Update{ID: ids[3], Phone: &phone})
	// From version 1 of the rules to here nothing has been moved.
	if r.m.resolution.Merges != 0 {
		t.Errorf("%d merges", r.m.resolution.Merges)
	}
}

// TestSharedNumberOfSomebodyErased: who shows a number keeps it when the one whom it
// identified is erased; the profile that showed it gives up nothing of the other's.
func TestSharedNumberOfSomebodyErased(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	first := r.contact(contacts.Create{Email: "ada@x.io", Phone: "+49 30 1"})
	second := r.contact(contacts.Create{Email: "grace@x.io", Phone: "+49 30 1"})
	third := r.contact(contacts.Create{Email: "alan@x.io", Phone: "+49 30 1"})
	r.must(CommandContactErase, ContactErase{ID: third})
	if got := r.events(ev("phone", "+49 30 1")).Events[0].Profile.String(); got != first {
		t.Fatalf("the number leads to %s", got)
	}
	r.must(CommandContactErase, ContactErase{ID: first})
	if p := r.profile(second); p.Newest(IdentityPhone) != "+49 30 1" || len(p.Conflicts) != 0 {
		t.Errorf("Grace shows %+v, conflicts %+v", p.Identities, p.Conflicts)
	}
	// The number is kept out, its contact is not. Profiles that have it keep it.
	var made contacts.Reply
	if err := json.Unmarshal(r.must(contacts.CommandCreate, contacts.Create{Email: "barbara@x.io", Phone: "+49 30 1"}).Reply, &made); err != nil {
		t.Fatal(err)
	}
	if p := r.profile(made.ID); !made.Created || len(p.Identities) != 1 || p.Consent("sms").Status == "subscribed" || !strings.HasPrefix(made.Warning, "phone left out: it identified a person who was erased") {
		t.Errorf("Barbara is %+v, %+v, warning %q", p.Identities, p.Consent("sms"), made.Warning)
	}
	if o := r.events(ev("email", "grace@x.io", "phone", "+49 30 1", "key", "k")).Events[0]; o.Profile.String() != second || !strings.HasPrefix(o.Warning(), "user.phone left out") {
		t.Errorf("Grace's event: %+v %v", o, o.Refusal)
	}
	if o := r.events(ev("email", "grace@x.io", "phone", "+49 30 1", "key", "k")).Events[0]; o.Status != EventDuplicate || !strings.HasPrefix(o.Warning(), "user.phone left out") {
		t.Errorf("Grace's event again: %+v %v", o, o.Refusal)
	}
	for _, e := range [][]string{{"phone", "+49 30 1"}, {"external_id", "null", "phone", "+49 30 1"}} {
		if o := r.events(ev(e...)).Events[0]; o.Status != EventRefused || !strings.Contains(o.Refusal.Message, erasure.Message) {
			t.Errorf("%v: %+v", e, o)
		}
	}
	r.refuses(erasure.Message, contacts.CommandCreate, contacts.Create{Phone: "+49 30 1"})
	other, phone := r.contact(contacts.Create{Email: "edsger@x.io"}), "+49301"
	r.refuses(erasure.Message, contacts.CommandUpdate, contacts.Update{ID: other, Phone: &phone})
	r.must(contacts.CommandUpdate, contacts.Update{ID: second, Phone: &phone})
	if p := r.profile(second); len(p.Identities) != 2 || p.Newest(IdentityPhone) != phone {
		t.Errorf("Grace shows %+v", p.Identities)
	}
	// Free again, it identifies whom it comes with.
	r.must(erasure.CommandLift, erasure.Lift{Value: "+49 30 1"})
	if got := r.events(ev("email", "grace@x.io", "phone", "+49 (30) 1")).Events[0].Profile.String(); got != second {
		t.Fatalf("Grace's event went to %s", got)
	}
	if got := r.events(ev("phone", "+49301")).Events[0].Profile.String(); got != second {
		t.Errorf("the number leads to %s", got)
	}
	if p := r.profile(second); len(p.Identities) != 2 || p.Newest(IdentityPhone) != "+49301" {
		t.Errorf("Grace shows %+v", p.Identities)
	}
}

// TestSharedNumberOfSomebodyWhoWantsNoSMS: a number whose holder refused SMS subscribes
// no other person to it (C1).
func TestSharedNumberOfSomebodyWhoWantsNoSMS(t *testing.T) {
	t.Parallel()
	for what, refuse := range map[string]func(r *recorder, id string){
		"unsubscribed": func(r *recorder, id string) {
			r.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "sms", Status: "unsubscribed", Source: "STOP"})
		},
		"suppressed": func(r *recorder, id string) {
			r.must(contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "sms", Reason: "suppressed"})
		},
	} {
		r := newRecorder(t, DefaultSettings())
		first := r.contact(contacts.Create{Email: "ada@x.io", Phone: "+49 30 1"})
		refuse(r, first)
		r.now++
		second := r.profile(r.contact(contacts.Create{Email: "grace@x.io", Phone: "+49 30 1"}))
		if got := second.Consent("sms").Status; got != "never_subscribed" || second.Consent("email").Status != "subscribed" {
			t.Errorf("%s: the second contact is %s to SMS", what, got)
		}
	}
}

// TestSecondIdentifierThroughALowerRankedOne: an e-mail that is not on file comes with
// the phone of a profile that has another. The event goes to that profile, by the
// order of identifiers, and the conflict is on record.
func TestSecondIdentifierThroughALowerRankedOne(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	id := r.events(ev("email", "ada@x.io", "external_id", "1", "phone", "+49 30 1")).Events[0].Profile.String()
	for _, e := range [][]string{
		{"email", "grace@x.io", "phone", "+49 30 1"}, {"external_id", "2", "phone", "+49 30 1"}, {"email", "alan@x.io", "external_id", "2"},
	} {
		if got := r.events(ev(e...)).Events[0].Profile.String(); got != id {
			t.Fatalf("%v went to %s", e, got)
		}
	}
	const why = " nobody: a lower-ranked identifier attached a second value to the profile"
	want := []string{"email grace@x.io" + why, "external_id 2" + why, "email alan@x.io" + why}
	if got := r.conflictsOf(id); !slices.Equal(got, want) {
		t.Errorf("conflicts %q, expected %q", got, want)
	}
	// A second one by a higher-ranked identifier, or by none, is in no doubt.
	r.events(ev("email", "ada@x.io", "external_id", "3"), ev("email", "ada@x.io", "phone", "+49 30 2"), ev("external_id", "9"), ev("email", "new@x.io", "external_id", "9"))
	if got := r.conflictsOf(id); len(got) != 3 {
		t.Errorf("conflicts %q", got)
	}
}

// TestSubscribedPhoneStays: so does the phone of a contact who is subscribed to what goes
// there.
func TestSubscribedPhoneStays(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	shown := func(id, what, want string) {
		t.Helper()
		if p := r.profile(id); p.Newest(IdentityPhone) != want {
			t.Errorf("%s: the identifiers are %q, want %s", what, p.Identities, want)
		}
	}
	id := r.contact(contacts.Create{Email: "own@x.de", Phone: "+491701"})
	other := ev("email", "own@x.de")
	other.Phone = []byte("+491702")
	for range 2 {
		r.events(other)
		shown(id, "an e-mail and another phone", "+491701")
	}
	phone := "+491702"
	r.must(contacts.CommandUpdate, contacts.Update{ID: id, Phone: &phone})
	shown(id, "the contact is given it", "+491702")

	without := r.contact(contacts.Create{Email: "none@x.de"})
	for _, phone := range []string{"+491703", "+491704"} {
		other = ev("email", "none@x.de")
		other.Phone = []byte(phone)
		r.events(other)
		shown(without, "who is subscribed to nothing that goes to a phone", phone)
	}
}

// TestSubscribedEmailStays: an e-mail that events attach to a subscribed contact is not
// the one that is shown and mailed, whatever leads to the contact, until the contact is
// given it, or has unsubscribed and the profile is subscribed again.
func TestSubscribedEmailStays(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	id := r.contact(contacts.Create{Email: "own@x.de", Phone: "+491701", ExternalID: "7"})
	shown := func(what, want string, all int) {
		t.Helper()
		p := r.profile(id)
		n := 0
		for _, x := range p.Identities {
			if x.Kind == IdentityEmail {
				n++
			}
		}
		if p.Newest(IdentityEmail) != want || n != all {
			t.Errorf("%s: the identifiers are %q, want %s and %d e-mails", what, p.Identities, want, all)
		}
	}
	phone := ev("phone", "+491701")
	phone.Email = []byte("other@x.de")
	external := ev("external_id", "7")
	external.Email = []byte("third@x.de")
	for range 2 {
		r.events(phone)
		shown("a phone and another e-mail", "own@x.de", 2)
	}
	r.events(external)
	shown("an external id and another e-mail", "own@x.de", 3)
	r.events(ev("email", "other@x.de"))
	shown("the attached e-mail alone", "own@x.de", 3)
	d.reload()
	r.events(ev("email", "OWN@x.de"))
	shown("its own e-mail in another spelling", "OWN@x.de", 3)
	email := "other@x.de"
	r.must(contacts.CommandUpdate, contacts.Update{ID: id, Email: &email})
	shown("the contact is given it", "other@x.de", 3)

	visitor := r.events(ev("email", "a@x.de")).Events[0].Profile
	more := ev("phone", "+49171")
	more.Email = []byte("a@x.de")
	r.events(more)
	more.Email = []byte("b@x.de")
	r.events(more)
	if p := r.profile(visitor.String()); p.Newest(IdentityEmail) != "b@x.de" {
		t.Errorf("a visitor who subscribed to nothing has %q", p.Identities)
	}
	old := r.contact(contacts.Create{Email: "c@x.de", Phone: "+49172"})
	more = ev("phone", "+49172")
	more.Email = []byte("d@x.de")
	r.eventsUnder(3, more)
	if p := r.profile(old); p.Newest(IdentityEmail) != "d@x.de" {
		t.Errorf("an event of the rules of before: %q", p.Identities)
	}
}

// TestWhatIsNoIdentifierIsLeftOut: beside a good one it does not refuse the event, and
// the answer says so, also when the event is repeated.
func TestWhatIsNoIdentifierIsLeftOut(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	for _, c := range []struct {
		event   []string
		warning string
	}{
		{[]string{"email", "ada@x.io", "external_id", "null", "key", "1"}, "user.external_id left out"},
		{[]string{"email", "ada@x.io", "external_id", "undefined", "phone", "N/A", "key", "2"}, "user.external_id, user.phone left out"},
		{[]string{"email", "N/A", "external_id", "7", "phone", "0"}, "user.email, user.phone left out"},
		{[]string{"email", " ", "external_id", "7"}, "user.email left out"},
		{[]string{"email", "ada@x.io", "phone", "+49 30 7"}, ""},
	} {
		for range 2 {
			o := r.events(ev(c.event...)).Events[0]
			if o.Status == EventRefused || !strings.HasPrefix(o.Warning(), c.warning) || (o.Warning() == "") != (c.warning == "") {
				t.Errorf("%v: %v, warning %q, expected %q", c.event, o.Refusal, o.Warning(), c.warning)
			}
		}
	}
	if n := r.m.accounts[testAccount].Profiles.Identifiers.Size(); n != 3 {
		t.Errorf("%d identifiers, expected 3", n)
	}
	for _, e := range [][]string{{"email", "N/A", "external_id", "null"}, {"phone", "none"}} {
		if o := r.events(ev(e...)).Events[0]; o.Status != EventRefused {
			t.Errorf("%v: status %d, nothing is left to identify anybody", e, o.Status)
		}
		if o := r.eventsUnder(0, ev(append(e, "email", "ada@x.io")...)).Events[0]; o.Status != EventRefused {
			t.Errorf("%v: under the old rules it is refused", e)
		}
	}
}

// TestSubscribedPhoneStaysInAMerge: when an event makes one of a visitor and a contact who
// subscribed, texts go to the phone that did, whichever identifier led to the contact.
func TestSubscribedPhoneStaysInAMerge(t *testing.T) {
	t.Parallel()
	d := newDurable(t, DefaultSettings())
	r := d.recorder
	n := 0
	// merged are the phones of a visitor with an e-mail and a contact with neither, who
	// become one by an event with the e-mail and what is given of the contact.
	merged := func(rules uint8, by func(contact contacts.Create) []string) (visitor, contact string, p *view.Profile) {
		t.Helper()
		n++
		mail := fmt.Sprintf("v%d@x.de", n)
		visitor, contact = fmt.Sprintf("+4917%d", n), fmt.Sprintf("+4918%d", n)
		id := r.events(ev("email", mail, "phone", visitor)).Events[0].Profile
		c := contacts.Create{ExternalID: fmt.Sprint("c", n), Phone: contact}
		r.contact(c)
		r.eventsUnder(rules, ev(append([]string{"email", mail}, by(c)...)...))
		d.reload()
		return visitor, contact, r.profile(id.String())
	}
	phones := func(p *view.Profile) (out []string) {
		for _, x := range p.Identities {
			if x.Kind == IdentityPhone {
				out = append(out, x.Value)
			}
		}
		return out
	}
	byID := func(c contacts.Create) []string { return []string{"external_id", c.ExternalID} }
	byPhone := func(c contacts.Create) []string { return []string{"phone", c.Phone} }
	for what, by := range map[string]func(contacts.Create) []string{"external id": byID, "phone": byPhone} {
		visitor, contact, p := merged(eventlog.EventRules, by)
		if want := []string{visitor, contact}; !slices.Equal(phones(p), want) || p.Consent("sms").Status != "subscribed" {
			t.Errorf("by %s: the phones are %q, want %q; SMS %+v", what, phones(p), want, p.Consent("sms"))
		}
	}
	if visitor, contact, p := merged(4, byID); !slices.Equal(phones(p), []string{contact, visitor}) {
		t.Errorf("an event of the rules of before: the phones are %q", phones(p))
	}
	// Of two who both subscribed, the winner's is texted, as before.
	one, two := contacts.Create{Email: "one@x.de", Phone: "+491901"}, contacts.Create{ExternalID: "two", Phone: "+491902"}
	id := r.contact(one)
	r.contact(two)
	r.events(ev("email", one.Email, "external_id", two.ExternalID))
	if p := r.profile(id); p.Newest(IdentityPhone) != one.Phone || len(phones(p)) != 2 {
		t.Errorf("of two who subscribed: the phones are %q", phones(p))
	}
}
