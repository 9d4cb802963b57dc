package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/api/internal/providers"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/outbox"
)

// TestStopHoldsForNumber: STOP holds for all profiles that show the number: the one that it
// identifies, those that share it or have it in another spelling, and those that still show it
// after that one was erased.
func TestStopHoldsForNumber(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.want("PUT", "/inbound-providers/twilio", `{"auth_token":"`+twilioToken+`"}`, nil)
	const phone = "+491701234567"
	contact := func(email, phone string) (id string) {
		var r contacts.Reply
		m.command(contacts.CommandCreate, contacts.Create{Email: email, Phone: phone}, &r)
		return r.ID
	}
	status := func(id string) (status string) {
		ok(t, m.node.Read(t.Context(), m.account, func(v *resolver.View) error {
			o, _ := v.Profiles().ResolveText(id)
			p, err := v.Profiles().Get(o)
			status = p.Consent("sms").Status
			return err
		}))
		return status
	}
	write := func(id, text string) providers.InboundResult {
		code, got := m.twilio("", "MessageSid", id, "SmsStatus", "received", "From", phone, "To", "+4930123", "Body", text)
		if code != 200 {
			t.Fatal(code)
		}
		return got
	}
	holder, colleague, spelled, other := contact("holder@x.io", phone), contact("colleague@x.io", "+49 170 1234567"), contact("spelled@x.io", "0049 170 1234567"), contact("other@x.io", "+491709999999")
	for range 2 {
		if got := write("SM1", "STOP"); got.Recorded != 1 {
			t.Errorf("%+v", got)
		}
	}
	for id, want := range map[string]string{holder: "unsubscribed", colleague: "unsubscribed", spelled: "unsubscribed", other: "subscribed"} {
		if got := status(id); got != want {
			t.Errorf("%s is %q, expected %q", id, got, want)
		}
	}
	if n := m.count("sms_unsubscribed"); n != 3 {
		t.Errorf("%d times unsubscribed, expected 3", n)
	}
	m.command(contacts.CommandConsentSet, contacts.ConsentSet{ID: colleague, Channel: "sms", Status: "subscribed"}, nil)
	m.command(resolver.CommandContactErase, resolver.ContactErase{ID: holder}, nil)
	if got := write("SM2", "Hello"); got.Recorded != 0 {
		t.Errorf("a text of an erased person: %+v", got)
	}
	if got := write("SM3", "STOP"); got.Recorded != 1 || status(colleague) != "unsubscribed" {
		t.Errorf("STOP from the number of an erased person: %+v, %s", got, status(colleague))
	}
}

// TestLateStart: a START that its provider delivers after a STOP which the person wrote later
// gives no consent, and is not answered.
func TestLateStart(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.want("PUT", "/inbound-providers/whatsapp", `{"app_secret":"`+whatsAppSecret+`","generate":true,"start_reply":"Welcome"}`, nil)
	const phone = "+491701234567"
	write := func(id, text string, at time.Time) {
		t.Helper()
		if status, _ := m.whatsApp(fmt.Sprintf(`{"messages":[{"from":%q,"id":%q,"timestamp":"%d","type":"text","text":{"body":%q}}]}`, phone[1:], id, at.Unix(), text)); status != 200 {
			t.Fatal(status)
		}
	}
	began := m.clock.Now()
	m.clock.Advance(2 * time.Minute)
	write("wamid.2", "STOP", began.Add(time.Minute))
	for range 2 {
		write("wamid.1", "START", began)
		if got := m.holder(phone).Consent("whatsapp").Status; got != "unsubscribed" {
			t.Errorf("after a late START: %q", got)
		}
	}
	if got := m.queued(outbox.KindWhatsApp); len(got) != 0 {
		t.Errorf("a late START is answered: %q", got)
	}
	m.clock.Advance(time.Minute)
	write("wamid.3", "START", m.clock.Now())
	if got := m.holder(phone).Consent("whatsapp").Status; got != "subscribed" {
		t.Errorf("after START: %q", got)
	}
	if got := m.queued(outbox.KindWhatsApp); len(got) != 1 {
		t.Errorf("answers: %q", got)
	}
}

// TestNumbersOfWhatsApp: WhatsApp writes numbers of some countries in another form than they
// are on file. A text from one is the contact's all the same, also an erased one's.
func TestNumbersOfWhatsApp(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.want("PUT", "/inbound-providers/whatsapp", `{"app_secret":"`+whatsAppSecret+`","generate":true}`, nil)
	var ann contacts.Reply
	m.command(contacts.CommandCreate, contacts.Create{Email: "ann@x.io", Phone: "+52 55 1234 5678"}, &ann)
	m.command(contacts.CommandConsentSet, contacts.ConsentSet{ID: ann.ID, Channel: "whatsapp", Status: "subscribed"}, nil)
	write := func(id, text string) providers.InboundResult {
		_, got := m.whatsApp(fmt.Sprintf(`{"messages":[{"from":"5215512345678","id":%q,"type":"text","text":{"body":%q}}]}`, id, text))
		return got
	}
	if got := write("wamid.1", "STOP"); got.Recorded != 1 || m.holder("+525512345678").Consent("whatsapp").Status != "unsubscribed" {
		t.Errorf("%+v, %+v", got, m.holder("+525512345678").Consent("whatsapp"))
	}
	if m.holder("+5215512345678") != nil {
		t.Error("the other form of the number is another profile")
	}
	m.command(resolver.CommandContactErase, resolver.ContactErase{ID: ann.ID}, nil)
	if got := write("wamid.2", "me again"); got.Recorded != 0 || m.holder("+5215512345678") != nil {
		t.Errorf("a text of an erased person: %+v", got)
	}
}

// TestAnswerGoesToWhoWrote: a keyword from an older number of a profile is not answered, since
// the answer would go to the newest one.
func TestAnswerGoesToWhoWrote(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.want("PUT", "/inbound-providers/twilio", `{"auth_token":"`+twilioToken+`","help_reply":"Shop Ltd"}`, nil)
	const older, newer = "+491701234567", "+491707654321"
	var ann contacts.Reply
	m.command(contacts.CommandCreate, contacts.Create{Email: "ann@x.io", Phone: older}, &ann)
	phone := newer
	m.command(contacts.CommandUpdate, contacts.Update{ID: ann.ID, Phone: &phone}, nil)
	for i, from := range []string{older, newer} {
		m.clock.Advance(2 * time.Minute)
		m.twilio("", "MessageSid", fmt.Sprintf("SM%d", i), "SmsStatus", "received", "From", from, "To", "+4930123", "Body", "HELP")
		if got := m.queued(outbox.KindSMS); len(got) != i {
			t.Errorf("%s wrote: answers %q", from, got)
		}
	}
}
