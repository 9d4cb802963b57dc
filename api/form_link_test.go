package api

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/forms"
)

// TestAUsedFormLinkSaysThatThePersonLeft: a link that confirmed a form says so again when it is
// opened again, until the person has unsubscribed. Then it says so and changes no consent.
func TestAUsedFormLinkSaysThatThePersonLeft(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.flowMessages()
	m.command(resolver.CommandCreditsAdd, resolver.CreditsAdd{Amount: 10}, nil)
	var form struct{ ID string }
	name, yes := "News", true
	m.command(forms.CommandCreate, forms.Save{
		Name: &name, Published: &yes, DoubleOptIn: &yes, Fields: &[]forms.Field{{Name: "email", Label: "E-mail", Required: true}},
		Consent: &forms.Consent{Text: "Send me news.", Channels: []string{"email"}},
	}, &form)
	m.command(forms.CommandSubmit, forms.Submit{ID: form.ID, Keys: []string{"a"}, Email: "ada@x.io", Consented: true, Values: forms.Values{Wording: "Send me news."}}, nil)
	m.soon("the message is out", func(v *resolver.View) bool { return v.Outbox().Len() == 0 })
	found := trackedLink.FindStringSubmatch(m.mail("ada@x.io").HTML)
	if found == nil {
		t.Fatal(m.mail("ada@x.io").HTML)
	}
	link := found[1]
	says := func(method, text string) {
		t.Helper()
		if res, page := m.visit(method, link, browser, ""); res.StatusCode != 200 || !strings.Contains(page, text) {
			t.Errorf("%s: %d, no %q in %s", method, res.StatusCode, text, page)
		}
	}
	says("GET", "Confirm your subscription")
	for range 2 {
		says("POST", "Your subscription is confirmed.")
	}
	p := m.profile("ada@x.io")
	if s := p.Consent("email").Status; s != "subscribed" {
		t.Fatal(s)
	}
	m.command(contacts.CommandConsentSet, contacts.ConsentSet{ID: p.ID.String(), Channel: "email", Status: "unsubscribed", Source: "link"}, nil)
	says("GET", "You are unsubscribed")
	says("POST", "You are unsubscribed")
	if s := m.profile("ada@x.io").Consent("email").Status; s != "unsubscribed" {
		t.Errorf("a used link made the person %s", s)
	}

	// After a new subscription from another source, the used link says that it is confirmed.
	m.command(contacts.CommandConsentSet, contacts.ConsentSet{ID: p.ID.String(), Channel: "email", Status: "subscribed", Source: "preferences"}, nil)
	says("POST", "Your subscription is confirmed.")
}
